"""What becomes of a deployment whose build takes hours, fails, or is ended: the real CDK CLI and the real Triton."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.deployments import InBackground, advance
from tests.e2e.engine_failures import (
    ENDPOINT,
    MODEL,
    STACK,
    check_deployed,
    check_failed,
    fails_while,
    serving,
    write,
)
from tests.e2e.engines import T4, EngineProject, waits_for
from tests.e2e.project import Project
from tritonstack.local.aws import LocalAws
from tritonstack.naming import ArchiveName

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
TWO_HOURS = 7200
STEPS = 8


@pytest.fixture(scope="module")
def engines(project: Project, local_aws: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProject]:
    """An endpoint whose first deployment waited two hours for its build."""
    made = EngineProject(project, local_aws, "failures")
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
    yield made
    local_aws.client("cloudformation").delete_stack(StackName=f"failures-{STACK}")  # its Triton ends
    (project.root / "environments" / "failures.yaml").unlink(missing_ok=True)


def test_a_deployment_with_a_build_of_two_hours_succeeds(engines: EngineProject) -> None:
    assert engines.stack(STACK)["StackStatus"] == "CREATE_COMPLETE"
    [build] = engines.builds()
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
        check_failed(
            engines, before, printed, said=[f"FAILED in phase export of {MODEL}.", "RuntimeError: the disk is full"]
        )
        cause.unlink()
        engines.deploy()
    check_deployed(engines, before)
