"""The observability stack: its CloudWatch resources, who may publish to the topic, and no reference to other stacks."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from constructs_lib.monitoring import Alarms
from stacks.observability import ObservabilityStack
from tests.constructs_lib.templates import flat, new_app, of_type, only, properties, template_of
from tests.engines.engine_environments import A10G
from tests.monitoring.settings_of import SCALING
from tests.stacks.engine_stages import engine_stage
from tests.stacks.environments import DIGITS, SINGLE, environment, stage
from tritonstack.config import Thresholds
from tritonstack.monitoring.alarms import endpoint_alarms
from tritonstack.monitoring.graphs import variants_of

SCALED = {**DIGITS, "scaling": SCALING}
EVERYTHING: dict[str, Any] = {
    "dashboard": True,
    "alarms": {
        "email": ["night@example.com"],
        "runbooks": "https://git.example.com/docs/operations.md",
        "thresholds": {"no_traffic_minutes": 30, "budget_usd_per_hour": 50.0},
    },
}


def observability(*endpoints: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = stage(environment(*endpoints, **changes)).observability
    assert made is not None
    return template_of(made)


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return observability(SCALED, SINGLE, **EVERYTHING)


def alarms(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Alarm's name → its properties."""
    found = of_type(template, "AWS::CloudWatch::Alarm").values()
    return {each["Properties"]["AlarmName"]: each["Properties"] for each in found}


def test_an_environment_without_dashboard_and_alarms_has_no_such_stack() -> None:
    assert stage(environment()).observability is None


def test_a_dashboard_alone_needs_no_key_no_topic_and_no_alarm() -> None:
    made = observability(dashboard=True)
    types = sorted(each["Type"] for each in made["Resources"].values())
    assert types == ["AWS::CloudWatch::Dashboard", "AWS::Logs::QueryDefinition", "AWS::SSM::Parameter"]
    assert not [each for each in made["Parameters"] if each != "BootstrapVersion"]


def test_loads_and_unloads_are_a_saved_query_and_counted_where_the_log_group_is_made_first() -> None:
    """A metric filter needs the group, which the serving stack makes where logs.endpoint_days is set."""
    made = observability(DIGITS, SINGLE, dashboard=True, logs={"endpoint_days": 30})
    query = properties(made, "AWS::Logs::QueryDefinition")
    assert query["LogGroupNames"] == ["/aws/sagemaker/Endpoints/dev-digits"]  # a single model is loaded once
    assert "successfully (un)?loaded '" in query["QueryString"]
    found = [each["Properties"] for each in of_type(made, "AWS::Logs::MetricFilter").values()]
    assert {each["LogGroupName"] for each in found} == {"/aws/sagemaker/Endpoints/dev-digits"}
    assert {each["FilterPattern"] for each in found} == {'"successfully loaded \'"', '"successfully unloaded \'"'}
    body = flat(properties(made, "AWS::CloudWatch::Dashboard")["DashboardBody"])
    for each in found:
        [to] = each["MetricTransformations"]
        assert f'["{to["MetricNamespace"]}","{to["MetricName"]}",{{' in body
    assert "ModelsUnloaded" not in flat(
        properties(observability(DIGITS, dashboard=True), "AWS::CloudWatch::Dashboard")["DashboardBody"]
    )


def test_it_is_deployed_after_all_that_it_watches(tmp_path: Path) -> None:
    header = "builds: {on_deploy: true}\ndashboard: true"
    made = engine_stage(tmp_path, A10G, header=header)
    assert made.observability is not None
    assert made.builds is not None
    watched: set[cdk.Stack] = {made.artifacts, made.builds, *made.serving.values()}
    assert watched <= set(made.observability.dependencies)
    body = flat(properties(template_of(made.observability), "AWS::CloudWatch::Dashboard")["DashboardBody"])
    assert '"AWS/CodeBuild","FailedBuilds","ProjectName","${ProjectName}"' in body
    assert '"AWS/CodeBuild","FailedBuilds","ProjectName","${EngineProjectName}"' in body


def test_every_alarm_states_what_missing_data_means_and_links_its_runbook(template: dict[str, Any]) -> None:
    found = alarms(template)
    assert len(found) == (3 + 1 + 1 + 2) + (3 + 2 + 2)
    for name, each in found.items():
        assert each["TreatMissingData"] in {"breaching", "notBreaching", "ignore"}
        anchor = name.removeprefix("dev-digits-").removeprefix("dev-single-")
        assert each["AlarmDescription"].endswith(f"https://git.example.com/docs/operations.md#{anchor}")
        assert "AlarmActions" not in each


