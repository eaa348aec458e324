"""What becomes of a deployment whose build takes hours, fails, is stopped, or whose update is cancelled.

The real CDK command line and the real Triton; a release that was deployed before serves all the while.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.deployments import InBackground, advance, aws_fails, eventually
from tests.e2e.engine_failures import (
    ENDPOINT,
    MODEL,
    STACK,
    check_deployed,
    check_failed,
    check_unmoved,
    fails_while,
    serving,
    write,
)
from tests.e2e.engines import T4, EngineProject, waits_for
from tests.e2e.project import Project
from tritonstack.naming import ArchiveName
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME = "failures"
TWO_HOURS, STEPS = 7200, 8
FOREVER = 10_000
SLOW_JOBS = {"method": "GET", "path": "/staging/jobs/", "status": None, "times": FOREVER, "delay_seconds": 5.0}
"""An engine's machine gets its job slowly, so that it is at it for a while."""


def failure_of(phase: str) -> str:
    """A failure's first words: its phase and archive."""
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
        check_failed(engines, before, printed, said=[failure_of("export"), "RuntimeError: the disk is full"])
        cause.unlink()
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


def expire_jobs(engines: EngineProject) -> None:
    """What a build that was ended could not remove goes by the bucket's rule for ``staging/``, a week later."""
    left = engines.keys("staging/jobs/")
    assert left, "the build was ended before it could do anything more"
    for key in left:
        engines.aws.client("s3").delete_object(Bucket=engines.bucket, Key=key)


def job_statuses(engines: EngineProject) -> list[str]:
    """Of the environment's processing jobs, newest first."""
    return [job["ProcessingJobStatus"] for job in engines.processing_jobs()]


def test_a_cancelled_update_leaves_the_release_and_the_next_update_takes_its_archive(
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
