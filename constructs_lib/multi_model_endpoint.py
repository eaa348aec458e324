"""A multi-model endpoint in an app that brings its own network, bucket, key and role."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.artifact_bucket import OwnBucket
from constructs_lib.endpoint import METRICS, CallableEndpoint, Endpoint, ProductionVariant, VariantInstances
from constructs_lib.joined_network import JoinedNetwork
from constructs_lib.triton_model import ExecutionRole, MultiModelData, TritonImage, TritonModel
from tritonstack import naming
from tritonstack.config import ContainerSettings, EndpointMetrics, EndpointSettings, Rollout, Scaling, Timeouts
from tritonstack.config.endpoint import check_endpoint
from tritonstack.config.endpoint_metrics import metrics_warnings
from tritonstack.config.fields import MAXIMUM_NAME, Site
from tritonstack.config.triton_release import release_warnings
from tritonstack.config.yaml_loader import YamlDocument, shown, validate
from tritonstack.errors import InputError, Problem

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_s3 as s3

NAME = rf"[a-zA-Z0-9](-*[a-zA-Z0-9]){{0,{MAXIMUM_NAME - 1}}}"
"""API reference: CreateEndpoint."""


@jsii.implements(ec2.IConnectable)
class MultiModelEndpoint(CallableEndpoint):
    """Triton on GPU instances, with every archive under a prefix of a bucket behind one endpoint.

    It is the endpoint alone: archives come into the bucket by ``tritonstack pack`` or a copy,
    before or after the deployment, and are called at once. Release records, verification and builds belong to the
    stacks of an environment file.

    Attributes:
        endpoint_name: the endpoint's name.
        variant_name: its production variant's.
        archive_prefix: the key prefix that archives lie under, with its trailing slash.
        archive_url: the same as an ``s3://`` URL.
        role: execution role of the containers: given, or made.
        execution_role: the construct around it; ``required_policy`` lists the permissions that it needs.
        bucket: as given.
        key: the key of the archives; None: with no key of KMS.
        security_groups: of the containers: given, or one that was made; empty without a VPC.
        connections: rules of these groups, as of any ``IConnectable``; InputError without a VPC.
        model: the Model.
        endpoint: the Endpoint and its configuration.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: s3.IBucket,
        release: str,
        instance_type: str,
        models: Sequence[str] | None = None,
        key: kms.IKey | None = None,
        role: iam.IRole | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        subnet_owner: str | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        endpoint_name: str | None = None,
        archive_prefix: str | None = None,
        initial_instance_count: int = 1,
        model_cache: bool = True,
        container: ContainerSettings | None = None,
        image: str | None = None,
        host_ami: str | None = None,
        timeouts: Timeouts | None = None,
        rollout: Rollout | None = None,
        scaling: Scaling | None = None,
        metrics: EndpointMetrics | None = METRICS,
        accept_unlisted_instance_type: bool = False,
    ) -> None:
        """Make the endpoint.

        Args:
            scope: the parent: a stack whose region is known, or give ``image``.
            construct_id: the id in the parent.
            bucket: the bucket of the archives, in the region of the stack.
            release: the Triton release, such as ``24.09``.
            instance_type: a type with one GPU, such as ``ml.g4dn.xlarge``.
            models: the models whose archives will lie there, so that a grant of another is refused. Default: None, any.
            key: the key of the archives. Default: None, the key that the bucket was made with, if any.
            role: execution role of the containers; a policy is attached to it. Default: None, one is made.
            vpc: the VPC that containers join. Default: None, SageMaker's own network.
            vpc_subnets: which subnets of it. Default: None, the private ones.
            subnet_owner: the account that shares the subnets with this one (AWS RAM). Default: None, they are its own.
            security_groups: of the containers. Default: None, one is made that allows HTTPS out and nothing in.
            endpoint_name: unique in account and region: up to 63 letters, digits and hyphens, no hyphen at either end.
                Default: None, a name from the construct's path.
            archive_prefix: the folder that archives lie under. Default: None, ``models/<platform>/`` (such as
                ``models/24.09-t4/``): engines are of one platform, and while a deployment changes it, old and new
                fleet each find theirs.
            initial_instance_count: instances to start with. Default: 1; AWS advises 2 where people depend on it.
            model_cache: keep a model loaded after a request. Default: True.
            container: settings of the Triton container. Default: None, ``ContainerSettings()``.
            image: an image in ECR in place of AWS's of the release. Default: None.
            host_ami: ``InferenceAmiVersion``, or ``sagemaker-default``. Default: None, what suits the release's CUDA.
            timeouts: how long a new instance may take. Default: None, 600 seconds each.
            rollout: how an update moves the requests to the new fleet. Default: None, all at once.
            scaling: how the number of instances follows the load. Default: None, it does not.
            metrics: what SageMaker publishes of the endpoint; None: SageMaker's own defaults, among them detailed
                observability, which costs. Default: ``EndpointMetrics()``, once a minute for each variant.
            accept_unlisted_instance_type: take a single-GPU type that AWS does not list for multi-model endpoints.
                Default: False.

        Raises:
            InputError: with every argument that is wrong.
            ValueError: the bucket is in another region.
        """
        stack = cdk.Stack.of(scope)
        settings = _settings(
            f"{scope.node.path}/{construct_id}".removeprefix("/"),
            stack=stack,
            endpoint_name=endpoint_name,
            archive_prefix=archive_prefix,
            release=release,
            instance_type=instance_type,
            initial_instance_count=initial_instance_count,
            models=["any"] if models is None else models if isinstance(models, str) else list(models),
            model_cache="enabled" if model_cache else "disabled",
            container=container or ContainerSettings(),
            host_ami=host_ami,
            image=image,
            timeouts=timeouts or Timeouts(),
            rollout=rollout,
            scaling=scaling,
            metrics=metrics,
            accept_unlisted_instance_type=accept_unlisted_instance_type,
        )
        CallableEndpoint.__init__(
            self,
            scope,
            construct_id,
            endpoint_name=endpoint_name or "",
            variant_name=settings.variant_name,
            multi_model=True,
            models=models,
        )
        self.endpoint_name = endpoint_name or cdk.Names.unique_resource_name(
            self, max_length=MAXIMUM_NAME, separator="-"
        )
        self.archive_prefix = naming.key_prefix(archive_prefix or f"models/{settings.platform}")
        self.security_groups: Sequence[ec2.ISecurityGroup] = ()
        archives = OwnBucket(self, "Archives", bucket=bucket, key=key)
        self.bucket, self.key = archives.bucket, archives.key
        network = None if vpc is None else self._join(vpc, vpc_subnets, security_groups, subnet_owner)
        self._connections = ec2.Connections(security_groups=list(self.security_groups))
        uri = TritonImage.from_uri(settings.image_uri(stack.region))
        self.execution_role = ExecutionRole(
            self,
            "ExecutionRole",
            endpoint_name=self.endpoint_name,
            artifacts=archives,
            archive_prefix=self.archive_prefix,
            image=uri,
            network=network,
            role=role,
        )
        self.role = self.execution_role.role
        self.model = TritonModel(
            self,
            "Triton",
            image=uri,
            role=self.execution_role,
            artifacts=archives,
            data=MultiModelData(prefix=self.archive_prefix, cache=model_cache),
            environment=settings.container_environment(),
            network=network,
        )
        self.archive_url = self.model.data_url
        self.endpoint = Endpoint(
            self,
            "Endpoint",
            endpoint_name=self.endpoint_name,
            variants=[
                ProductionVariant(
                    model=self.model,
                    instances=VariantInstances(
                        instance_type=instance_type,
                        initial_instance_count=settings.initial_instance_count,
                        host_ami=settings.inference_ami_version,
                    ),
                    scaling=settings.scaling,
                )
            ],
            timeouts=settings.timeouts,
            rollout=settings.rollout,
            metrics=settings.metrics,
        )
        for number, warning in enumerate(release_warnings(endpoint=settings, region=stack.region)):
            cdk.Annotations.of(self).add_warning_v2(f"tritonstack:release-{number}", f"{self.endpoint_name}: {warning}")
        for number, warning in enumerate(metrics_warnings(settings)):
            cdk.Annotations.of(self).add_warning_v2(f"tritonstack:metrics-{number}", f"{self.endpoint_name}: {warning}")

    @property
    def connections(self) -> ec2.Connections:
        """Rules of the containers' security groups: ``database.connections.allow_default_port_from(endpoint)``.

        Raises:
            InputError: it was made without ``vpc``, so that it has no security group.
        """
        if not self.security_groups:
            problem = Problem(
                file=f"MultiModelEndpoint {self.node.path}",
                field="vpc",
                found="connections of an endpoint without a VPC",
                allowed="the VPC that its containers join, in which they have security groups",
                advice="Give `vpc`; containers without one reach public addresses only, from SageMaker's network.",
            )
            raise InputError([problem])
        return self._connections

    def _join(
        self,
        vpc: ec2.IVpc,
        subnets: ec2.SubnetSelection | None,
        groups: Sequence[ec2.ISecurityGroup] | None,
        subnet_owner: str | None,
    ) -> JoinedNetwork:
        """The part of the VPC that containers join; a security group is made where none is given."""
        if groups is None:
            made = ec2.SecurityGroup(
                self,
                "SecurityGroup",
                vpc=vpc,
                description=f"Containers of endpoint {self.endpoint_name}: HTTPS out, nothing in",
                allow_all_outbound=False,
            )
            made.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "S3, ECR, CloudWatch: endpoints or a NAT")
            groups = [made]
        self.security_groups = tuple(groups)
        wanted = subnets or ec2.SubnetSelection()
        chosen = vpc.select_subnets(
            availability_zones=wanted.availability_zones,
            one_per_az=wanted.one_per_az,
            subnet_filters=wanted.subnet_filters,
            subnet_group_name=wanted.subnet_group_name,
            subnets=wanted.subnets,
            subnet_type=wanted.subnet_type,
        )
        return JoinedNetwork(
            subnet_ids=tuple(chosen.subnet_ids),
            security_group_ids=tuple(group.security_group_id for group in self.security_groups),
            subnet_owner=subnet_owner,
        )


