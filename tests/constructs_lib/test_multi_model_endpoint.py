"""The endpoint of an app that brings its own network, bucket, key and role."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from constructs_lib import ContainerSettings, MultiModelEndpoint, Rollout, Timeouts
from tests.cases import cases
from tests.constructs_lib.templates import ACCOUNT, flat, new_app, new_stack, of_type, only, properties, template_of
from tritonstack.errors import InputError

KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/containers"
WATCHED = Rollout(kind="all-at-once", termination_wait_seconds=300, accept_multi_model=True)


@dataclass(frozen=True)
class Own:
    """A stack with a bucket, and what it has besides."""

    stack: cdk.Stack
    bucket: s3.IBucket

    def endpoint(self, **given: Any) -> MultiModelEndpoint:
        wanted = {"bucket": self.bucket, "release": "24.09", "instance_type": "ml.g4dn.xlarge", **given}
        return MultiModelEndpoint(self.stack, "Models", **wanted)

    def notes(self, endpoint: MultiModelEndpoint, kind: str) -> str:
        """The construct's messages of synthesis."""
        entries = [entry for construct in endpoint.node.find_all() for entry in construct.node.metadata]
        return "\n".join(str(entry.data) for entry in entries if entry.type == f"aws:cdk:{kind}")


@pytest.fixture
def own() -> Own:
    stack = new_stack()
    return Own(stack, s3.Bucket.from_bucket_name(stack, "Bucket", "archives"))


