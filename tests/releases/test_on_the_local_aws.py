"""Records, ``releases`` and ``rollback`` against a running local AWS: stacks, functions and histories are its own."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import sys
import urllib.request
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from tests.local_keys import OWN
from tests.models.folders import source_of, write_double
from tests.releases.deployment import OTHER, T4, A, B, C, Deployment
from tests.tritonstack_local.emulator.building import buildspec, make_project
from tests.tritonstack_local.emulator.running import REPOSITORY, wait_until
from tritonstack.aws.session import credentials_ended
from tritonstack.cli import releases
from tritonstack.cli.schema import schema_text
from tritonstack.errors import InputError, TritonstackError, WorkFailedError
from tritonstack.models.digest import model_digest
from tritonstack.releases.records import DeployedSet, deployed_set


@pytest.fixture
def updated(deployment: Deployment) -> Deployment:
    """A deployment whose model got another digest."""
    deployment.deploy({"bert": A})
    deployment.deploy({"bert": B})
    return deployment


def _releases(deployment: Deployment, *arguments: str) -> Any:
    result = CliRunner().invoke(
        releases.releases_command, ["-e", deployment.name, *arguments, "--json"], catch_exceptions=False
    )
    document = json.loads(result.stdout)
    jsonschema.validate(document, json.loads(schema_text("releases")))
    return document


def _rollback(deployment: Deployment, *arguments: str) -> Result:
    return CliRunner().invoke(releases.rollback_command, ["-e", deployment.name, *arguments], catch_exceptions=False)


def _model(report: Any, name: str, endpoint: str = "digits") -> Any:
    [found] = [one for one in report["endpoints"] if one["endpoint"] == endpoint]
    [model] = [one for one in found["models"] if one["model"] == name]
    return model


def test_a_model_that_a_deployment_removed_is_named_with_its_archives(deployment: Deployment) -> None:
    deployment.deploy({"bert": A, "gone": A})
    deployment.deploy({"bert": A})
    for name in ("gone", "digits/gone"):
        with pytest.raises(InputError, match=rf"(?s)a deployment removed the model.*digits/gone {A}.*in `models` of"):
            _releases(deployment, name)
    with pytest.raises(InputError, match=r"(?s)'digits', which is an endpoint.*one of its models: digits/bert"):
        _releases(deployment, "digits")


def test_a_rolled_back_deployment_brings_back_what_a_manual_rollback_had_chosen(deployment: Deployment) -> None:
    assert deployment.deploy({"bert": A, "gone": A}) == "CREATE_COMPLETE"
    assert deployment.deploy({"bert": B, "gone": A}) == "UPDATE_COMPLETE"
    assert _rollback(deployment, "bert", "--yes").exit_code == 0
    assert deployment.records() == {"bert": A, "gone": A}
    assert deployment.deploy({"bert": C, "joined": B}, failing=True) == "UPDATE_ROLLBACK_COMPLETE"
    assert deployment.records() == {"bert": A, "gone": A}
    writers = [one["writer"] for one in _model(_releases(deployment, "bert"), "bert")["releases"]]
    assert writers == ["restored", "deployment", "rollback", "deployment", "deployment"]


def test_credentials_that_end_before_a_record_is_written_leave_it_to_the_same_command_again(
    updated: Deployment,
) -> None:
    fault = {"operation": "PutParameter", "status": 400, "code": "ExpiredTokenException", "times": 1}
    url = f"{updated.aws.url}/_tritonstack/faults"
    request = urllib.request.Request(url, json.dumps(fault).encode(), OWN)  # noqa: S310
    urllib.request.urlopen(request, timeout=10).close()  # noqa: S310
    with pytest.raises(WorkFailedError, match="ExpiredTokenException") as caught:
        _rollback(updated, "bert", "--yes")
    assert credentials_ended(caught.value)
    assert updated.records() == {"bert": B}
    assert _rollback(updated, "bert", "--yes").exit_code == 0
    assert updated.records() == {"bert": A}


def test_releases_prints_digest_platform_writer_commit_and_archive_newest_first(deployment: Deployment) -> None:
    deployment.deploy({"bert": A}, commits={"bert": "1" * 40})
    deployment.deploy({"bert": B}, commits={"bert": "2" * 40})
    deployment.aws.client("s3").delete_object(Bucket=deployment.bucket, Key=f"endpoints/digits/{T4}/bert.{A}.tar.gz")
    model = _model(_releases(deployment), "bert")
    listed = [(one["digest"], one["platform"], one["commit"], one["archive"]) for one in model["releases"]]
    assert listed == [(B, T4, "2" * 40, True), (A, T4, "1" * 40, False)]
    assert [one["current"] for one in model["releases"]] == [True, False]
    assert (model["deployed"], model["differs"]) == (B, None)


def test_releases_reports_a_record_that_differs_from_what_is_deployed_and_its_fix(deployment: Deployment) -> None:
    deployment.deploy({"bert": A, "lost": A})
    deployment.deploy({"bert": B, "lost": A})
    _rollback(deployment, "bert", "--yes")
    deployment.aws.client("ssm").delete_parameter(Name=f"/tritonstack/{deployment.name}/digits/lost")
    deployment.parameter(f"/tritonstack/{deployment.name}/digits/stray", C)
    report = _releases(deployment)
    assert f"tritonstack rollback -e {deployment.name} digits/bert --to {B}" in _model(report, "bert")["fix"]
    assert "moved by tritonstack rollback" in _model(report, "bert")["differs"]
    assert "aws ssm delete-parameter" in _model(report, "stray")["fix"]
    shown = CliRunner().invoke(releases.releases_command, ["-e", deployment.name], catch_exceptions=False).stdout
    assert "digits/lost: there is no record, and clients find no archive\n  do: " in shown
    fix = _model(report, "lost")["fix"].partition("tritonstack rollback ")[2].split()
    assert _rollback(deployment, *fix[2:]).exit_code == 0
    assert deployment.records()["lost"] == A


def test_releases_reports_releases_whose_proof_was_skipped(deployment: Deployment) -> None:
    deployment.deploy({"bert": A, "fil": A})
    deployment.publish({"fil": A}, skipped="the local Triton has no backend fil")
    report = _releases(deployment)
    assert [_model(report, name)["proof_skipped"] for name in ("bert", "fil")] == [
        None,
        "the local Triton has no backend fil",
    ]
    shown = CliRunner().invoke(releases.releases_command, ["-e", deployment.name], catch_exceptions=False).stdout
    assert "digits/fil: proof skipped: the local Triton has no backend fil\n" in shown


def test_without_yes_nothing_moves(updated: Deployment) -> None:
    result = _rollback(updated, "bert")
    assert f"{B} → {A}" in result.stdout
    assert "--yes" in result.stdout
    assert updated.records() == {"bert": B}


def test_an_archive_that_the_platform_lacks_is_copied_from_the_one_before(updated: Deployment) -> None:
    updated.deploy({"bert": B}, platform=OTHER)
    assert f"bert.{A}.tar.gz" not in updated.archives(platform=OTHER)
    result = _rollback(updated, "bert", "--yes")
    assert "60 seconds" in result.stdout
    assert f"bert.{A}.tar.gz" in updated.archives(platform=OTHER)
    assert updated.records() == {"bert": A}


def test_a_model_on_two_endpoints_has_to_be_named_with_one(deployment: Deployment) -> None:
    deployment.write_environment(digits="multi-model", letters="multi-model")
    for endpoint in ("digits", "letters"):
        deployment.deploy({"bert": A}, endpoint=endpoint)
        deployment.deploy({"bert": B}, endpoint=endpoint)
    with pytest.raises(InputError, match=r"digits/bert, letters/bert"):
        _rollback(deployment, "bert", "--yes")
    _rollback(deployment, "letters/bert", "--yes")
    assert (deployment.records("digits"), deployment.records("letters")) == ({"bert": B}, {"bert": A})


@pytest.mark.parametrize(("to", "expected"), [(C, "never had"), (B, "is the current digest"), ("../etc", "never had")])
def test_an_unknown_digest_and_the_current_one_are_refused_with_those_that_exist(
    updated: Deployment, to: str, expected: str
) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        _rollback(updated, "bert", "--to", to, "--yes")
    assert (caught.value.problems[0].allowed, updated.records()) == (A, {"bert": B})


def test_a_digest_that_was_published_and_never_recorded_may_be_named(deployment: Deployment) -> None:
    deployment.deploy({"bert": A})
    deployment.publish({"bert": C})
    with pytest.raises(InputError, match="no earlier digest"):
        _rollback(deployment, "bert", "--yes")
    _rollback(deployment, "bert", "--to", C, "--yes")
    assert deployment.records() == {"bert": C}


def test_a_single_model_endpoint_is_refused_with_what_does_it_there(deployment: Deployment) -> None:
    deployment.deploy({"bert": A}, mode="SingleModel")
    deployment.deploy({"bert": B}, mode="SingleModel")
    with pytest.raises(InputError, match="single-model endpoint") as caught:
        _rollback(deployment, "bert", "--yes")
    assert f"cdk deploy '{deployment.name}/serving-digits'" in caught.value.problems[0].advice


def test_an_endpoint_that_is_not_deployed_is_refused(deployment: Deployment) -> None:
    deployment.parameter(f"/tritonstack/{deployment.name}/digits/bert", A)
    with pytest.raises(InputError, match=f"no stack {deployment.name}-serving-digits"):
        _rollback(deployment, "bert", "--yes")


def test_while_a_deployment_is_under_way_nothing_moves(updated: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:

    def under_way(*arguments: Any, **named: Any) -> DeployedSet:
        found = deployed_set(*arguments, **named)
        assert found is not None
        return dataclasses.replace(found, status="UPDATE_IN_PROGRESS")

    monkeypatch.setattr(releases, "deployed_set", under_way)
    with pytest.raises(WorkFailedError, match="is UPDATE_IN_PROGRESS; wait"):
        _rollback(updated, "bert", "--yes")
    assert updated.records() == {"bert": B}


@pytest.mark.parametrize("moves", ["record", "platform"])
def test_a_record_that_another_moved_meanwhile_is_not_changed(
    updated: Deployment, monkeypatch: pytest.MonkeyPatch, moves: str
) -> None:
    def meanwhile(*_: Any, **__: Any) -> str:
        if moves == "record":
            updated.parameter(f"/tritonstack/{updated.name}/digits/bert", C)
        else:
            updated.deploy({"bert": B}, platform=OTHER)
        return "there already"

    monkeypatch.setattr(releases, "ensure_archive", meanwhile)
    message = f"moved meanwhile, to {C}" if moves == "record" else "another platform by now"
    with pytest.raises(WorkFailedError, match=message):
        _rollback(updated, "bert", "--yes")
    assert updated.records() == {"bert": C if moves == "record" else B}


def test_an_account_other_than_the_files_is_refused(updated: Deployment) -> None:
    file = updated.project / "environments" / f"{updated.name}.yaml"
    file.write_text(file.read_text().replace("123456789012", "210987654321"))
    with pytest.raises(InputError, match="210987654321"):
        _rollback(updated, "bert", "--yes")
    assert updated.records() == {"bert": B}


def test_a_deployed_set_of_another_form_is_reported(deployment: Deployment) -> None:
    deployment.deploy({"bert": A})
    store = deployment.aws.client("s3")
    [key] = [row["Key"] for row in store.list_objects_v2(Bucket=deployment.bucket)["Contents"] if "/" not in row["Key"]]
    store.put_object(Bucket=deployment.bucket, Key=key, Body=b"{}")
    with pytest.raises(WorkFailedError, match="is no release set of schema 1"):
        _releases(deployment)


def _expire_sets(deployment: Deployment) -> str:
    """Delete every release set, as a lifecycle rule of the bootstrap bucket does. Returns a pattern of their keys."""
    store = deployment.aws.client("s3")
    for row in store.list_objects_v2(Bucket=deployment.bucket)["Contents"]:
        if row["Key"].endswith(".release-set"):
            store.delete_object(Bucket=deployment.bucket, Key=row["Key"])
    return rf"s3://{deployment.bucket}/[0-9a-f]{{64}}\.release-set"


def test_where_the_deployed_set_expired_releases_are_shown_and_a_model_is_rolled_back(updated: Deployment) -> None:
    gone, again = _expire_sets(updated), f"npx cdk deploy '{updated.name}/serving-digits'"
    model = _model(_releases(updated), "bert")
    assert [one["digest"] for one in model["releases"]] == [B, A]
    assert model["deployed"] is None
    assert re.search(rf"could not be compared with what is deployed.*{gone} is gone", model["differs"])
    assert again in model["fix"]
    assert _rollback(updated, "bert", "--yes").exit_code == 0
    assert updated.records() == {"bert": A}


def test_where_the_deployed_set_expired_and_the_record_too_bucket_key_and_command_are_named(
    updated: Deployment,
) -> None:
    gone = _expire_sets(updated)
    updated.aws.client("ssm").delete_parameter(Name=f"/tritonstack/{updated.name}/digits/bert")
    with pytest.raises(
        WorkFailedError, match=rf"(?s)digits/bert has no release record.*{gone} is gone.*do: .*npx cdk deploy"
    ):
        _rollback(updated, "digits/bert", "--to", A, "--yes")


def test_without_a_build_project_this_machine_builds(deployment: Deployment) -> None:
    folder = write_double(deployment.project)
    digest = model_digest(source_of(folder))
    deployment.deploy({"double": digest})
    deployment.deploy({"double": B})
    for kind, ending in (("endpoints", "tar.gz"), ("manifests", "json")):
        key = f"{kind}/digits/{T4}/double.{digest}.{ending}"
        deployment.aws.client("s3").delete_object(Bucket=deployment.bucket, Key=key)
    _rollback(deployment, "double", "--yes")
    assert f"double.{digest}.tar.gz" in deployment.archives()
    assert deployment.records() == {"double": digest}


def test_what_can_be_built_nowhere_moves_nothing(deployment: Deployment) -> None:
    _prepared_to_build(deployment, "true")
    deployment.aws.client("ssm").delete_parameter(Name=f"/tritonstack/{deployment.name}/_builds/project-name")
    with pytest.raises(TritonstackError, match="a digest whose inputs are kept"):
        _rollback(deployment, "double", "--yes")
    assert deployment.records() == {"double": B}


def test_a_checkout_for_another_platform_builds_nothing(deployment: Deployment) -> None:
    _prepared_to_build(deployment, "true")
    deployment.deploy({"double": B}, platform=OTHER)
    with pytest.raises(InputError, match=f"digits for {OTHER}"):
        _rollback(deployment, "double", "--yes")
    assert deployment.records() == {"double": B}


def _ended_builds(deployment: Deployment) -> list[dict[str, Any]]:
    """The builds of the deployment's project, when all have ended."""
    codebuild = deployment.aws.client("codebuild")
    ids = codebuild.list_builds_for_project(projectName=f"{deployment.name}-builds")["ids"]
    found: list[dict[str, Any]] = wait_until(
        lambda: codebuild.batch_get_builds(ids=ids)["builds"], lambda builds: all(b["buildComplete"] for b in builds)
    )
    return found