def _settings(
    path: str, *, stack: cdk.Stack, endpoint_name: str | None, archive_prefix: str | None, **given: Any
) -> EndpointSettings:
    """The endpoint's settings, checked as those of an environment file are.

    Raises:
        InputError: with every problem, at the construct's path and the argument's name.
    """
    problems = []
    # What CreateEndpoint would refuse of a name that is known at synthesis.
    if not (endpoint_name is None or cdk.Token.is_unresolved(endpoint_name) or re.fullmatch(NAME, endpoint_name)):
        allowed = f"1 to {MAXIMUM_NAME} letters, digits and hyphens, no hyphen at either end"
        problems.append(Problem(field="endpoint_name", found=shown(endpoint_name), allowed=allowed))
    try:  # no folder, or not known at synthesis: without its slash the role could read a/bc as well as a/b
        naming.key_prefix("models" if archive_prefix is None else archive_prefix)
    except ValueError as error:
        problems.append(Problem(field="archive_prefix", found=shown(archive_prefix), allowed=str(error)))
    document = YamlDocument(value={"name": "endpoint", "mode": "multi-model", **given})
    settings = (found := validate(document, EndpointSettings)).value
    problems += found.problems
    region = None if cdk.Token.is_unresolved(stack.region) else stack.region
    if settings is not None:
        site = Site(environment=None, region=region, production=False)
        problems += check_endpoint(endpoint=settings, location=(), site=site)
    if region is None and given["image"] is None:
        problems.append(
            Problem(
                field="image",
                found=f"stack {stack.stack_name} without a region",
                allowed="a stack with env=cdk.Environment(account=…, region=…), or an image",
                advice="AWS's image of a release lies in an account that depends on the region",
            )
        )
    if settings is None or problems:
        raise InputError([replace(each, file=f"MultiModelEndpoint {path}") for each in problems])
    return settings
