"""The release of an endpoint changes with a canary while callers call: taken back by an alarm, then carried through,
then cancelled. No call fails.

The environment has two instances, which the local AWS serves with one container a fleet: the canary of one of two
instances takes every second call. The waits are ten minutes and two, on the emulator's clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.calls import Callers, digits_by_name, digits_by_target, target_model
from tests.e2e.conftest import endpoint
from tests.e2e.deployments import SHARE_ENOUGH, Deployment, Updated
from tests.e2e.project import Project, environment_yaml
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME, ENDPOINT = "guarded", "moving"
WAIT, TERMINATION = 600, 120
RELEASE = "release_asked_for"


def write(project: Project, release: str) -> None:
    rollout = (
        f"{{kind: canary, size_instances: 1, wait_seconds: {WAIT}, termination_wait_seconds: {TERMINATION}, "
        "accept_multi_model: true}"
    )
    text = endpoint(ENDPOINT, ["digits-onnx", "digits-ensemble"]).replace('"24.09"', f'"{release}"')
    text = text.replace("initial_instance_count: 1", "initial_instance_count: 2").removesuffix("}")
    project.write(f"environments/{NAME}.yaml", environment_yaml(name=NAME, endpoints=[f"{text}, rollout: {rollout}}}"]))


@pytest.fixture(scope="module")
def guarded(project: Project, local_aws: LocalAws) -> LocalAws:
    """The environment deployed with release 24.09."""
    write(project, "24.09")
    project.run("local", "deploy", "-e", NAME)
    return local_aws


@pytest.fixture
def callers(project: Project, guarded: LocalAws, tmp_path: Path) -> Iterator[Callers]:
    """Three callers: two by TargetModel through boto3, one by name through our client."""
    models = project.root / "model_repos"
    target = target_model(guarded, endpoint=ENDPOINT, model="digits-onnx", environment=NAME)
    by_target = [
        digits_by_target(guarded, endpoint=f"{NAME}-{ENDPOINT}", target=target, model=models / "digits-onnx")
        for _ in range(2)
    ]
    by_name = digits_by_name(
        guarded,
        environment=NAME,
        name=f"{ENDPOINT}/digits-ensemble",
        model=models / "digits-ensemble",
        cache=tmp_path / "cache",
    )
    with Callers([*by_target, by_name]).calling() as calling:
        calling.check()
        yield calling


def both_answer(updated: Updated, deployment: Deployment, *, new: str, old: str) -> None:
    """Wait until the canary is on and both fleets have answered enough calls, each from its own prefix."""

    def fleets() -> dict[str, dict[str, Any]]:
        return updated.fleets(by=RELEASE)

    deployment.until(lambda: updated.baking(1))
    before = {release: fleet["requests"] for release, fleet in fleets().items()}
    assert before.keys() == {new, old}
    deployment.until(lambda: all(fleets()[one]["requests"] >= before[one] + SHARE_ENOUGH for one in (new, old)))
    found = fleets()
    assert {release: fleet["share"] for release, fleet in found.items()} == {new: 0.5, old: 0.5}
    for release, fleet in found.items():
        assert f"/endpoints/{ENDPOINT}/{release}-t4/" in fleet["model_data"]
        assert fleet["errors"] == 0


def finish(updated: Updated, deployment: Deployment) -> None:
    """Let the canary's wait and the last one pass."""
    deployment.until(lambda: updated.baking(1))
    updated.advance(WAIT + 1)
    deployment.until(lambda: updated.baking(2))
    updated.advance(TERMINATION + 1)


def test_a_release_change_taken_back_by_an_alarm_and_then_carried_through_fails_no_call(
    project: Project, guarded: LocalAws, callers: Callers
) -> None:
    updated = Updated(guarded, NAME, ENDPOINT)
    before = updated.config
    write(project, "25.04")
    deployment = Deployment(project, NAME, expect=1)
    both_answer(updated, deployment, new="25.04", old="24.09")
    assert "50% of the calls" in project.run("local", "status").stdout
    alarm = f"{updated.pending}-server-errors"
    guarded.client("cloudwatch").set_alarm_state(AlarmName=alarm, StateValue="ALARM", StateReason="a test")
    printed = deployment.ended()
    assert alarm in printed
    assert "Traceback" not in printed
    after = updated.described()
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", before)
    assert f"Alarm {alarm} went into state ALARM" in after["FailureReason"]
    updated.one_fleet("24.09", by=RELEASE)
    callers.check()

    deployment = Deployment(project, NAME, expect=0)
    both_answer(updated, deployment, new="25.04", old="24.09")
    finish(updated, deployment)
    deployment.ended()
    after = updated.described()
    assert after["EndpointStatus"] == "InService"
    assert after["EndpointConfigName"] != before
    updated.one_fleet("25.04", by=RELEASE)
    callers.check()


def test_an_update_that_is_cancelled_amid_its_canary_fails_no_call(
    project: Project, guarded: LocalAws, callers: Callers
) -> None:
    updated = Updated(guarded, NAME, ENDPOINT)
    before = updated.config
    write(project, "24.09")
    deployment = Deployment(project, NAME, expect=1)
    both_answer(updated, deployment, new="24.09", old="25.04")
    guarded.client("cloudformation").cancel_update_stack(StackName=f"{NAME}-serving-{ENDPOINT}")
    finish(updated, deployment)  # SageMaker has no call that ends a deployment: it goes on to its end …
    deployment.until(lambda: updated.pending == before)
    finish(updated, deployment)  # … and back
    deployment.ended()
    assert updated.config == before
    updated.one_fleet("25.04", by=RELEASE)
    callers.check()