def test_each_severity_has_one_composite_alarm_of_all_its_alarms_and_only_they_notify(template: dict[str, Any]) -> None:
    topic, _ = only(template, "AWS::SNS::Topic")
    composites = {
        each["Properties"]["AlarmName"]: each for each in of_type(template, "AWS::CloudWatch::CompositeAlarm").values()
    }
    assert set(composites) == {"dev-critical", "dev-warning"}
    ids = {each["Properties"]["AlarmName"]: key for key, each in of_type(template, "AWS::CloudWatch::Alarm").items()}
    topics = [
        key for kind in ("Topic", "TopicPolicy", "Subscription") for key in of_type(template, f"AWS::SNS::{kind}")
    ]
    assert len(topics) == 3
    named = []
    for each in composites.values():
        assert each["Properties"]["AlarmActions"] == each["Properties"]["OKActions"] == [{"Ref": topic}]
        names = [part.split('"')[1] for part in each["Properties"]["AlarmRule"].split(" OR ")]
        # The first message of one that was made before the topic's policy would be refused.
        assert sorted(each["DependsOn"]) == sorted([*(ids[name] for name in names), *topics])
        named += names
    assert sorted(named) == sorted(alarms(template))
    assert 'ALARM("dev-digits-server-errors")' in composites["dev-critical"]["Properties"]["AlarmRule"]


def composites_of(stack: cdk.Stack) -> dict[str, dict[str, Any]]:
    """Name → properties of the composite alarms of a stack."""
    found = of_type(template_of(stack), "AWS::CloudWatch::CompositeAlarm").values()
    return {each["Properties"]["AlarmName"]: each["Properties"] for each in found}


@pytest.mark.parametrize(
    ("count", "length", "parts"),
    [(100, 80, 1), (101, 80, 2), (100, 89, 1), (100, 90, 2)],
    ids=["100 children", "101 children", "a rule of 10,196 characters", "a rule of 10,296 characters"],
)
def test_more_alarms_than_a_composite_alarm_can_name_are_in_parts_of_the_notifying_one(
    count: int, length: int, parts: int
) -> None:
    """A child takes 13 characters of the rule besides its name: ``ALARM("…")``, and `` OR `` before all but one."""
    settings = environment(DIGITS)
    variants = variants_of(settings, settings.endpoints[0])
    [first, *_others] = endpoint_alarms(variants, Thresholds(), at_maximum_rules={})
    suffix = f"-{first.kind.anchor}"
    subjects = [f"{number:03}".ljust(length - len(suffix), "x") for number in range(count)]
    made = [dataclasses.replace(first, subject=each) for each in subjects]
    stack = cdk.Stack(new_app(), "observability")
    Alarms(stack, "Alarms", environment="dev", alarms=made, runbooks="https://git.example.com", topic="arn:topic")
    rules = composites_of(stack)
    severity = f"dev-{first.kind.severity}"
    numbered = [f"{severity}-{number}" for number in range(1, parts + 1)] if parts > 1 else []
    assert rules.keys() == {severity, *numbered}
    assert children(rules[severity]) == (numbered or [each.name for each in made])
    assert [name for name, each in rules.items() if "AlarmActions" in each] == [severity]
    named = [child for name in numbered or [severity] for child in children(rules[name])]
    assert named == [each.name for each in made]
    assert max(len(children(each)) for each in rules.values()) <= 100
    assert max(len(each["AlarmRule"]) for each in rules.values()) <= 10240, "API reference, PutCompositeAlarm"


def children(composite: dict[str, Any]) -> list[str]:
    """The alarms that a composite alarm names."""
    return [part.split('"')[1] for part in composite["AlarmRule"].split(" OR ")]


def test_only_this_environment_s_alarms_write_into_the_topic_and_only_encrypted(template: dict[str, Any]) -> None:
    statements = properties(template, "AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    [allowed] = [each for each in statements if each["Effect"] == "Allow"]
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}
    source = flat(allowed["Condition"]["ArnLike"]["aws:SourceArn"])
    assert source == "arn:aws:cloudwatch:us-east-1:123456789012:alarm:dev-*"
    [denied] = [each for each in statements if each["Effect"] == "Deny"]
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