def test_nothing_is_made_outside_the_construct(own: Own) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(
        own.stack, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-1a"], private_subnet_ids=["subnet-1"]
    )
    role = iam.Role(own.stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    key = kms.Key.from_key_arn(own.stack, "Key", KEY)
    before = [each.node.path for each in own.stack.node.root.node.find_all()]
    endpoint = own.endpoint(vpc=vpc, role=role, key=key, models=["bert"])
    after = {each.node.path for each in own.stack.node.root.node.find_all()} - set(before)
    assert after
    assert [path for path in after if not path.startswith(f"{endpoint.node.path}")] == []


@pytest.mark.parametrize("given", ["a/b", "a/b/", "a/b//"])
def test_what_it_may_read_ends_at_the_prefix_s_slash(given: str, own: Own) -> None:
    endpoint = own.endpoint(archive_prefix=given)
    template = template_of(own.stack)
    assert endpoint.archive_prefix == "a/b/"
    assert properties(template, "AWS::SageMaker::Model")["PrimaryContainer"]["ModelDataUrl"] == "s3://archives/a/b/"
    granted = [line for line in json.dumps(template).split('"') if "a/b" in line and "*" in line]
    assert granted
    assert all(line.endswith("a/b/*") for line in granted)


@pytest.mark.parametrize("given", ["", "/", "a/*", "a/${aws:username}", "a?", "/a", "a//b", "a b"])
def test_a_prefix_that_is_no_folder_is_refused(given: str, own: Own) -> None:
    with pytest.raises(InputError, match="models/a/") as refused:
        own.endpoint(archive_prefix=given)
    assert [each.field for each in refused.value.problems] == ["archive_prefix"]


def test_it_reads_the_bucket_with_the_key_and_joins_the_vpc(own: Own) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(
        own.stack, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-1a"], private_subnet_ids=["subnet-1"]
    )
    endpoint = own.endpoint(vpc=vpc, key=kms.Key.from_key_arn(own.stack, "Key", KEY))
    template = template_of(own.stack)
    model = properties(template, "AWS::SageMaker::Model")
    assert endpoint.archive_prefix == "models/24.09-t4/"
    assert model["PrimaryContainer"]["ModelDataUrl"] == endpoint.archive_url == "s3://archives/models/24.09-t4/"
    assert model["VpcConfig"]["Subnets"] == ["subnet-1"]
    group, resource = only(template, "AWS::EC2::SecurityGroup")
    assert model["VpcConfig"]["SecurityGroupIds"] == [{"Fn::GetAtt": [group, "GroupId"]}]
    assert "SecurityGroupIngress" not in resource["Properties"]
    assert [rule["ToPort"] for rule in resource["Properties"]["SecurityGroupEgress"]] == [443]
    statements = {each["Sid"]: each for each in _statements(template)}
    assert statements["DecryptArchives"]["Resource"] == KEY
    assert flat(statements["ReadArchives"]["Resource"]) in (
        "arn:${AWS::Partition}:s3:::archives/models/24.09-t4/*",
        "arn:aws:s3:::archives/models/24.09-t4/*",
    )
    assert "its policy cannot be written" in own.notes(endpoint, "warning")


def test_given_subnets_and_groups_are_taken_and_no_group_is_made(own: Own) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(
        own.stack,
        "Vpc",
        vpc_id="vpc-1",
        availability_zones=["us-east-1a"],
        private_subnet_ids=["subnet-1"],
        isolated_subnet_ids=["subnet-2"],
    )
    group = ec2.SecurityGroup.from_security_group_id(own.stack, "Group", "sg-1")
    isolated = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    own.endpoint(vpc=vpc, vpc_subnets=isolated, security_groups=[group])
    template = template_of(own.stack)
    network = properties(template, "AWS::SageMaker::Model")["VpcConfig"]
    assert network == {"Subnets": ["subnet-2"], "SecurityGroupIds": ["sg-1"]}
    assert not of_type(template, "AWS::EC2::SecurityGroup")


def test_a_bucket_without_a_key_needs_no_statement_and_its_own_key_is_found() -> None:
    stack = new_stack()
    Own(stack, s3.Bucket(stack, "Plain")).endpoint()
    assert "DecryptArchives" not in {each["Sid"] for each in _statements(template_of(stack))}
    stack = new_stack()
    endpoint = Own(stack, s3.Bucket(stack, "Encrypted", encryption=s3.BucketEncryption.KMS)).endpoint()
    key, _ = only(template_of(stack), "AWS::KMS::Key")
    [decrypt] = [each for each in _statements(template_of(stack)) if each["Sid"] == "DecryptArchives"]
    assert decrypt["Resource"] == {"Fn::GetAtt": [key, "Arn"]}
    assert "its policy cannot be written" not in Own(stack, endpoint.bucket).notes(endpoint, "warning")


@pytest.mark.parametrize("arn", [ROLE, ROLE.replace(ACCOUNT, "210987654321")])
def test_a_role_that_cannot_be_changed_is_a_warning_with_its_required_policy(own: Own, arn: str) -> None:
    role = iam.Role.from_role_arn(own.stack, "Role", arn, mutable=arn != ROLE)
    endpoint = own.endpoint(role=role, rollout=WATCHED)
    template = template_of(own.stack)
    assert of_type(template, "AWS::CloudWatch::Alarm")
    assert not of_type(template, "AWS::IAM::Policy"), "nor a policy that reads the rollback alarms"
    assert properties(template, "AWS::SageMaker::Model")["ExecutionRoleArn"] == arn
    assert "`required_policy`" in own.notes(endpoint, "warning")
    needed = own.stack.resolve(endpoint.execution_role.required_policy.to_json())
    assert {"ReadArchives", "ReadFleetAlarms"} <= {each["Sid"] for each in needed["Statement"]}


def test_an_imported_role_of_the_account_gets_the_policy_and_its_trust_is_reported(own: Own) -> None:
    endpoint = own.endpoint(role=iam.Role.from_role_arn(own.stack, "Role", ROLE))
    assert properties(template_of(own.stack), "AWS::IAM::Policy")["Roles"] == ["containers"]
    assert "`required_policy`" not in own.notes(endpoint, "warning")
    assert "trust policy cannot be written" in own.notes(endpoint, "info")


def test_names_are_generated_unless_given(own: Own) -> None:
    endpoint = own.endpoint()
    made = properties(template_of(own.stack), "AWS::SageMaker::Endpoint")["EndpointName"]
    assert endpoint.endpoint_name == made
    assert made.startswith("stack-Models-")
    assert len(made) <= 63
    other = MultiModelEndpoint(
        new_stack(), "Models", bucket=own.bucket, release="24.09", instance_type="ml.g5.xlarge", endpoint_name="ours"
    )
    assert (other.endpoint_name, other.variant_name, other.archive_prefix) == (
        "ours",
        "g5-xlarge",
        "models/24.09-a10g/",
    )


def test_the_container_gets_the_variables_of_the_settings(own: Own) -> None:
    own.endpoint(container=ContainerSettings(thread_count=4), model_cache=False)
    container = properties(template_of(own.stack), "AWS::SageMaker::Model")["PrimaryContainer"]
    assert container["Environment"]["SAGEMAKER_TRITON_THREAD_COUNT"] == "4"
    assert container["MultiModelConfig"] == {"ModelCacheSetting": "Disabled"}


@cases("given, problems")
def test_everything_that_is_wrong_is_reported_at_once_by_the_argument_s_name(
    own: Own, given: dict[str, Any], problems: dict[str, str]
) -> None:
    with pytest.raises(InputError) as raised:
        own.endpoint(**given)
    found = {each.field: each.allowed for each in raised.value.problems}
    assert sorted(found) == sorted(problems)
    assert [field for field, words in problems.items() if words not in found[field]] == []
    assert str(raised.value).startswith("MultiModelEndpoint stack/Models: ")
    assert "pydantic" not in str(raised.value)


def test_settings_that_are_wrong_are_reported_as_arguments_too() -> None:
    assert Timeouts() == Timeouts(model_download_seconds=600, container_startup_seconds=600)
    with pytest.raises(InputError) as raised:
        Timeouts(model_download_seconds=5, startup=6)  # type: ignore[call-arg]  # what the test is about
    assert [(each.file, each.field) for each in raised.value.problems] == [
        ("Timeouts(…)", "model_download_seconds"),
        ("Timeouts(…)", "startup"),
    ]
    assert "60 or more" in str(raised.value)


def test_a_name_that_is_known_at_deployment_only_is_accepted(own: Own) -> None:
    name = cdk.CfnParameter(own.stack, "Name").value_as_string
    own.endpoint(endpoint_name=name)
    assert properties(template_of(own.stack), "AWS::SageMaker::Endpoint")["EndpointName"] == {"Ref": "Name"}


def test_a_database_lets_in_its_containers_as_any_connectable_s(own: Own) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(
        own.stack, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-1a"], private_subnet_ids=["subnet-1"]
    )
    database = ec2.SecurityGroup.from_security_group_id(own.stack, "Database", "sg-1")
    endpoint = own.endpoint(vpc=vpc)
    database.connections.allow_from(endpoint, ec2.Port.tcp(5432), "features")
    template = template_of(own.stack)
    group, _ = only(template, "AWS::EC2::SecurityGroup")
    source = {"Fn::GetAtt": [group, "GroupId"]}
    ingress = properties(template, "AWS::EC2::SecurityGroupIngress")
    assert (ingress["GroupId"], ingress["SourceSecurityGroupId"], ingress["ToPort"]) == ("sg-1", source, 5432)
    egress = properties(template, "AWS::EC2::SecurityGroupEgress")
    assert (egress["GroupId"], egress["DestinationSecurityGroupId"], egress["ToPort"]) == (source, "sg-1", 5432)


def test_without_a_vpc_it_has_no_connections_and_the_error_names_the_arguments(own: Own) -> None:
    database = ec2.SecurityGroup.from_security_group_id(own.stack, "Database", "sg-1")
    endpoint = own.endpoint()
    with pytest.raises(InputError, match=r"MultiModelEndpoint stack/Models: vpc(?s:.*)Give `vpc`"):
        endpoint.connections.allow_from_any_ipv4(ec2.Port.tcp(1))
    with pytest.raises(RuntimeError, match="connections of an endpoint without a VPC"):
        database.connections.allow_from(endpoint, ec2.Port.tcp(5432))


def test_a_stack_without_a_region_is_an_error_that_names_the_argument() -> None:
    stack = cdk.Stack(new_app(), "stack")
    with pytest.raises(InputError) as raised:
        Own(stack, s3.Bucket(stack, "Bucket")).endpoint()
    assert "without a region" in json.dumps([each.found for each in raised.value.problems])


def test_the_bucket_may_be_another_stacks_or_an_exported_name() -> None:
    app = new_app()
    env = cdk.Environment(account=ACCOUNT, region="us-east-1")
    theirs, other, named = (cdk.Stack(app, name, env=env) for name in ("theirs", "other", "named"))
    Own(other, s3.Bucket(theirs, "Bucket", encryption=s3.BucketEncryption.KMS)).endpoint()
    exported = s3.Bucket.from_bucket_name(named, "Bucket", cdk.Fn.import_value("their-bucket"))
    Own(named, exported).endpoint()
    app.synth()
    read, decrypt = (
        next(each["Resource"] for each in _statements(template_of(other)) if each["Sid"] == sid)
        for sid in ("ReadArchives", "DecryptArchives")
    )
    # The feature flag `defaultCrossStackReferences`: by the other stack's outputs, not by exports.
    assert read["Fn::Join"][1][0]["Fn::GetStackOutput"]["StackName"] == "theirs"
    assert decrypt["Fn::GetStackOutput"]["StackName"] == "theirs"
    [read] = [each["Resource"] for each in _statements(template_of(named)) if each["Sid"] == "ReadArchives"]
    assert {"Fn::ImportValue": "their-bucket"} in read["Fn::Join"][1]


def test_a_bucket_of_another_region_is_refused(own: Own) -> None:
    bucket = s3.Bucket.from_bucket_attributes(own.stack, "Far", bucket_name="far", region="eu-west-1")
    with pytest.raises(ValueError, match="in eu-west-1, and the stack stack in us-east-1"):
        own.endpoint(bucket=bucket)


def _statements(template: dict[str, Any]) -> list[dict[str, Any]]:
    policies = of_type(template, "AWS::IAM::Policy").values()
    return [each for policy in policies for each in policy["Properties"]["PolicyDocument"]["Statement"]]
