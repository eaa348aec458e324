"""The stack of load tests: what is in it for which endpoints, and its state machine."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from stacks.load_test import definition
from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import allowed, listed, of_type, only, properties, template_of
from tests.stacks.environments import DIGITS, SINGLE, environment, stage
from tests.stacks.test_network import CREATED, SUBNETS, endpoints, network_template
from tritonstack.naming import load_test_job_prefix

# `lambda` is a keyword: an import statement cannot name the folder.
objects: Any = importlib.import_module("lambda.load_test.objects")
LOAD_TEST = {"recommender": {"at_once": 3}, "log_days": 30}


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    made = stage(environment(DIGITS, SINGLE, load_test=LOAD_TEST)).load_test
    assert made is not None
    return template_of(made)


def test_an_environment_without_load_tests_has_no_such_stack_and_no_such_log_in_its_key() -> None:
    made = stage(environment())
    assert made.load_test is None
    assert "load-tests" not in json.dumps(template_of(made.artifacts))


def test_multi_model_endpoints_alone_need_no_state_machine_and_single_models_no_project() -> None:
    for endpoint, wanted, absent in (
        (DIGITS, "AWS::CodeBuild::Project", "AWS::StepFunctions::StateMachine"),
        (SINGLE, "AWS::StepFunctions::StateMachine", "AWS::CodeBuild::Project"),
    ):
        made = stage(environment(endpoint, load_test={})).load_test
        assert made is not None
        assert of_type(template_of(made), wanted)
        assert not of_type(template_of(made), absent)


def test_an_execution_that_was_cancelled_has_the_function_called(template: dict[str, Any]) -> None:
    rule = properties(template, "AWS::Events::Rule")
    machine, _ = only(template, "AWS::StepFunctions::StateMachine")
    function, _ = only(template, "AWS::Lambda::Function")
    assert rule["EventPattern"]["detail"] == {
        "stateMachineArn": [{"Fn::GetAtt": [machine, "Arn"]}],
        "status": ["ABORTED", "FAILED", "TIMED_OUT"],
    }
    [target] = rule["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": [function, "Arn"]}


def states(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, dict[str, Any]]]:
    """Each state with the machine that it is in."""
    for name, state in document["States"].items():
        yield document, name, state
        if "ItemProcessor" in state:
            yield from states(state["ItemProcessor"])


def test_every_state_can_be_reached_and_every_next_one_is_there() -> None:
    for machine, name, state in states(dict(definition(at_once=2, partition="aws"))):
        following = {state.get("Next"), state.get("Default"), *(one["Next"] for one in state.get("Choices", []))}
        following |= {one["Next"] for one in state.get("Catch", [])}
        assert following - {None} <= set(machine["States"]), name
        everywhere = {
            each
            for other in machine["States"].values()
            for each in (
                other.get("Next"),
                other.get("Default"),
                *(one["Next"] for one in (*other.get("Choices", []), *other.get("Catch", []))),
            )
        }
        assert name in everywhere | {machine["StartAt"]}, f"{name} is never reached"


def test_each_step_that_may_leave_something_leads_to_the_clean_up_and_none_waits_with_sync() -> None:
    text = json.dumps(definition(at_once=2, partition="aws"))
    assert ".sync" not in text
    for name in ("Register", "Measure", "Gather"):
        [catch] = definition(at_once=2, partition="aws")["States"][name]["Catch"]
        assert (catch["ErrorEquals"], catch["Next"]) == (["States.ALL"], "CleanUpAfterFailure")


def test_every_step_is_retried_and_what_a_clean_up_has_closed_is_not() -> None:
    """One failed request must not end a test of hours: each step may be repeated."""
    tasks = {
        name: state["Retry"]
        for _, name, state in states(dict(definition(at_once=2, partition="aws")))
        if state["Type"] == "Task"
    }
    assert set(tasks) == {"Register", "Start", "NotStarted", "Look", "Gather", "CleanUp", "CleanUpAfterFailure"}
    for name, retries in tasks.items():
        assert retries[-1]["ErrorEquals"] == ["States.TaskFailed"], name
        assert retries[-1]["MaxAttempts"] > 1, name
    closed = ["ClosedError", "MadeTooLateError"]
    assert {kind.__name__ for kind in (objects.ClosedError, objects.MadeTooLateError)} == set(closed)
    for name in ("Register", "Start"):  # the steps that make something
        assert tasks[name][0] == {"ErrorEquals": closed, "MaxAttempts": 0}


def test_names_of_jobs_leave_room_for_their_test_and_no_two_environments_share_them() -> None:
    long = [f"{'a' * 40}-{end}" for end in ("one", "two")]
    assert {len(load_test_job_prefix(each)) <= 16 for each in (*long, "dev")} == {True}
    assert load_test_job_prefix(long[0]) != load_test_job_prefix(long[1])
    assert load_test_job_prefix("dev") == "dev-lt-"


OWN_IMAGE = "210987654321.dkr.ecr.us-east-1.amazonaws.com/team/cpu:1"


@pytest.mark.parametrize(
    ("endpoint", "changes", "added"),
    [
        (DIGITS, {}, {"logs", "monitoring", "sagemaker.api"}),
        (
            DIGITS,
            {"load_test": {"bench": {"image": OWN_IMAGE}}},
            {"logs", "monitoring", "sagemaker.api", "ecr.api", "ecr.dkr"},
        ),
        (DIGITS, {"builds": {"outside_network": True}}, set()),
        (SINGLE, {}, set()),
    ],
)
def test_only_a_build_in_the_network_that_calls_endpoints_adds_ways_to_what_it_calls(
    endpoint: dict[str, Any], changes: dict[str, Any], added: set[str]
) -> None:
    given = {"load_test": {}, "network": CREATED, **changes}
    ways = endpoints(network_template(stage(environment(endpoint, **given))))
    assert set(ways) == {"s3", "sagemaker.runtime", "ssm"} | added
    assert ("-assets-123456789012-" in json.dumps(ways["s3"])) is bool(added), "where its source lies"


@pytest.mark.parametrize(("endpoint", "used"), [(DIGITS, {"BuildNetwork"}), (SINGLE, set())])
def test_only_the_used_outputs_of_a_network_are_parameters(endpoint: dict[str, Any], used: set[str]) -> None:
    made = stage(environment(endpoint, load_test={}, network=CREATED)).load_test
    assert made is not None
    network_parameters = [
        name for name, each in template_of(made)["Parameters"].items() if "/_network/" in str(each.get("Default"))
    ]
    assert {re.split("Network", name)[0] + "Network" for name in network_parameters} == used


def test_a_load_test_s_build_and_its_jobs_join_the_network() -> None:
    """SageMaker developer guide, "Give Inference Recommender Jobs Access to Resources in Your Amazon VPC"."""
    made = stage(environment(DIGITS, SINGLE, load_test={}, network=CREATED)).load_test
    assert made is not None
    template = template_of(made)
    parameters = {name: each["Default"] for name, each in template["Parameters"].items() if "Default" in each}
    joined = properties(template, "AWS::CodeBuild::Project")["VpcConfig"]
    assert parameters[joined["VpcId"]["Ref"]] == "/tritonstack/dev/_network/vpc-id"
    assert [parameters[each["Ref"]] for each in joined["SecurityGroupIds"]] == [
        "/tritonstack/dev/_network/builds-security-group-0"
    ]
    joins = [each for each in allowed(template) if each["Sid"] in ("JoinNetwork", "TestInNetwork")]
    assert all(each["Resource"] == "*" and "Condition" not in each for each in joins)
    named = {action for each in joins for action in each["Action"]}
    assert {"ec2:CreateNetworkInterface", "ec2:DescribeVpcEndpoints", "ec2:ModifyNetworkInterfaceAttribute"} <= named


def ranges(made: EnvironmentStage) -> set[str]:
    """Address ranges that the containers' group has egress to."""
    [group] = [
        each["Properties"]
        for each in of_type(network_template(made), "AWS::EC2::SecurityGroup").values()
        if each["Properties"]["GroupDescription"].startswith("Containers")
    ]
    return {rule["CidrIp"] for rule in group["SecurityGroupEgress"] if "CidrIp" in rule}