EVENT = {
    "source": "aws.application-autoscaling",
    "detail-type": "Application Auto Scaling Scaling Activity State Change",
    "detail": {
        "newDesiredCapacity": 4,
        "oldDesiredCapacity": 3,
        "minCapacity": 1,
        "maxCapacity": 4,
        "resourceId": "endpoint/dev-digits/variant/g4dn-xlarge",
        "scalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "serviceNamespace": "sagemaker",
        "statusCode": "Successful",
        "scaledToMax": True,
        "direction": "scale-out",
    },
}
"""The user guide's example, of a variant."""


def matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    """EventBridge's matching of exact values."""
    return all(
        matches(wanted, event.get(name, {})) if isinstance(wanted, dict) else event.get(name) in wanted
        for name, wanted in pattern.items()
    )


def test_the_documented_event_of_the_endpoint_matches_its_rule_and_no_other_event_does(
    template: dict[str, Any],
) -> None:
    pattern = properties(template, "AWS::Events::Rule")["EventPattern"]
    assert matches(pattern, EVENT)
    other = {"resourceId": "endpoint/dev-other/variant/g4dn-xlarge"}
    for change in (other, {"scaledToMax": False}, {"serviceNamespace": "ecs"}):
        assert not matches(pattern, {**EVENT, "detail": {**EVENT["detail"], **change}})  # type: ignore[dict-item]


def test_the_alarm_at_the_maximum_counts_what_that_rule_hands_on(template: dict[str, Any]) -> None:
    rule, found = only(template, "AWS::Events::Rule")
    alarm = alarms(template)["dev-digits-at-maximum-instances"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Events", "Invocations")
    assert alarm["Dimensions"] == [{"Name": "RuleName", "Value": {"Ref": rule}}]
    queue, _ = only(template, "AWS::SQS::Queue")
    assert [each["Arn"] for each in found["Properties"]["Targets"]] == [{"Fn::GetAtt": [queue, "Arn"]}]
    statements = properties(template, "AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]
    [allowed] = [each for each in statements if each["Effect"] == "Allow"]
    assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": [{"Fn::GetAtt": [rule, "Arn"]}]}}


def test_undelivered_events_of_builds_are_looked_for_in_the_queue_of_the_builds_stack() -> None:
    stack = ObservabilityStack(
        new_app(), "observability", environment=environment(alarms={}), builds=True, engines=False
    )
    made = template_of(stack)
    alarm = alarms(made)["dev-undelivered-build-events"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/SQS", "ApproximateNumberOfMessagesVisible")
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": {"Ref": "UndeliveredQueueName"}}]
    name = made["Parameters"]["UndeliveredQueueName"]["Default"]
    assert name == "/tritonstack/dev/_builds/undelivered-queue-name"
    of_builds = {each for each in alarms(made) if not each.startswith("dev-digits-")}
    assert of_builds == {"dev-archives-build-failed", "dev-undelivered-build-events"}


def test_failed_clean_ups_of_load_tests_raise_the_alarm_of_their_stacks_queue() -> None:
    made = stage(environment(SINGLE, alarms={}, load_test={}))
    assert made.observability is not None
    assert made.load_test in made.observability.dependencies
    watching = template_of(made.observability)
    alarm = alarms(watching)["dev-load-test-not-cleaned-up"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/SQS", "ApproximateNumberOfMessagesVisible")
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": {"Ref": "LoadTestsUndeliveredQueueName"}}]
    read = watching["Parameters"]["LoadTestsUndeliveredQueueName"]["Default"]
    assert read == "/tritonstack/dev/_load-test/undelivered-queue-name"
    assert read in {
        each["Properties"]["Name"] for each in of_type(template_of(made.load_test), "AWS::SSM::Parameter").values()
    }


def test_an_endpoint_s_own_thresholds_replace_the_environment_s() -> None:
    own = {**DIGITS, "alarms": {"p99_latency_ms": 50.0}}
    other = {**DIGITS, "name": "other"}
    found = alarms(observability(own, other, alarms={"thresholds": {"p99_latency_ms": 700.0}}))
    assert (found["dev-digits-latency"]["Threshold"], found["dev-other-latency"]["Threshold"]) == (50.0, 700.0)