# What the stand-in for the build project does: it puts the archives of its order into the bucket.
BUILD = (
    "import boto3, json, os; from urllib.parse import urlsplit; u = urlsplit(os.environ['TRITONSTACK_ORDER']); "
    "s3 = boto3.client('s3'); o = json.loads(s3.get_object(Bucket=u.netloc, Key=u.path[1:])['Body'].read()); "
    "[s3.put_object(Bucket=u.netloc, Body=b'', Key='endpoints/%s/%s-%s/%s.%s.tar.gz' % (o['endpoint'], "
    "o['platform']['release'], o['platform']['gpu'].lower(), a['model'], a['digest'])) for a in o['archives']]"
)


def _prepared_to_build(deployment: Deployment, command: str) -> None:
    """An earlier digest without an archive anywhere, and a build project that runs ``command``."""
    write_double(deployment.project)
    deployment.deploy({"double": A})
    deployment.deploy({"double": B})
    for kind, ending in (("endpoints", "tar.gz"), ("manifests", "json")):
        key = f"{kind}/digits/{T4}/double.{A}.{ending}"
        deployment.aws.client("s3").delete_object(Bucket=deployment.bucket, Key=key)
    project = f"{deployment.name}-builds"
    make_project(deployment.aws, project, buildspec(command))
    deployment.parameter(f"/tritonstack/{deployment.name}/_builds/project-name", project)