def test_containers_reach_only_the_subnets_where_inference_recommender_tests_them() -> None:
    """The same page, "Configure the VPC security group": outbound to the subnet CIDR ranges of the job."""
    imported = {"vpc_id": "vpc-1", "subnets": SUBNETS, "subnet_ranges": ["10.0.1.0/24", "10.0.2.0/24"]}
    taken = {"s3_prefix_list_id": "pl-1a", "imported": imported}
    for network, found in ((CREATED, {"10.20.0.0/20", "10.20.32.0/20"}), (taken, set(imported["subnet_ranges"]))):
        given = {"load_test": {}, "network": network}
        assert ranges(stage(environment(SINGLE, **given))) == found
        assert ranges(stage(environment(DIGITS, **given))) == set()


def test_a_lasting_group_may_be_added_to_and_neither_it_nor_a_version_deleted() -> None:
    made = stage(environment(SINGLE, load_test={"recommender": {"model_package_group": "bert-large"}})).load_test
    assert made is not None
    template = template_of(made)
    found = [each for each in allowed(template) if "bert-large" in json.dumps(each["Resource"])]
    assert sorted(action for each in found for action in listed(each["Action"])) == [
        "sagemaker:CreateModelPackage",
        "sagemaker:CreateModelPackageGroup",
        "sagemaker:DescribeModelPackage",
        "sagemaker:DescribeModelPackage",
        "sagemaker:DescribeModelPackageGroup",
    ]
    _, function = only(template, "AWS::Lambda::Function")
    assert function["Properties"]["Environment"]["Variables"]["LASTING_GROUP"] == "bert-large"


def test_of_archives_alone_no_stack_serves_and_the_load_test_reads_their_archives() -> None:
    made = stage(environment(SINGLE, load_test={"archives_only": True}, dashboard=True, alarms={}))
    assert (made.serving, made.observability) == ({}, None)
    assert made.load_test is not None
    assert f"endpoints/{SINGLE['name']}/" in json.dumps(template_of(made.load_test))


def test_one_job_that_cannot_be_started_or_followed_ends_alone() -> None:
    inner = definition(at_once=2, partition="aws")["States"]["Measure"]["ItemProcessor"]["States"]
    assert [(each["ErrorEquals"], each["Next"]) for each in inner["Start"]["Catch"]] == [
        (["ClosedError", "MadeTooLateError"], "Closed"),
        (["States.ALL"], "NotStarted"),
    ]
    assert [each["Next"] for each in inner["Look"]["Catch"]] == ["Ended"]
    assert inner["NotStarted"]["Next"] == "Ended"
