"""The environment of a build's commands (CodeBuild user guide, "Environment variables in build environments")."""

from __future__ import annotations

import os
from pathlib import Path

from tritonstack_local.emulator.codebuild.build import Build
from tritonstack_local.emulator.codebuild.buildspec import Buildspec, PhaseError
from tritonstack_local.emulator.codebuild.store import CREDENTIALS, client, failing_as_client_error


def build_environment(build: Build, buildspec: Buildspec, *, source: Path, home: Path) -> dict[str, str]:
    """Every variable: the buildspec's, then the project's and StartBuild's, then CodeBuild's own.

    Raises PhaseError where a parameter of Parameter Store is not there.
    """
    parameters = dict(buildspec.parameter_store)
    told = dict(buildspec.variables)
    for variable in build.plan.variables:
        kind, other = (parameters, told) if variable.kind == "PARAMETER_STORE" else (told, parameters)
        kind[variable.name] = variable.value
        other.pop(variable.name, None)
    told |= {name: _parameter(parameter, region=build.region) for name, parameter in parameters.items()}
    return {**_machine(build, home), **told, **_codebuild(build, source)}


def _machine(build: Build, home: Path) -> dict[str, str]:
    """What the container's image and CodeBuild's credentials would give; the endpoint is this emulator."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "AWS_REGION": build.region,
        "AWS_DEFAULT_REGION": build.region,
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        **CREDENTIALS,
    }


def _codebuild(build: Build, source: Path) -> dict[str, str]:
    """CODEBUILD_RESOLVED_SOURCE_VERSION is missing: CodeBuild sets it for repositories and pipelines only."""
    plan = build.plan
    variables = {
        "CI": "true",
        "CODEBUILD_CI": "true",
        "CODEBUILD_BUILD_ARN": build.arn,
        "CODEBUILD_BUILD_ID": build.id,
        "CODEBUILD_BUILD_IMAGE": plan.environment["image"],
        "CODEBUILD_BUILD_NUMBER": str(build.number),
        "CODEBUILD_BUILD_SUCCEEDING": "1",
        "CODEBUILD_INITIATOR": build.initiator,
        "CODEBUILD_KMS_KEY_ID": plan.encryption_key,
        "CODEBUILD_LOG_PATH": build.log_stream,
        "CODEBUILD_PROJECT_ARN": plan.project_arn,
        "CODEBUILD_SRC_DIR": str(source),
        "CODEBUILD_START_TIME": str(int(build.start * 1000)),
    }
    if plan.source_version:
        variables["CODEBUILD_SOURCE_VERSION"] = plan.source_version
    if plan.source.get("location"):
        variables["CODEBUILD_SOURCE_REPO_URL"] = plan.source["location"]
    return variables


def _parameter(name: str, *, region: str) -> str:
    try:
        with failing_as_client_error(f"parameter {name}"):
            answer = client("ssm", region).get_parameter(Name=name, WithDecryption=True)
    except PhaseError as error:
        raise PhaseError("Decrypted Variables Error", error.message) from error
    return str(answer["Parameter"]["Value"])
