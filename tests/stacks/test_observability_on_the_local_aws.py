"""The synthesised observability stack in the local AWS: each failure fires its own alarm and no other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from constructs_lib.scaling import ScaledVariant, policies
from stacks.observability import ObservabilityStack
from tests.constructs_lib.templates import new_app, template_of
from tests.stacks.environments import DIGITS, SINGLE, environment
from tests.tritonstack_local.emulator.cloudwatch.watching import Inbox
from tests.tritonstack_local.emulator.running import Emulator, make_config
from tritonstack.config import Scaling
from tritonstack.monitoring.dashboard import dashboard_of

SCALED = {**DIGITS, "scaling": {"minimum": 1, "maximum": 4, "invocations_per_instance": 600.0}}
SETTINGS: dict[str, Any] = {
    "dashboard": True,
    "alarms": {"thresholds": {"no_traffic_minutes": 5, "budget_usd_per_hour": 9.0, "p99_latency_ms": 200.0}},
}
PARAMETERS = {
    "/tritonstack/dev/_artifacts/bucket-name": "bucket",
    "/tritonstack/dev/_artifacts/key-arn": "arn:aws:kms:us-east-1:123456789012:key/artifacts",
    "/tritonstack/dev/_builds/project-name": "archives-project",
    "/tritonstack/dev/_builds/engine-project-name": "engines-project",
    "/tritonstack/dev/_builds/undelivered-queue-name": "undelivered",
    "/cdk-bootstrap/hnb659fds/version": "30",
}
pytestmark = pytest.mark.long
STACK = "dev-observability"
QUIET_MINUTES = 30
"""After what happened once: an alarm looks at some periods of five minutes, and ends when it is in none of them."""
MINUTE = 60
MULTI = {"EndpointName": "dev-digits", "VariantName": "g4dn-xlarge"}
ONE = {"EndpointName": "dev-single", "VariantName": "g5-12xlarge"}
CALLS, INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"


@dataclass(frozen=True, kw_only=True)
class Written:
    """One metric of a minute: the values that it is made of."""

    namespace: str
    name: str
    of: Mapping[str, str]
    values: tuple[float, ...]

    def datum(self, moment: float) -> dict[str, Any]:
        """For PutMetricData."""
        dimensions = [{"Name": key, "Value": value} for key, value in self.of.items()]
        unit = "Percent" if self.name.endswith("Utilization") else "None"  # as SageMaker: a policy reads it alone
        named = {"MetricName": self.name, "Timestamp": moment, "Unit": unit, "Dimensions": dimensions}
        return {**named, "Values": list(self.values)}


class Watched:
    """The deployed stack, and a world of metrics that is well unless a test breaks it."""

    def __init__(self, aws: Emulator) -> None:
        self.aws, self.cloudwatch = aws, aws.client("cloudwatch")

    def live(self, *broken: Written, minutes: int = 26) -> dict[str, str]:
        """Minutes of calls with what is ``broken`` in each of them; then the state of every alarm by its name.

        They are written all at once, in the past that the clock leaves behind: alarms may see a silence before.
        """
        self.aws.advance((minutes + 1) * MINUTE)
        for number in range(minutes):
            self._write(broken, minutes_ago=minutes - number)
        return self.states()

    def live_on(self, *broken: Written, minutes: int) -> dict[str, str]:
        """As ``live``, minute by minute, so that every evaluation has data of the failure alone."""
        for _ in range(minutes):
            self._write(broken, minutes_ago=1)
            self.aws.advance(MINUTE)
        return self.states()

    def _write(self, broken: tuple[Written, ...], *, minutes_ago: int) -> None:
        """One minute. Times are the caller's: the emulator shifts them by the minutes that its clock is ahead."""
        changed = {(each.namespace, each.name, each.of.get("EndpointName")) for each in broken}
        well = [each for each in _well() if (each.namespace, each.name, each.of["EndpointName"]) not in changed]
        moment = int(time.time() // MINUTE - minutes_ago) * MINUTE + 1
        for namespace in (CALLS, INSTANCES):
            data = [each.datum(moment) for each in (*well, *broken) if each.namespace == namespace]
            if data:
                self.cloudwatch.put_metric_data(Namespace=namespace, MetricData=data)

    def states(self) -> dict[str, str]:
        """The state of every alarm after an evaluation now; composite alarms are among them."""
        self.aws.advance(0)
        found = self.cloudwatch.describe_alarms(
            AlarmNamePrefix="dev-", AlarmTypes=["MetricAlarm", "CompositeAlarm"], MaxRecords=100
        )
        return {each["AlarmName"]: each["StateValue"] for each in (*found["MetricAlarms"], *found["CompositeAlarms"])}


def _well() -> Iterator[Written]:
    """A minute in which nothing is wrong."""
    for of in (MULTI, ONE):
        for name, values in {
            "Invocations": (1.0,) * 100,
            "InvocationsPerInstance": (1.0,) * 100,
            "Invocation5XXErrors": (0.0,) * 100,
            "InvocationModelErrors": (0.0,) * 100,
            "ModelLatency": (20_000.0,) * 100,
        }.items():
            yield Written(namespace=CALLS, name=name, of=of, values=values)
    yield Written(namespace=CALLS, name="ModelCacheHit", of=MULTI, values=(1.0,) * 95 + (0.0,) * 5)
    yield Written(namespace=CALLS, name="ModelLoadingWaitTime", of=MULTI, values=(4_000_000.0,) * 5)
    for name, value in (("DiskUtilization", 40.0), ("GPUMemoryUtilization", 4 * 60.0)):
        yield Written(namespace=INSTANCES, name=name, of=ONE, values=(value,))


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """The stack, deployed into an emulator of its own."""
    aws = Emulator(tmp_path_factory.mktemp("watched"), TRITONSTACK_FLEETS="none").wait_ready()
    for name, value in PARAMETERS.items():
        aws.client("ssm").put_parameter(Name=name, Value=value, Type="String")
    stack = ObservabilityStack(
        new_app(), "observability", environment=environment(SCALED, SINGLE, **SETTINGS), builds=True, engines=True
    )
    cloudformation = aws.client("cloudformation")
    cloudformation.create_stack(StackName=STACK, TemplateBody=json.dumps(template_of(stack)))
    assert aws.settled(STACK)["StackStatus"] == "CREATE_COMPLETE", aws.failures(STACK)
    yield aws
    assert aws.delete_stack(STACK) == "DELETE_COMPLETE"
    left = aws.client("cloudwatch").describe_alarms(AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    assert not [each["AlarmName"] for kind in ("MetricAlarms", "CompositeAlarms") for each in left[kind]]
    assert aws.client("cloudwatch").list_dashboards()["DashboardEntries"] == []
    assert aws.stop() == 0


@pytest.fixture
def watched(deployed: Emulator) -> Watched:
    return Watched(deployed)


def errors(name: str, count: int, *, of: Mapping[str, str] = MULTI) -> Written:
    return Written(namespace=CALLS, name=name, of=of, values=(1.0,) * count + (0.0,) * (100 - count))


def gauge(name: str, value: float) -> Written:
    return Written(namespace=INSTANCES, name=name, of=ONE, values=(value,))


def loading(*, hits: int, wait_ms: float) -> tuple[Written, Written]:
    missed = 100 - hits
    return (
        Written(namespace=CALLS, name="ModelCacheHit", of=MULTI, values=(1.0,) * hits + (0.0,) * missed),
        Written(namespace=CALLS, name="ModelLoadingWaitTime", of=MULTI, values=(wait_ms * 1000,) * missed),
    )


SLOW = Written(namespace=CALLS, name="ModelLatency", of=ONE, values=(20_000.0,) * 97 + (300_000.0,) * 3)
DEAR = Written(namespace=CALLS, name="InvocationsPerInstance", of=MULTI, values=(1 / 13,) * 100)
BROKEN: dict[str, tuple[tuple[Written, ...], str, str]] = {
    "calls fail": ((errors("Invocation5XXErrors", 5),), "dev-digits-server-errors", "dev-critical"),
    "the container answers with errors": (
        (errors("InvocationModelErrors", 12, of=ONE),),
        "dev-single-model-errors",
        "dev-warning",
    ),
    "three calls in a hundred are slow": ((SLOW,), "dev-single-latency", "dev-warning"),
    "models come and go": (loading(hits=30, wait_ms=3000), "dev-digits-cache-thrashing", "dev-warning"),
    "the disk fills": ((gauge("DiskUtilization", 91.0),), "dev-single-disk-nearly-full", "dev-critical"),
    "four GPUs fill": ((gauge("GPUMemoryUtilization", 4 * 97.0),), "dev-single-gpu-memory-nearly-full", "dev-critical"),
    "thirteen instances run": ((DEAR,), "dev-digits-cost-over-budget", "dev-warning"),
}


@pytest.mark.parametrize(("broken", "alarm", "severity"), BROKEN.values(), ids=BROKEN.keys())
def test_what_breaks_makes_its_own_alarm_and_its_severity_go_on_and_no_other(
    watched: Watched, broken: tuple[Written, ...], alarm: str, severity: str
) -> None:
    assert on(watched.live(*broken)) == {alarm, severity}


WELL = {
    "nothing is wrong": (),
    "two calls of a hundred fail": (errors("Invocation5XXErrors", 2),),
    "few hits whose loads are short": loading(hits=30, wait_ms=200),
    "long loads of few calls": loading(hits=97, wait_ms=30_000),
    "one GPU's worth of memory in four": (gauge("GPUMemoryUtilization", 97.0),),
}


@pytest.mark.parametrize("less", WELL.values(), ids=WELL.keys())
def test_what_is_no_fault_makes_no_alarm(watched: Watched, less: tuple[Written, ...]) -> None:
    assert on(watched.live(*less)) == set()


def test_an_endpoint_without_requests_notifies_and_nothing_else(watched: Watched) -> None:
    watched.live()
    watched.aws.advance(10 * MINUTE)
    assert on(watched.states()) == {"dev-digits-no-traffic", "dev-single-no-traffic", "dev-critical"}


# Notifications by events: the events come from the local services, and no metric is written in their place.


@pytest.fixture
def scaled(watched: Watched) -> Iterator[Watched]:
    """With the endpoint, its target of 1 to 4 instances and its policy: 600 calls a minute for each of them."""
    variant = ScaledVariant(
        endpoint_name="dev-digits",
        variant_name="g4dn-xlarge",
        gpu_count=1,
        vcpu=4,
        initial_instance_count=1,
        scaling=Scaling.model_validate({**SCALED["scaling"], "cpu_utilization": 60}),
    )
    aws = watched.aws
    make_config(aws, "dev-digits", VariantName="g4dn-xlarge")
    aws.client("sagemaker").create_endpoint(EndpointName="dev-digits", EndpointConfigName="dev-digits")
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/dev-digits/variant/g4dn-xlarge",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling = aws.client("application-autoscaling")
    scaling.register_scalable_target(**target, MinCapacity=1, MaxCapacity=4)
    for name, configuration in policies(variant).values():
        scaling.put_scaling_policy(
            **target,
            PolicyName=name,
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=configuration,
        )
    yield watched
    scaling.deregister_scalable_target(**target)
    sagemaker = aws.client("sagemaker")
    sagemaker.delete_endpoint(EndpointName="dev-digits")
    sagemaker.delete_endpoint_config(EndpointConfigName="dev-digits")
    sagemaker.delete_model(ModelName="dev-digits")


def instances(aws: Emulator) -> int:
    [variant] = aws.client("sagemaker").describe_endpoint(EndpointName="dev-digits")["ProductionVariants"]
    return int(variant["DesiredInstanceCount"])


def live_under(watched: Watched, calls: int, *, minutes: int) -> dict[str, str]:
    """Minutes of so many calls, shared by the instances that there are in each of them."""
    states: dict[str, str] = {}
    for _ in range(minutes):
        each = calls / instances(watched.aws) / 100
        written = Written(namespace=CALLS, name="InvocationsPerInstance", of=MULTI, values=(each,) * 100)
        states = watched.live_on(written, minutes=1)
    return states


def on(states: Mapping[str, str]) -> set[str]:
    return {name for name, state in states.items() if state == "ALARM"}


def test_the_event_of_scaling_to_the_maximum_makes_its_alarm_and_lies_in_the_queue(scaled: Watched) -> None:
    assert on(live_under(scaled, 900, minutes=5)) == set()
    assert instances(scaled.aws) == 2, "900 calls where 600 are the target: 1.5 times one instance, rounded up"
    states = live_under(scaled, 2900, minutes=6)
    assert instances(scaled.aws) == 4, "2900 / 600 would be five, and four is the maximum"
    assert on(states) == {"dev-digits-at-maximum-instances", "dev-warning"}
    resources = scaled.aws.client("cloudformation").describe_stack_resources(StackName=STACK)["StackResources"]
    [queue] = [each["PhysicalResourceId"] for each in resources if each["ResourceType"] == "AWS::SQS::Queue"]
    [kept] = scaled.aws.client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    detail = json.loads(kept["Body"])["detail"]
    assert (detail["oldDesiredCapacity"], detail["newDesiredCapacity"], detail["scaledToMax"]) == (2, 4, True)
    assert on(live_under(scaled, 2900, minutes=QUIET_MINUTES)) == set(), "told once, though it stays at the maximum"


def test_instances_are_added_while_their_vcpus_are_busier_than_the_target(scaled: Watched) -> None:
    """Of 4 vCPUs each: a target of 60 % is 240 % in CloudWatch."""
    for busy, minutes, count in ((235.0, 5, 1), (350.0, 5, 2)):
        scaled.live_on(Written(namespace=INSTANCES, name="CPUUtilization", of=MULTI, values=(busy,)), minutes=minutes)
        assert instances(scaled.aws) == count


def test_the_topic_is_notified_once_of_a_severity_with_the_alarm_and_when_it_is_over(watched: Watched) -> None:
    watched.live()
    inbox = Inbox(watched.aws, "told")
    topics = watched.aws.client("sns").list_topics()["Topics"]
    [topic] = [each["TopicArn"] for each in topics if each["TopicArn"].endswith(":dev-alarms")]
    watched.aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=inbox.arn)
    watched.live_on(errors("Invocation5XXErrors", 50), minutes=5)
    [message] = [json.loads(each["Message"]) for each in inbox.wait()]
    assert (message["AlarmName"], message["NewStateValue"]) == ("dev-critical", "ALARM")
    assert "dev-digits-server-errors" in json.dumps(message)
    watched.live_on(minutes=8)
    [over] = [json.loads(each["Message"]) for each in inbox.wait()]
    assert (over["AlarmName"], over["NewStateValue"]) == ("dev-critical", "OK")


def test_cloudwatch_takes_the_dashboard_and_gives_it_back_whole(watched: Watched) -> None:
    body = json.loads(watched.cloudwatch.get_dashboard(DashboardName="tritonstack-dev")["DashboardBody"])
    definition = dashboard_of(environment(SCALED, SINGLE, **SETTINGS), projects=None)
    titles = [each["properties"]["title"] for each in body["widgets"] if each["type"] == "metric"]
    assert titles[: len(list(definition.graphs()))] == [graph.title for _, graph in definition.graphs()]
    projects = {row[3] for each in body["widgets"][-4:] for row in each["properties"]["metrics"] if len(row) > 1}
    assert projects == {"archives-project", "engines-project"}
