"""A CodeBuild project that runs this repository on a CPU machine, and what the machine itself asks of its role."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.acknowledgement import acknowledge
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.build_access import BuildNetwork, acknowledge_nameless, allow_network, allow_pull
from constructs_lib.build_log import BuildLog
from constructs_lib.build_source import BuildSource
from constructs_lib.codebuild_project import log_config, vpc_config
from constructs_lib.permission import allow, parameter_arns
from constructs_lib.triton_image import TritonImage

PYTHON = "3.11"


@dataclass(frozen=True, kw_only=True)
class BuildMachine:
    """What a build runs on.

    Attributes:
        image: the CPU image, one of CodeBuild's or one in ECR.
        compute_type: CodeBuild's machine.
        timeout_minutes: the longest that a build takes.
        queue_minutes: the longest that it stands in the queue.
        network: the VPC, or None for CodeBuild's own network.
        variables: environment variables.
        parameters: environment variable → the SSM parameter that holds its value.
    """

    image: str
    compute_type: str
    timeout_minutes: int
    queue_minutes: int
    network: BuildNetwork | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)


def cpu_project(
    scope: Construct,
    construct_id: str,
    *,
    description: str,
    build_spec: str,
    role: iam.Role,
    policy: iam.Policy,
    source: BuildSource,
    machine: BuildMachine,
    artifacts: ArtifactBucketReference,
    log: BuildLog,
) -> codebuild.CfnProject:
    """Make the project; its role may write the log, pull the image and join the network.

    Args:
        scope: the parent.
        construct_id: the id in the parent.
        description: what it is for.
        build_spec: what it does.
        role: who it is.
        policy: the one policy of that role.
        source: what it starts from.
        machine: what it runs on.
        artifacts: whose key encrypts what it keeps.
        log: where it writes.
    """
    allow(policy, "WriteLog", actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log.arn])
    own_image = TritonImage.of_machine(machine.image)
    if own_image is not None:
        allow_pull(policy, images=[own_image])
    if machine.network is not None:
        allow_network(policy, network=machine.network, service="codebuild")
    if own_image is not None or machine.network is not None:
        acknowledge_nameless(policy)
    if machine.parameters:
        secrets = parameter_arns(scope, machine.parameters)
        allow(policy, "ReadVariables", actions=["ssm:GetParameters"], resources=secrets)
    project = codebuild.CfnProject(
        scope,
        construct_id,
        description=description,
        artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
        environment=codebuild.CfnProject.EnvironmentProperty(
            type="LINUX_CONTAINER",
            image=machine.image,
            image_pull_credentials_type="CODEBUILD" if own_image is None else "SERVICE_ROLE",
            compute_type=machine.compute_type,
            environment_variables=_variables(machine),
        ),
        source=codebuild.CfnProject.SourceProperty(type="S3", location=source.location, build_spec=build_spec),
        service_role=role.role_arn,
        encryption_key=artifacts.key_arn,
        timeout_in_minutes=machine.timeout_minutes,
        queued_timeout_in_minutes=machine.queue_minutes,
        logs_config=log_config(log),
        vpc_config=vpc_config(machine.network),
    )
    if own_image is not None:
        acknowledge(
            project,
            finding="AwsSolutions-CB5",
            reason="The settings name an image of the account's own in ECR, which may hold the environments that "
            "builds need where they cannot be fetched; by default the image is one of CodeBuild's.",
        )
    # CodeBuild checks the role when the project is made, and again when a build starts.
    project.node.add_dependency(policy, log.group)
    return project


def _variables(machine: BuildMachine) -> list[codebuild.CfnProject.EnvironmentVariableProperty] | None:
    """The environment variables of a project; None where there are none.

    SSM decrypts under the key aws/ssm for every principal of the account that may read the parameter (Systems Manager
    user guide: "Restricting decryption of SecureString parameter values").
    """
    made = [
        codebuild.CfnProject.EnvironmentVariableProperty(name=name, type=kind, value=value)
        for kind, named in (("PLAINTEXT", machine.variables), ("PARAMETER_STORE", machine.parameters))
        for name, value in sorted(named.items())
    ]
    return made or None


def buildspec(command: str, *, environments: Sequence[str]) -> str:
    """What a build does: the repository's Python environments first, unless the image brings them, then a command."""
    document = {
        "version": "0.2",
        "env": {"variables": {"PYTHONUNBUFFERED": "1"}},
        "phases": {
            "install": {
                "runtime-versions": {"python": PYTHON},
                "commands": [f"test -e .envs/main/bin/python || python3 scripts/setup.py {' '.join(environments)}"],
            },
            "build": {"commands": [command]},
        },
    }
    return json.dumps(document, indent=1)
