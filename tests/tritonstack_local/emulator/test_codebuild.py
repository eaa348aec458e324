"""Builds that run: phases, logs, what carries over, artifacts."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from tests.tritonstack_local.emulator.building import (
    bucket,
    buildspec,
    context,
    log,
    logged,
    look,
    make_project,
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


def test_variables_and_folder_carry_over_from_command_to_command_and_phase_to_phase(aws: Emulator, name: str) -> None:
    spec = {
        "version": "0.2",
        "phases": {
            "install": {"commands": ["mkdir inner", "cd inner", "export A='one  two'", "B=plain"]},
            "build": {
                "commands": [
                    'echo "a=$A b=$B"',
                    'echo "in=$(basename "$PWD")"',
                    "python3 -c 'import os; print(os.environ[\"B\"])'",
                ]
            },
        },
    }
    make_project(aws, name, spec)
    lines = log(aws, run(aws, name))
    assert {"a=one  two b=plain", "in=inner", "plain"} <= set(lines)


def test_failing_command_fails_the_build_and_post_build_and_upload_still_run(aws: Emulator, name: str) -> None:
    store = bucket(aws, name)
    spec = {
        "version": "0.2",
        "phases": {
            "build": {"commands": ["echo half > half.txt", "exit 3", "echo never"], "finally": ["echo at last"]},
            "post_build": {"commands": ['echo "succeeding=$CODEBUILD_BUILD_SUCCEEDING"']},
        },
        "artifacts": {"files": ["half.txt"]},
    }
    make_project(aws, name, spec, artifacts={"type": "S3", "location": name, "name": "half.zip", "packaging": "ZIP"})
    build = run(aws, name)
    assert build["buildStatus"] == "FAILED"
    shown = phases(build)
    assert (shown["BUILD"], shown["POST_BUILD"], shown["UPLOAD_ARTIFACTS"]) == ("FAILED", "SUCCEEDED", "SUCCEEDED")
    assert context(build, "BUILD") == (
        "COMMAND_EXECUTION_ERROR",
        "Error while executing command: exit 3. Reason: exit status 3",
    )
    lines = log(aws, build)
    assert {"at last", "succeeding=0"} <= set(lines)
    assert "never" not in lines
    packed = zipfile.ZipFile(io.BytesIO(store.get_object(Bucket=name, Key="half.zip")["Body"].read()))
    assert packed.read("half.txt") == b"half\n"
    assert len(build["artifacts"]["sha256sum"]) == 64


@pytest.mark.parametrize("phase", ["install", "pre_build"])
def test_failing_install_or_pre_build_ends_the_build(aws: Emulator, name: str, phase: str) -> None:
    spec = {"version": "0.2", "phases": {phase: {"commands": ["false"]}, "build": {"commands": ["echo never"]}}}
    make_project(aws, name, spec)
    build = run(aws, name)
    assert build["buildStatus"] == "FAILED"
    assert "BUILD" not in phases(build)
    assert list(phases(build))[-2:] == ["FINALIZING", "COMPLETED"]


def test_commands_know_the_build_and_reach_the_local_aws(aws: Emulator, name: str) -> None:
    aws.client("ssm").put_parameter(Name=f"/{name}", Value="secret", Type="SecureString")
    make_project(
        aws,
        name,
        buildspec("env | sort"),
        logsConfig={"cloudWatchLogs": {"status": "ENABLED", "groupName": f"/g/{name}", "streamName": "s"}},
    )
    build = run(aws, name, environmentVariablesOverride=[{"name": "P", "value": f"/{name}", "type": "PARAMETER_STORE"}])
    assert (build["logs"]["groupName"], build["logs"]["streamName"]) == (f"/g/{name}", "s/" + build["id"].split(":")[1])
    variables = dict(line.split("=", 1) for line in log(aws, build) if "=" in line)
    assert variables["P"] == "secret"
    assert variables["CODEBUILD_BUILD_ID"] == build["id"]
    assert variables["CODEBUILD_BUILD_ARN"] == build["arn"]
    assert variables["CODEBUILD_BUILD_NUMBER"] == "1"
    assert variables["CODEBUILD_BUILD_SUCCEEDING"] == "1"
    assert variables["AWS_ENDPOINT_URL"] == aws.url
    assert variables["AWS_REGION"] == "us-east-1"
    assert "PYTHONPATH" not in variables
    assert "CODEBUILD_RESOLVED_SOURCE_VERSION" not in variables


def test_environments_of_the_project_are_linked_in_where_the_source_lacks_them_and_not_uploaded(
    aws: Emulator, name: str
) -> None:
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


@pytest.mark.parametrize("place", ["{path}", "arn:aws:s3:::{name}/specs/engine.yml"])
def test_buildspec_may_be_a_file_of_the_source_or_an_object(aws: Emulator, name: str, place: str) -> None:
    store = bucket(aws, name)
    text = json.dumps(buildspec("echo from its place"))
    store.put_object(Bucket=name, Key="source/specs/engine.yml", Body=text)
    store.put_object(Bucket=name, Key="specs/engine.yml", Body=text)
    given = place.format(path="specs/engine.yml", name=name)
    make_project(aws, name, "", source={"type": "S3", "location": f"{name}/source/", "buildspec": given})
    assert "from its place" in log(aws, run(aws, name))
    assert "over it" in log(aws, run(aws, name, buildspecOverride=json.dumps(buildspec("echo over it"))))


def test_version_of_the_source_object_may_be_chosen(aws: Emulator, name: str) -> None:
    store = bucket(aws, name)
    store.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    versions = [
        store.put_object(
            Bucket=name, Key="s.zip", Body=zipped({"buildspec.yml": json.dumps(buildspec(f"echo {word}"))})
        )["VersionId"]
        for word in ("first", "second")
    ]
    make_project(aws, name, "", source={"type": "S3", "location": f"{name}/s.zip"})
    assert "second" in log(aws, run(aws, name))
    build = run(aws, name, sourceVersion=versions[0])
    assert "first" in log(aws, build)
    assert build["sourceVersion"] == versions[0]


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


def test_files_of_a_build_are_gone_after_it(aws: Emulator, name: str) -> None:
    make_project(aws, name, buildspec("pwd"))
    build = run(aws, name)
    folder = next(line for line in log(aws, build) if line.endswith("/src") and line.startswith("/"))
    assert not Path(folder).parent.exists()