def test_a_digest_without_an_archive_is_built_by_the_project_before_the_record_moves(
    deployment: Deployment,
) -> None:
    _prepared_to_build(deployment, f'.envs/main/bin/python -c "{BUILD}"')
    _rollback(deployment, "double", "--yes")
    assert f"double.{A}.tar.gz" in deployment.archives()
    assert deployment.records() == {"double": A}


def test_a_build_that_fails_is_reported_with_its_log_and_moves_nothing(deployment: Deployment) -> None:
    _prepared_to_build(deployment, "echo FAILED in phase export of it: no such thing; exit 1")
    with pytest.raises(WorkFailedError, match="no such thing"):
        _rollback(deployment, "double", "--yes")
    assert deployment.records() == {"double": B}


def test_interrupted_before_the_move_nothing_moves_and_the_build_is_stopped(deployment: Deployment) -> None:
    _prepared_to_build(deployment, "sleep 300")
    program = [sys.executable, "-m", "tritonstack", "rollback", "-e", deployment.name, "double", "--yes"]
    codebuild = deployment.aws.client("codebuild")
    project = f"{deployment.name}-builds"
    with subprocess.Popen(program, cwd=REPOSITORY, stderr=subprocess.PIPE) as process:
        ids = wait_until(lambda: codebuild.list_builds_for_project(projectName=project)["ids"], bool)
        wait_until(lambda: codebuild.batch_get_builds(ids=ids)["builds"][0]["currentPhase"], "BUILD".__eq__)
        process.send_signal(signal.SIGINT)
        _, expected = process.communicate(timeout=60)
    assert process.returncode == 130, expected.decode()
    assert deployment.records() == {"double": B}
    assert [build["buildStatus"] for build in _ended_builds(deployment)] == ["STOPPED"]
