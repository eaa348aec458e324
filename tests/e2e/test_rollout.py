"""The release of an endpoint changes with a canary while callers call: taken back by an alarm, then carried through,
then cancelled. No call fails.

The environment has two instances, which the local AWS serves with one container a fleet: the canary of one of two
instances takes every second call. The waits are ten minutes and one, on the emulator's clock.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.callers import Callers, digits_by_name, digits_by_target
from tests.e2e.calls import target_model
from tests.e2e.conftest import endpoint
from tests.e2e.project import Project, environment_yaml
from tritonstack.local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME, ENDPOINT, ALARM = "guarded", "moving", "guarded-moving-errors"
WAIT, TERMINATION = 600, 60
SHARE_ENOUGH = 20
"""Requests that each fleet must have answered while both take calls."""


def write(project: Project, release: str) -> None:
    """The environment file with this Triton release."""
    rollout = (
        f"{{kind: canary, size_instances: 1, wait_seconds: {WAIT}, termination_wait_seconds: {TERMINATION}, "
        f"maximum_execution_minutes: 120, rollback_alarms: [{ALARM}], accept_multi_model: true}}"
    )
    text = endpoint(ENDPOINT, ["digits-onnx", "digits-ensemble"]).replace('"24.09"', f'"{release}"')
    text = text.replace("initial_instance_count: 1", "initial_instance_count: 2").removesuffix("}")
    project.write(f"environments/{NAME}.yaml", environment_yaml(name=NAME, endpoints=[f"{text}, rollout: {rollout}}}"]))


@pytest.fixture(scope="module")
def guarded(project: Project, local_aws: LocalAws) -> Iterator[LocalAws]:
    """The environment deployed with release 24.09, and an alarm that is well."""
    local_aws.client("cloudwatch").put_metric_alarm(
        AlarmName=ALARM,
        Namespace="NobodyWritesThis",
        MetricName="Errors",
        Period=60,
        EvaluationPeriods=1,
        Statistic="Sum",
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    set_alarm(local_aws, "OK")
    write(project, "24.09")
    project.run("deploy-local", NAME)
    yield local_aws
    project.run("destroy-local", NAME)
    (project.root / "environments" / f"{NAME}.yaml").unlink(missing_ok=True)


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


class Deployment:
    """``tritonstack deploy-local`` in the background."""

    def __init__(self, project: Project, *, expect: int) -> None:
        """``expect`` is the exit code."""
        self.printed = ""
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(project, expect), daemon=True)
        self._thread.start()

    def _run(self, project: Project, expect: int) -> None:
        try:
            result = project.run("deploy-local", NAME, expect=expect)
            self.printed = result.stdout + result.stderr
        except BaseException as error:  # noqa: BLE001  (raised again in the test's own thread)
            self._error = error

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def ended(self) -> str:
        """What it printed, once it has ended as expected."""
        self._thread.join(timeout=120)
        assert not self.running, "the deployment does not end"
        if self._error is not None:
            raise self._error
        return self.printed


def until(look: Callable[[], Any], deployment: Deployment, *, seconds: float = 120.0) -> Any:
    """What ``look`` finds, as soon as it is anything; the deployment must go on until then."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if not deployment.running:
            raise AssertionError(f"the deployment ended too early: {deployment.ended()}")
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)
    return found


def set_alarm(aws: LocalAws, state: str) -> None:
    """The alarm's state, as a person sets it to try a rollback."""
    aws.client("cloudwatch").set_alarm_state(AlarmName=ALARM, StateValue=state, StateReason="a test")


def advance(aws: LocalAws, seconds: int) -> None:
    """Move the clock of the local AWS."""
    body = json.dumps({"advance_seconds": seconds}).encode()
    url = f"{aws.emulator_url}/_tritonstack/clock"
    request = urllib.request.Request(url, data=body, method="POST")  # noqa: S310  (on loopback)
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310  (on loopback)
        assert answer.status == 200


def described(aws: LocalAws) -> dict[str, Any]:
    """DescribeEndpoint."""
    answer: dict[str, Any] = aws.client("sagemaker").describe_endpoint(EndpointName=f"{NAME}-{ENDPOINT}")
    return answer


