"""What becomes of a deployment whose build takes hours, fails, is ended, is raced, or loses S3.

The real CDK command line and the real Triton; a release that was deployed before serves all the while.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.deployments import InBackground, advance, aws_fails, eventually, faults_left
from tests.e2e.engine_failures import (
    ENDPOINT,
    MODEL,
    STACK,
    Before,
    check_deployed,
    check_failed,
    check_unmoved,
    failed_event,
    fails_while,
    serving,
    tritonstack,
    versions,
    write,
)
from tests.e2e.engines import A10G, T4, EngineProject, waits_for
from tests.e2e.project import Project
from tritonstack.naming import ArchiveName, archive_key
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME = "failures"
TWO_HOURS, STEPS = 7200, 8
OTHER_IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.05-py3"
FOREVER = 10_000
ADDED = "added"
ADDED_STACK = f"serving-{ADDED}"
SLOW_JOBS = {"method": "GET", "path": "/staging/jobs/", "status": None, "times": FOREVER, "delay_seconds": 5.0}
"""An engine's machine gets its job slowly, so that it is at it for a while."""


def told(phase: str) -> str:
    """How a failure names its phase and archive."""
    return f"FAILED in phase {phase} of {MODEL}."


@pytest.fixture(scope="module")
def served(project: Project, local_aws: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> EngineProject:
    """An endpoint whose first deployment waited two hours for its build."""
    made = EngineProject(project, local_aws, NAME)
    folder = tmp_path_factory.mktemp("markers")
    go, started = folder / "go", folder / "started"
    made.add_model(MODEL, before_export=waits_for(go, started=started))
    write(made)
    deployment = InBackground(made.deploy)
    deployment.until(started.exists)
    for _ in range(STEPS):
        advance(local_aws, TWO_HOURS // STEPS)
    go.touch()
    deployment.ended()
    return made


@pytest.fixture
def engines(served: EngineProject) -> EngineProject:
    """It, whatever the test before did to its file."""
    write(served)
    return served


@pytest.fixture
def held(tmp_path: Path) -> tuple[Path, Path]:
    """The file for which an export waits, and the one that tells that it began."""
    return tmp_path / "go", tmp_path / "started"


def test_a_deployment_with_a_build_of_two_hours_succeeds(engines: EngineProject) -> None:
    assert engines.stack(STACK)["StackStatus"] == "CREATE_COMPLETE"
    build = engines.builds()[-1]
    assert build["buildStatus"] == "SUCCEEDED"
    assert (build["endTime"] - build["startTime"]).total_seconds() >= TWO_HOURS
    archive = ArchiveName(model=MODEL, digest=engines.record(ENDPOINT, MODEL))
    assert engines.has(ENDPOINT, T4, archive)
    assert engines.invoke(ENDPOINT, MODEL)


def test_an_export_that_fails_fails_the_deployment_and_a_retry_with_the_same_inputs_works(
    engines: EngineProject, local_aws: LocalAws, tmp_path: Path
) -> None:
    cause = tmp_path / "cause"
    cause.touch()
    engines.add_model(MODEL, seed=2, before_export=fails_while(cause))
    with serving(local_aws, engines) as before:
        printed = engines.deploy(expect=1)
        check_failed(engines, before, printed, said=[told("export"), "RuntimeError: the disk is full"])
        cause.unlink()
        engines.deploy()
    check_deployed(engines, before)


def test_an_image_of_another_release_than_planned_is_found_out_on_its_machine(
    engines: EngineProject, local_aws: LocalAws
) -> None:
    engines.add_model(MODEL, seed=1)
    write(engines, more=f", image: {OTHER_IMAGE}")
    with serving(local_aws, engines) as before:
        printed = engines.deploy(expect=1)
        said = ["planned for Triton 24.09 with TensorRT 10.4", "is TensorRT 10.0.1", f"/processing-jobs/{NAME}-engine-"]
        check_failed(engines, before, printed, said=[told("engine"), *said])
        write(engines)
        engines.deploy()
    check_deployed(engines, before)


def test_an_engine_that_answers_otherwise_than_its_graph_is_refused(
    engines: EngineProject, local_aws: LocalAws
) -> None:
    def add(tolerance: float) -> None:
        engine = {
            "precision": "graph",
            "graph_precision": "fp16",
            "workspace_mib": 64,
            "shapes": {"x": {"min": [1, 4], "opt": [4, 4], "max": [8, 4]}},
            "tolerance": tolerance,
        }
        engines.add_model(MODEL, seed=20, engine=engine)

    add(1e-9)
    with serving(local_aws, engines) as before:
        printed = engines.deploy(expect=1)
        said = ["tensor y: differs by up to", "1e-09 allowed", "ONNX Runtime"]
        check_failed(engines, before, printed, said=[told("proof"), *said])
        add(1e-2)
        engines.deploy()
    check_deployed(engines, before)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """What S3 does not write: a part of the path, its answer for good, the phase that fails, and S3's code."""

    seed: int
    path: str
    status: int
    phase: str
    code: str


@pytest.mark.parametrize(
    "refused",
    [
        Refused(seed=3, path="/staging/jobs/", status=403, phase="engine", code="AccessDenied"),
        Refused(seed=4, path="/endpoints/", status=403, phase="commit", code="AccessDenied"),
        Refused(seed=5, path="/endpoints/", status=503, phase="commit", code="SlowDown"),
    ],
    ids=["staging refused", "commit refused", "S3 lost for good"],
)
def test_what_s3_refuses_fails_the_deployment_and_a_retry_with_the_same_inputs_works(
    engines: EngineProject, local_aws: LocalAws, refused: Refused
) -> None:
    engines.add_model(MODEL, seed=refused.seed)
    fault = {"method": "PUT", "path": refused.path, "status": refused.status, "times": FOREVER}
    with serving(local_aws, engines) as before:
        with aws_fails(local_aws, fault):
            printed = engines.deploy(expect=1)
        said = [told(refused.phase), "could not write s3://", refused.path, refused.code]
        check_failed(engines, before, printed, said=said)
        check_alone(engines, before, committing=refused.phase == "commit")
        engines.deploy()
    new = check_deployed(engines, before)
    assert len(versions(engines, archive_key(endpoint=ENDPOINT, platform=T4, archive=new))) == 1


def check_alone(engines: EngineProject, before: Before, *, committing: bool) -> None:
    """A manifest is committed before its archive; one that stays alone is no release to anybody."""
    alone = {key.rpartition("/")[2] for key in engines.keys("manifests/") - before.manifests}
    rows = json.loads(tritonstack(engines, "prepare", NAME, "--dry-run", "--json"))["archives"]
    [planned] = [row for row in rows if row["digest"] != before.archive.digest]
    assert planned["outcome"] == "build"
    assert alone == ({f"{MODEL}.{planned['digest']}.json"} if committing else set())
    assert planned["digest"] not in tritonstack(engines, "releases", NAME)


def test_s3_that_stumbles_for_a_few_requests_fails_nothing(engines: EngineProject, local_aws: LocalAws) -> None:
    engines.add_model(MODEL, seed=6)
    faults = [
        {"method": "PUT", "path": "/staging/jobs/", "status": 503, "times": 2},
        {"method": "GET", "path": "/staging/jobs/", "status": 500, "times": 2},
        {"method": "PUT", "path": "/inputs/", "status": 500, "times": 2},
        {"method": "PUT", "path": "/endpoints/", "status": 503, "times": 3},
    ]
    with serving(local_aws, engines) as before, aws_fails(local_aws, *faults):
        engines.deploy()
        assert faults_left(local_aws) == 0
    check_deployed(engines, before)


def test_a_build_that_takes_longer_than_it_may_fails_the_deployment(
    engines: EngineProject, local_aws: LocalAws, held: tuple[Path, Path]
) -> None:
    go, started = held
    engines.add_model(MODEL, seed=7, before_export=waits_for(go, started=started))
    with serving(local_aws, engines) as before:
        deployment = InBackground(lambda: engines.deploy(expect=1))
        deployment.until(started.exists)
        [build] = engines.builds()[:1]
        advance(local_aws, 60 * build["timeoutInMinutes"] + 1)
        said = ["took longer than it may", "Build has timed out after 480 minutes"]
        check_failed(engines, before, deployment.ended(), said=said)
        go.touch()
        engines.deploy()
    check_deployed(engines, before)


def test_a_build_that_is_stopped_by_hand_fails_the_deployment(
    engines: EngineProject, local_aws: LocalAws, held: tuple[Path, Path]
) -> None:
    go, started = held
    engines.add_model(MODEL, seed=8, before_export=waits_for(go, started=started))
    with serving(local_aws, engines) as before:
        deployment = InBackground(lambda: engines.deploy(expect=1))
        deployment.until(started.exists)
        [build] = engines.builds()[:1]
        local_aws.client("codebuild").stop_build(id=build["id"])
        check_failed(engines, before, deployment.ended(), said=["was stopped by hand", "Build has been stopped"])
        go.touch()
        engines.deploy()
    check_deployed(engines, before)


def test_engines_that_a_stopped_build_had_started_are_stopped_with_it(
    engines: EngineProject, local_aws: LocalAws
) -> None:
    engines.add_model(MODEL, seed=11)
    with serving(local_aws, engines) as before:
        with aws_fails(local_aws, SLOW_JOBS):
            deployment = InBackground(lambda: engines.deploy(expect=1))
            deployment.until(lambda: "InProgress" in job_statuses(engines))
            local_aws.client("codebuild").stop_build(id=engines.builds()[0]["id"])
            printed = deployment.ended()
            eventually(lambda: job_statuses(engines)[0] == "Stopped")
        expire_jobs(engines)
        check_failed(engines, before, printed, said=["was stopped by hand"])
        engines.deploy()
    check_deployed(engines, before)


def test_engines_on_codebuild_s_gpu_machine_are_stopped_with_the_build_too(
    engines: EngineProject, local_aws: LocalAws
) -> None:
    engines.add_model("added-engine", seed=12)
    engines.write({ENDPOINT: (T4, [MODEL]), ADDED: (A10G, ["added-engine"])})
    with aws_fails(local_aws, SLOW_JOBS):
        deployment = InBackground(lambda: engines.deploy(expect=1))
        deployment.until(lambda: "IN_PROGRESS" in engine_builds(engines))
        local_aws.client("codebuild").stop_build(id=engines.builds()[0]["id"])
        deployment.ended()
        eventually(lambda: engine_builds(engines) == ["STOPPED"])
    expire_jobs(engines)


def expire_jobs(engines: EngineProject) -> None:
    """What a build that was ended could not remove goes by the bucket's rule for ``staging/``, a week later."""
    left = engines.keys("staging/jobs/")
    assert left, "the build was ended before it could do anything more"
    for key in left:
        engines.aws.client("s3").delete_object(Bucket=engines.bucket, Key=key)


def job_statuses(engines: EngineProject) -> list[str]:
    """Of the environment's processing jobs, newest first."""
    return [job["ProcessingJobStatus"] for job in engines.processing_jobs()]


def engine_builds(engines: EngineProject) -> list[str]:
    """The statuses of the engine project's builds, newest first; none before there is such a project."""
    try:
        return [build["buildStatus"] for build in engines.builds("engine-project-name")]
    except engines.aws.client("ssm").exceptions.ParameterNotFound:
        return []


def test_an_archive_that_two_builds_make_at_once_is_committed_once(
    engines: EngineProject, local_aws: LocalAws, tmp_path: Path
) -> None:
    go, begun = tmp_path / "go", tmp_path / "begun"
    begun.mkdir()
    said = f"import os, pathlib\npathlib.Path({str(begun)!r}, str(os.getpid())).touch()\n"
    engines.add_model(MODEL, seed=9, before_export=said + waits_for(go, started=tmp_path / "started"))
    with serving(local_aws, engines) as before:
        deployment = InBackground(engines.deploy)
        by_hand = InBackground(lambda: tritonstack(engines, "prepare", NAME))
        deployment.until(lambda: len(list(begun.iterdir())) == 2)
        go.touch()
        deployment.ended()
        printed = by_hand.ended()
    new = check_deployed(engines, before)
    key = archive_key(endpoint=ENDPOINT, platform=T4, archive=new)
    assert f"{key}  built" in printed or f"{key}  another was first" in printed
    assert len(versions(engines, key)) == 1


def test_an_update_that_is_cancelled_leaves_the_release_and_the_next_takes_what_its_build_made(
    engines: EngineProject, local_aws: LocalAws, held: tuple[Path, Path]
) -> None:
    go, started = held
    engines.add_model(MODEL, seed=10, before_export=waits_for(go, started=started))
    with serving(local_aws, engines) as before:
        deployment = InBackground(lambda: engines.deploy(expect=1))
        deployment.until(started.exists)
        local_aws.client("cloudformation").cancel_update_stack(StackName=f"{NAME}-{STACK}")
        printed = deployment.ended()
        assert "Traceback" not in printed
        check_unmoved(engines, before)
        [build] = engines.builds()[: len(engines.builds()) - before.builds]
        assert build["buildStatus"] == "IN_PROGRESS", "a build goes on, whatever becomes of who waits for it"
        go.touch()
        eventually(lambda: engines.builds()[0]["buildStatus"] == "SUCCEEDED")
        engines.deploy()
    check_deployed(engines, before)
    assert len(engines.builds()) == before.builds + 1, "what it made is used"


def test_a_first_deployment_that_fails_is_taken_back_and_a_retry_with_the_same_inputs_works(
    engines: EngineProject, local_aws: LocalAws, tmp_path: Path
) -> None:
    model, cause = "added-engine", tmp_path / "cause"
    cause.touch()
    engines.add_model(model, before_export=fails_while(cause))
    engines.write({ENDPOINT: (T4, [MODEL]), ADDED: (A10G, [model])})
    with serving(local_aws, engines) as before:
        printed = engines.deploy(expect=1)
        assert f"FAILED in phase export of {model}." in failed_event(engines, ADDED_STACK)["ResourceStatusReason"]
        assert f"FAILED in phase export of {model}." in printed
        assert engines.stack(ADDED_STACK)["StackStatus"] == "ROLLBACK_COMPLETE"
        assert engines.keys("endpoints/") == before.archives
        cause.unlink()
        engines.deploy()
    assert engines.stack(ADDED_STACK)["StackStatus"] == "CREATE_COMPLETE"
    assert engines.invoke(ADDED, model)
    assert engines.builds("engine-project-name")[0]["buildStatus"] == "SUCCEEDED"
