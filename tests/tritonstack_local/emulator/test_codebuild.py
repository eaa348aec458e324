"""Builds that run: phases, logs, what carries over, artifacts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.cases import cases
from tests.tritonstack_local.emulator.building import (
    ENDLESS,
    ROLE,
    TRITON,
    alive,
    bucket,
    buildspec,
    context,
    ended,
    endless_processes,
    log,
    logged,
    look,
    make_project,
    make_service_role,
    phases,
    run,
    start,
    zipped,
)
from tests.tritonstack_local.emulator.running import REPOSITORY, Emulator

ALL_PHASES = [
    "SUBMITTED",
    "QUEUED",
    "PROVISIONING",
    "DOWNLOAD_SOURCE",
    "INSTALL",
    "PRE_BUILD",
    "BUILD",
    "POST_BUILD",
    "UPLOAD_ARTIFACTS",
    "FINALIZING",
    "COMPLETED",
]


def test_build_of_a_zip_runs_its_phases_and_uploads_its_artifacts(aws: Emulator, name: str) -> None:
    store = bucket(aws, name)
    spec = {
        "version": "0.2",
        "env": {"variables": {"FROM_SPEC": "spec", "BOTH": "spec"}},
        "phases": {
            "install": {"runtime-versions": {"python": 3.11}, "commands": ["./tool.sh"]},
            "build": {"commands": ["mkdir -p output/deep", 'echo "$FROM_SPEC $BOTH" > output/deep/said.txt']},
        },
        "artifacts": {"files": ["**/*"], "base-directory": "output"},
    }
    files = {"buildspec.yml": json.dumps(spec), "tool.sh": "#!/bin/sh\necho tool ran in $CODEBUILD_SRC_DIR\n"}
    store.put_object(Bucket=name, Key="source.zip", Body=zipped(files, programs=("tool.sh",)))
    make_project(
        aws,
        name,
        "",
        source={"type": "S3", "location": f"{name}/source.zip"},
        artifacts={"type": "S3", "location": name, "path": "out", "name": "result", "packaging": "NONE"},
    )
    build = run(aws, name, environmentVariablesOverride=[{"name": "BOTH", "value": "override"}])
    assert build["buildStatus"] == "SUCCEEDED", log(aws, build)
    assert list(phases(build)) == ALL_PHASES
    assert set(list(phases(build).values())[:-1]) == {"SUCCEEDED"}
    assert all(phase["endTime"] >= phase["startTime"] for phase in build["phases"][:-1])
    assert store.get_object(Bucket=name, Key="out/result/deep/said.txt")["Body"].read() == b"spec override\n"
    assert build["artifacts"]["location"] == f"arn:aws:s3:::{name}/out/result"
    lines = log(aws, build)
    assert any(line.startswith("tool ran in /") for line in lines)
    assert "not CodeBuild" in lines[0]
    assert any("runtime-versions: python 3.11 is asked for and not installed" in line for line in lines)


def test_failing_command_fails_the_build_and_post_build_and_upload_still_run(aws: Emulator, name: str) -> None:
    store = bucket(aws, name)
    spec = {
        "version": "0.2",
        "phases": {
            "build": {"commands": ["echo half > half.txt", "exit 3", "echo never"]},
            "post_build": {"commands": ['echo "succeeding=$CODEBUILD_BUILD_SUCCEEDING"']},
        },
        "artifacts": {"files": ["half.txt"]},
    }
    make_project(aws, name, spec, artifacts={"type": "S3", "location": name, "name": "out"})
    build = run(aws, name)
    assert build["buildStatus"] == "FAILED"
    shown = phases(build)
    assert (shown["BUILD"], shown["POST_BUILD"], shown["UPLOAD_ARTIFACTS"]) == ("FAILED", "SUCCEEDED", "SUCCEEDED")
    assert context(build, "BUILD") == (
        "COMMAND_EXECUTION_ERROR",
        "Error while executing command: exit 3. Reason: exit status 3",
    )
    lines = log(aws, build)
    assert "succeeding=0" in lines
    assert "never" not in lines
    assert store.get_object(Bucket=name, Key="out/half.txt")["Body"].read() == b"half\n"


def test_commands_have_the_builds_variables_and_reach_the_local_aws(aws: Emulator, name: str) -> None:
    aws.client("ssm").put_parameter(Name=f"/{name}", Value="secret", Type="SecureString")
    make_project(
        aws,
        name,
        buildspec("env | sort"),
        logsConfig={"cloudWatchLogs": {"status": "ENABLED", "groupName": f"/g/{name}"}},
    )
    variable = {"name": "P", "value": f"/{name}-none", "type": "PARAMETER_STORE"}
    code, message = context(run(aws, name, environmentVariablesOverride=[variable]), "DOWNLOAD_SOURCE")
    assert (code, "ParameterNotFound" in message) == ("Decrypted Variables Error", True)
    build = run(aws, name, environmentVariablesOverride=[{**variable, "value": f"/{name}"}])
    assert (build["logs"]["groupName"], build["logs"]["streamName"]) == (f"/g/{name}", build["id"].split(":")[1])
    variables = dict(line.split("=", 1) for line in log(aws, build) if "=" in line)
    assert variables["P"] == "secret"
    assert variables["CODEBUILD_BUILD_ID"] == build["id"]
    assert variables["CODEBUILD_BUILD_ARN"] == build["arn"]
    assert variables["CODEBUILD_BUILD_NUMBER"] == "2"
    assert variables["CODEBUILD_BUILD_SUCCEEDING"] == "1"
    assert variables["AWS_ENDPOINT_URL"] == aws.url
    assert variables["AWS_REGION"] == "us-east-1"
    assert "PYTHONPATH" not in variables
    assert "CODEBUILD_RESOLVED_SOURCE_VERSION" not in variables


def test_python_environments_are_linked_into_the_source_where_absent_and_not_uploaded(aws: Emulator, name: str) -> None:
    store = bucket(aws, name)
    store.put_object(Bucket=name, Key="source/node_modules/mine.txt", Body=b"mine")
    spec = buildspec("readlink .envs", "ls node_modules", artifacts={"files": ["**/*"]})
    make_project(
        aws,
        name,
        spec,
        source={"type": "S3", "location": f"{name}/source/", "buildspec": json.dumps(spec)},
        artifacts={"type": "S3", "location": name, "path": "out", "name": "/", "packaging": "NONE"},
    )
    lines = log(aws, run(aws, name))
    assert str(REPOSITORY / ".envs") in lines
    assert "mine.txt" in lines
    assert any(".envs of the project is linked" in line for line in lines)
    uploaded = [one["Key"] for one in store.list_objects_v2(Bucket=name, Prefix="out")["Contents"]]
    assert uploaded == ["out/node_modules/mine.txt"]


def test_every_line_of_the_log_is_an_event_of_its_own_while_the_build_runs(aws: Emulator, name: str) -> None:
    make_project(aws, name, buildspec("echo one\necho two", "sleep 600"))
    build = start(aws, name)
    logged(aws, build, "two")
    running = look(aws, build)
    assert (running["buildStatus"], running["currentPhase"]) == ("IN_PROGRESS", "BUILD")
    assert "endTime" not in running["phases"][-1]
    lines = log(aws, running)
    assert not any("\n" in line for line in lines)
    assert {"echo two", "one", "two"} <= set(lines)
    aws.client("codebuild").stop_build(id=build)


def test_stop_ends_the_processes_and_the_build(aws: Emulator, name: str) -> None:
    make_project(aws, name, buildspec(ENDLESS))
    build = start(aws, name)
    pids = endless_processes(aws, build)
    assert look(aws, build)["currentPhase"] == "BUILD"
    assert not look(aws, build)["buildComplete"]
    stopped = aws.client("codebuild").stop_build(id=build)["build"]
    assert (stopped["buildStatus"], stopped["currentPhase"]) == ("STOPPED", "COMPLETED")
    assert (phases(stopped)["BUILD"], "POST_BUILD" in phases(stopped)) == ("STOPPED", False)
    assert not any(map(alive, pids))


def test_build_times_out_on_the_moved_clock(aws: Emulator, name: str) -> None:
    make_project(aws, name, buildspec(ENDLESS), timeoutInMinutes=60)
    build = start(aws, name, timeoutInMinutesOverride=120)
    pids = endless_processes(aws, build)
    aws.advance(119 * 60)
    assert look(aws, build)["buildStatus"] == "IN_PROGRESS"
    aws.advance(2 * 60)
    timed_out = ended(aws, build)
    assert timed_out["buildStatus"] == "TIMED_OUT"
    assert phases(timed_out)["BUILD"] == "TIMED_OUT"
    assert context(timed_out, "BUILD") == ("BUILD_TIMED_OUT", "Build has timed out after 120 minutes.")
    assert (timed_out["endTime"] - timed_out["startTime"]).total_seconds() >= 121 * 60
    assert not any(map(alive, pids))


@cases("request_, sentence")
def test_what_is_not_supported_is_refused_by_name(
    aws: Emulator, name: str, request_: dict[str, Any], sentence: str
) -> None:
    make_project(aws, name, buildspec("true"))
    with pytest.raises(ClientError, match=sentence) as refused:
        start(aws, name, **request_)
    assert refused.value.response["Error"]["Code"] == "InvalidInputException"
    assert aws.client("codebuild").list_builds_for_project(projectName=name)["ids"] == []


def test_role_that_does_not_trust_codebuild_is_refused(aws: Emulator, name: str) -> None:
    make_service_role(aws, name, service="lambda.amazonaws.com")
    make_project(aws, name, buildspec("true"), serviceRole=ROLE.replace("builder", name))
    with pytest.raises(ClientError, match=r"its trust policy does not name codebuild\.amazonaws\.com"):
        start(aws, name)


def test_link_in_the_source_is_refused(aws: Emulator, name: str) -> None:
    build = _of_zip(aws, name, zipped({"buildspec.yml": json.dumps(buildspec("true"))}, links={"home": "/root"}))
    assert "no links" in context(build, "DOWNLOAD_SOURCE")[1]


def test_name_in_a_source_folder_that_leads_out_of_it_is_refused(aws: Emulator, name: str) -> None:
    bucket(aws, name).put_object(Bucket=name, Key="source/../out.txt", Body=b"out")
    make_project(aws, name, "", source={"type": "S3", "location": f"{name}/source/"})
    assert "leads out of its folder" in context(run(aws, name), "DOWNLOAD_SOURCE")[1]


def _of_zip(emulator: Emulator, name: str, content: bytes) -> dict[str, Any]:
    bucket(emulator, name).put_object(Bucket=name, Key="source.zip", Body=content)
    make_project(emulator, name, "", source={"type": "S3", "location": f"{name}/source.zip"})
    return run(emulator, name)


@pytest.mark.parametrize(
    ("location", "sentence"),
    [
        ("no-such-bucket-here/source.zip", "NoSuchBucket"),
        ("{name}/missing.zip", "NoSuchKey"),
        ("{name}/none/", "No S3 objects"),
    ],
)
def test_source_that_s3_does_not_give_is_reported_in_the_phase(
    aws: Emulator, name: str, location: str, sentence: str
) -> None:
    bucket(aws, name)
    make_project(aws, name, "", source={"type": "S3", "location": location.format(name=name)})
    build = run(aws, name)
    code, message = context(build, "DOWNLOAD_SOURCE")
    assert (build["buildStatus"], code) == ("FAILED", "CLIENT_ERROR")
    assert sentence in message
    assert "INSTALL" not in phases(build)


GPU = {"type": "LINUX_GPU_CONTAINER", "image": TRITON, "computeType": "BUILD_GENERAL1_SMALL"}


def test_gpu_build_has_stand_ins_of_its_image_and_machine_and_no_environments(aws: Emulator, name: str) -> None:
    commands = (
        "test ! -e .envs",
        'python3 -c "print(6 * 7)"',
        "$TRITONSTACK_NVIDIA_SMI --query-gpu=name,compute_cap --format=csv,noheader",
        "$TRITONSTACK_TRTEXEC --help | head -1",
    )
    make_project(aws, name, buildspec(*commands), environment=GPU)
    build = run(aws, name)
    lines = log(aws, build)
    assert build["buildStatus"] == "SUCCEEDED", lines
    assert "42" in lines
    assert "NVIDIA A10G (nvidia-smi-stand-in), 8.6" in lines
    assert any("RUNNING trtexec-stand-in" in line for line in lines)
    assert any("No GPU: " in line for line in lines[:6])