def baking(aws: LocalAws, instances: int) -> bool:
    """Whether the alarms are watched while so many of the new fleet's instances take calls."""
    [variant] = described(aws).get("PendingDeploymentSummary", {}).get("ProductionVariants", [{}])
    stages = [status["Status"] for status in variant.get("VariantStatus", [])]
    return stages == ["Baking"] and variant["CurrentInstanceCount"] == instances


def fleets(aws: LocalAws) -> dict[str, dict[str, Any]]:
    """The endpoint's fleets by the release that was asked for."""
    found = next(one for one in aws.runtime_status()["endpoints"] if one["name"] == f"{NAME}-{ENDPOINT}")
    return {fleet["release_asked_for"]: fleet for fleet in found["fleets"]}


def both_answer(aws: LocalAws, deployment: Deployment, *, new: str, old: str) -> None:
    """Wait until the canary is on and both fleets have answered enough calls, each from its own prefix."""
    until(lambda: baking(aws, 1), deployment)
    before = {release: fleet["requests"] for release, fleet in fleets(aws).items()}
    assert before.keys() == {new, old}
    until(
        lambda: all(fleets(aws)[one]["requests"] >= before[one] + SHARE_ENOUGH for one in (new, old)),
        deployment,
    )
    found = fleets(aws)
    assert {release: fleet["share"] for release, fleet in found.items()} == {new: 0.5, old: 0.5}
    for release, fleet in found.items():
        assert f"/endpoints/{ENDPOINT}/{release}-t4/" in fleet["model_data"]
        assert fleet["errors"] == 0


def finish(aws: LocalAws, deployment: Deployment) -> None:
    """Let the canary's wait and the last one pass."""
    until(lambda: baking(aws, 1), deployment)
    advance(aws, WAIT + 1)
    until(lambda: baking(aws, 2), deployment)
    advance(aws, TERMINATION + 1)


def one_fleet(aws: LocalAws, release: str) -> None:
    """Wait until this release's fleet alone is there, with every call."""
    deadline = time.monotonic() + 30
    while fleets(aws).keys() != {release}:
        assert time.monotonic() < deadline, fleets(aws).keys()
        time.sleep(0.1)
    assert fleets(aws)[release]["share"] == 1.0


def test_a_release_change_taken_back_by_an_alarm_and_then_carried_through_fails_no_call(
    project: Project, guarded: LocalAws, callers: Callers
) -> None:
    before = described(guarded)["EndpointConfigName"]
    write(project, "25.04")
    deployment = Deployment(project, expect=1)
    both_answer(guarded, deployment, new="25.04", old="24.09")
    assert "50% of the calls" in project.run("status").stdout
    set_alarm(guarded, "ALARM")
    printed = deployment.ended()
    assert ALARM in printed
    assert "Traceback" not in printed
    after = described(guarded)
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", before)
    assert f"Alarm {ALARM} went into state ALARM" in after["FailureReason"]
    one_fleet(guarded, "24.09")
    callers.check()

    set_alarm(guarded, "OK")
    deployment = Deployment(project, expect=0)
    both_answer(guarded, deployment, new="25.04", old="24.09")
    finish(guarded, deployment)
    deployment.ended()
    after = described(guarded)
    assert after["EndpointStatus"] == "InService"
    assert after["EndpointConfigName"] != before
    one_fleet(guarded, "25.04")
    callers.check()


def test_an_update_that_is_cancelled_amid_its_canary_fails_no_call(
    project: Project, guarded: LocalAws, callers: Callers
) -> None:
    before = described(guarded)["EndpointConfigName"]
    write(project, "24.09")
    deployment = Deployment(project, expect=1)
    both_answer(guarded, deployment, new="24.09", old="25.04")
    guarded.client("cloudformation").cancel_update_stack(StackName=f"{NAME}-serving-{ENDPOINT}")
    finish(guarded, deployment)  # SageMaker has no call that ends a deployment: it goes on to its end …
    until(
        lambda: described(guarded).get("PendingDeploymentSummary", {}).get("EndpointConfigName") == before, deployment
    )
    finish(guarded, deployment)  # … and back
    deployment.ended()
    assert described(guarded)["EndpointConfigName"] == before
    one_fleet(guarded, "25.04")
    callers.check()
