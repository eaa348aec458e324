"""Scheduled actions and scale-in, by the emulator's clock."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.cases import cases, table
from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tests.tritonstack_local.emulator.running import PYTHON, REPOSITORY, Emulator, make_config
from tests.tritonstack_local.emulator.scaled_endpoint import ScaledEndpoint
from tests.tritonstack_local.emulator.scaled_variants import Tracked, make_scaled, refused, target
from tritonstack.config import load_environment

FROM = datetime(2030, 3, 28, tzinfo=UTC)  # a Thursday, three days before Europe's change to summer time
SCHEDULES = table(__file__, "schedules", dict[str, tuple[dict[str, Any], list[str]]])


def test_a_schedule_means_these_moments() -> None:
    actions = [{"Timezone": "UTC", "CreationTime": FROM.timestamp(), **action} for action, _ in SCHEDULES.values()]
    source = (
        "import itertools, json, sys\nfrom tritonstack_local.emulator.autoscaling.schedule import moments\n"
        f"print(json.dumps([list(itertools.islice(moments(each, after={FROM.timestamp()}), 3))"
        " for each in json.load(sys.stdin)]))"
    )
    done = subprocess.run(  # where MiniStack is, which reads the expressions
        [PYTHON, "-c", source], input=json.dumps(actions), capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    found = {
        name: [f"{datetime.fromtimestamp(moment, tz=UTC):%m-%dT%H:%M}" for moment in moments]
        for name, moments in zip(SCHEDULES, json.loads(done.stdout), strict=True)
    }
    assert found == {name: expected for name, (_, expected) in SCHEDULES.items()}


@cases("schedule, zone, words")
def test_what_is_no_schedule_is_refused_with_the_field(
    aws: Emulator, name: str, schedule: str, zone: str, words: str
) -> None:
    action = {"ScheduledActionName": "s", "Schedule": schedule, "Timezone": zone}
    scaling = make_scaled(aws, name)
    message = refused(scaling.put_scheduled_action, **target(name), **action, ScalableTargetAction={"MinCapacity": 2})
    assert "Invalid schedule expression" in message
    assert words in message


class Scheduled(Tracked):
    """An endpoint of 1 to 4 instances whose limits change at times from now."""

    def put(self, name: str = "", *, schedule: str = "", hours: float = 0, **limits: int) -> None:
        """A scheduled action; without ``schedule`` a daily one, some hours from now by the clocks of India."""
        local = datetime.fromtimestamp(self.now() + hours * 3600, tz=ZoneInfo("Asia/Kolkata"))
        self.scaling.put_scheduled_action(
            **target(self.name),
            ScheduledActionName=name,
            Schedule=schedule or f"cron({local.minute} {local.hour} * * ? *)",
            Timezone="Asia/Kolkata",
            ScalableTargetAction={f"{limit.title()}Capacity": value for limit, value in limits.items()},
        )

    @property
    def limits_and_count(self) -> tuple[int, int, int]:
        """Least, most and present number of instances."""
        of = {"ServiceNamespace": "sagemaker", "ResourceIds": [target(self.name)["ResourceId"]]}
        [found] = self.scaling.describe_scalable_targets(**of)["ScalableTargets"]
        return found["MinCapacity"], found["MaxCapacity"], self.instances


def test_a_schedule_moves_the_limits_each_day_at_its_time_and_the_count_into_them(aws: Emulator, name: str) -> None:
    scheduled = Scheduled(aws, name)
    scheduled.put("day", hours=2, min=3, max=4)
    scheduled.put("night", hours=8, min=1, max=2)
    scheduled.pass_minutes(118)
    assert scheduled.limits_and_count == (1, 4, 1)
    scheduled.pass_minutes(3)
    assert scheduled.limits_and_count == (3, 4, 3)
    scheduled.pass_minutes(6 * 60)
    assert scheduled.limits_and_count == (1, 2, 2)
    assert scheduled.activities() == [
        ("Setting min capacity to 3 and max capacity to 4", "scheduled action name day was triggered"),
        ("Setting desired instance count to 3.", "minimum capacity was set to 3"),
        ("Setting min capacity to 1 and max capacity to 2", "scheduled action name night was triggered"),
        ("Setting desired instance count to 2.", "maximum capacity was set to 2"),
    ]
    scheduled.pass_minutes(3 * 24 * 60)
    assert scheduled.limits_and_count == (1, 2, 2), "after more days in one step: in the order of the times"
    assert len(scheduled.activities()) == 8


def test_at_runs_once_and_a_deleted_action_never(aws: Emulator, name: str) -> None:
    scheduled = Scheduled(aws, name)
    at = datetime.fromtimestamp(scheduled.now() + 3600, tz=ZoneInfo("Asia/Kolkata"))
    scheduled.put("sale", schedule=f"at({at:%Y-%m-%dT%H:%M:%S})", min=2)
    scheduled.put("gone", hours=1, min=4)
    scheduled.scaling.delete_scheduled_action(**target(name), ScheduledActionName="gone")
    scheduled.pass_minutes(61)
    assert scheduled.limits_and_count == (2, 4, 2)
    scheduled.scaling.register_scalable_target(**target(name), MinCapacity=1)
    scheduled.pass_minutes(2 * 24 * 60)
    causes = [cause for _, cause in scheduled.activities()]
    assert causes[:2] == ["scheduled action name sale was triggered", "minimum capacity was set to 2"]
    assert not any("scheduled" in cause for cause in causes[2:])


def test_limits_that_contradict_those_of_the_time_are_a_failed_activity(aws: Emulator, name: str) -> None:
    scheduled = Scheduled(aws, name)
    scheduled.put("day", hours=1, min=3)
    scheduled.scaling.register_scalable_target(**target(name), MaxCapacity=2)
    scheduled.pass_minutes(61)
    assert scheduled.limits_and_count == (1, 2, 1)
    of = {"ServiceNamespace": "sagemaker", "ResourceId": target(name)["ResourceId"]}
    [activity] = scheduled.scaling.describe_scaling_activities(**of)["ScalingActivities"]
    assert activity["StatusCode"] == "Failed"
    assert "Maximum capacity 2 cannot be less than minimum capacity 3" in activity["StatusMessage"]


@pytest.mark.parametrize(
    ("limits", "count", "cause"),
    [
        ({"MinCapacity": 2}, 2, "minimum capacity was set to 2"),
        ({"MinCapacity": 3, "MaxCapacity": 3}, 3, "minimum capacity was set to 3"),
    ],
)
def test_a_target_whose_new_limits_exclude_the_count_moves_it(
    aws: Emulator, name: str, limits: dict[str, int], count: int, cause: str
) -> None:
    tracked = Tracked(aws, name)
    tracked.scaling.register_scalable_target(**target(name), **limits)
    tracked.evaluated()
    assert (tracked.instances, tracked.activities()) == (
        count,
        [(f"Setting desired instance count to {count}.", cause)],
    )
    tracked.scaling.register_scalable_target(**target(name), MinCapacity=1, MaxCapacity=1)
    tracked.evaluated()
    assert (tracked.instances, tracked.activities()[-1][1]) == (1, "maximum capacity was set to 1")


def test_a_count_set_by_hand_outside_of_the_limits_stays(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    tracked.evaluated()
    changes = [{"VariantName": "main", "DesiredInstanceCount": 6}]
    tracked.sagemaker.update_endpoint_weights_and_capacities(EndpointName=name, DesiredWeightsAndCapacities=changes)
    tracked.evaluated()
    assert (tracked.instances, tracked.activities()) == (6, [])


def test_a_schedule_during_an_update_moves_the_limits_at_once_and_the_count_after_it(
    fleets: Emulator, name: str
) -> None:
    make_config(fleets, name)
    make_config(fleets, f"{name}-2")
    sagemaker, scaling = fleets.client("sagemaker"), fleets.client("application-autoscaling")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    fleets.report(name, name, "in_service")
    scaling.register_scalable_target(**target(name), MinCapacity=1, MaxCapacity=4)
    scaling.put_scheduled_action(
        **target(name),
        ScheduledActionName="soon",
        Schedule="rate(10 minutes)",
        ScalableTargetAction={"MinCapacity": 3},
    )
    sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=f"{name}-2")
    fleets.advance(601)

    def state() -> tuple[int, int]:
        of = {"ServiceNamespace": "sagemaker", "ResourceIds": [target(name)["ResourceId"]]}
        [found] = scaling.describe_scalable_targets(**of)["ScalableTargets"]
        [variant] = sagemaker.describe_endpoint(EndpointName=name)["ProductionVariants"]
        return found["MinCapacity"], variant["DesiredInstanceCount"]

    assert state() == (3, 1)
    scaling.register_scalable_target(**target(name), MinCapacity=3)  # the same limits: what is due stays so
    fleets.report(name, f"{name}-2", "in_service")
    fleets.advance(0)
    assert state() == (3, 3)


# Scale-in.


def test_instances_are_removed_after_quiet_minutes_and_again_after_the_cooldown(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name, ScaleInCooldown=1200)
    assert tracked.invoked(6000, minutes=3) == 4
    assert tracked.invoked(300, minutes=14) == 4, "fifteen minutes below nine tenths of the target are needed"
    assert tracked.invoked(300) == 2, "in proportion: 4 x 300 / 600"
    low = tracked.alarms["AlarmLow"]["AlarmName"]
    cause = f"monitor alarm {low} in state ALARM triggered policy calls"
    assert tracked.activities()[-1] == ("Setting desired instance count to 2.", cause)
    assert tracked.invoked(300, minutes=19) == 2, "within twenty minutes"
    assert tracked.invoked(300) == 1
    assert tracked.invoked(1, minutes=21) == 1, "the minimum"


def test_an_idle_endpoint_has_calls_of_zero_and_goes_to_its_minimum(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    tracked.scaling.register_scalable_target(**target(name), MinCapacity=2)
    assert tracked.invoked(6000, minutes=3) == 4
    tracked.pass_minutes(17)
    assert tracked.instances == 2


def test_scale_in_waits_for_every_policy_that_may_remove_instances(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name)
    metric = {"Namespace": name, "MetricName": "Busy", "Statistic": "Average"}

    def put(**more: Any) -> None:
        tracked.scaling.put_scaling_policy(
            **target(name),
            PolicyName="busy",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": 60.0,
                "CustomizedMetricSpecification": metric,
                **more,
            },
        )

    def pass_minutes(busy: float, minutes: int) -> int:
        for _ in range(minutes):
            datum = {"MetricName": "Busy", "Timestamp": tracked.shifted_start + 1, "Value": busy}
            tracked.cloudwatch.put_metric_data(Namespace=name, MetricData=[datum])
            tracked.invoked(150)
        return tracked.instances

    put()
    assert tracked.invoked(6000, minutes=3) == 4
    assert pass_minutes(59, 16) == 4, "one is busy"
    assert pass_minutes(45, 15) == 3, "the one that asks for more instances wins: 4 x 45 / 60"
    put(DisableScaleIn=True)
    assert pass_minutes(59, 6) == 1, "after the cooldown, since the busy one has no say"


def test_a_disabled_scale_in_removes_nothing(aws: Emulator, name: str) -> None:
    tracked = Tracked(aws, name, DisableScaleIn=True)
    assert tracked.invoked(6000, minutes=3) == 4
    assert tracked.invoked(1, minutes=18) == 4
    assert tracked.alarms["AlarmLow"]["StateValue"] == "ALARM"


def test_busy_vcpus_scale_a_deployed_stack_out(aws: Emulator, name: str) -> None:
    endpoint = ScaledEndpoint(aws, name)
    assert endpoint.deploy(scaling={"cpu_utilization": 60}) == "CREATE_COMPLETE", aws.failures(name)
    watching, of = Watching(aws, name), {"EndpointName": name, "VariantName": endpoint.live[0]}
    dimensions = [{"Name": key, "Value": value} for key, value in of.items()]
    for percent, count in ((235, 1), (400, 1), (400, 1), (400, 2)):  # 60 % of each of four vCPUs are 240
        datum = {"MetricName": "CPUUtilization", "Unit": "Percent", "Dimensions": dimensions, "Value": percent}
        datum["Timestamp"] = watching.shifted_start + 1
        watching.cloudwatch.put_metric_data(Namespace="/aws/sagemaker/Endpoints", MetricData=[datum])
        watching.pass_minutes()
        assert endpoint.live[1] == count


def test_the_schedules_of_a_committed_environment_run_on_the_deployed_stack(aws: Emulator, name: str) -> None:
    environment = load_environment(REPOSITORY / "environments/dev.yaml")
    [scaling] = [each.scaling for each in environment.endpoints if each.scaling and each.scaling.schedules]
    endpoint = ScaledEndpoint(aws, name)
    assert endpoint.deploy(scaling=scaling.model_dump(exclude_unset=True)) == "CREATE_COMPLETE", aws.failures(name)
    [(least, most)] = endpoint.targets.values()
    endpoint.scale(most)
    seen = set()
    for _ in range(7 * 4):
        aws.advance(6 * 3600)
        seen |= {(*limits, endpoint.live[1]) for limits in endpoint.targets.values()}
    assert {(least, 1, 1), (least, most, 1)} <= seen <= {(least, most, most), (least, 1, 1), (least, most, 1)}
