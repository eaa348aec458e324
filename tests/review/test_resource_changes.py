"""What a deployment does to each resource: settled from AWS's documentation, source named where it is not plain."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from tests.cases import cases
from tests.review.reports import report
from tests.review.small import (
    Template,
    changed,
    code,
    resource,
    serving,
    stack,
    stack_change,
)
from tests.review.values import json_values
from tritonstack.review.change import ABSENT, Effect, Level, ResourceChange
from tritonstack.review.differences import differences
from tritonstack.review.snapshot import StackSnapshot

TOPIC, ROLE, FUNCTION = "AWS::SNS::Topic", "AWS::IAM::Role", "AWS::Lambda::Function"
SSM = "AWS::SSM::Parameter::Value<String>"


def effects(changes: dict[str, ResourceChange]) -> dict[str, Effect]:
    return {name: each.effect for name, each in changes.items()}


def properties(change: ResourceChange) -> dict[str, tuple[str, str | None]]:
    return {each.name: (each.replaces, each.follows) for each in change.properties}


def one(kind: str, given: Any = None, **attributes: Any) -> Template:
    """One resource."""
    return {"It": resource(kind, given, **attributes)}


def mine(path: str, name: str = "mine") -> Template:
    """A role whose name the template chooses, in a path, which replaces it."""
    return one(ROLE, {"RoleName": name, "Path": path})


CUSTOM, WAIT, UNKNOWN = "Custom::Thing", "AWS::CloudFormation::WaitCondition", "AWS::Nobody::Knows"


@pytest.mark.parametrize(
    ("before", "after", "effect", "reason"),
    [
        ({}, one(TOPIC), Effect.NEW, ""),
        (one(TOPIC), {}, Effect.REMOVED, ""),
        (one(TOPIC, DeletionPolicy="Retain"), {}, Effect.RETAINED, ""),
        (one(TOPIC, DeletionPolicy="RetainExceptOnCreate"), {}, Effect.RETAINED, ""),
        (one(TOPIC, {"DisplayName": "a"}), one(TOPIC, {"DisplayName": "b"}), Effect.CHANGED, ""),
        (one(TOPIC), one("AWS::SQS::Queue"), Effect.REPLACED, "Its type was AWS::SNS::Topic"),
        (one(UNKNOWN, {"B": 1}), one(UNKNOWN, {"B": 2}), Effect.MAY_BE_REPLACED, UNKNOWN),
        (one(CUSTOM, {"B": 1}), one(CUSTOM, {"B": 2}), Effect.CHANGED, "Its function is called"),
        # User guide, "Name type": you can't perform an update that causes a custom-named resource to be replaced.
        (mine("/a/"), mine("/b/"), Effect.REFUSED, "keeps its name mine"),
        (mine("/a/"), mine("/b/", "other"), Effect.REPLACED, ""),
        # Template reference, AWS::CloudFormation::WaitCondition: updates are not supported.
        (one(WAIT, {"Count": 1}), one(WAIT, {"Count": 2}), Effect.REFUSED, "another logical id"),
    ],
)
def test_what_a_deployment_does_to_one_resource(before: Template, after: Template, effect: Effect, reason: str) -> None:
    [change] = changed(before, after).values()
    assert change.effect is effect
    assert any(reason in each for each in change.reasons) if reason else change.reasons == ()


def test_what_may_be_replaced_makes_what_follows_possible_only() -> None:
    """Template reference, AWS::EC2::VPC InstanceTenancy: replacement for some values; Subnet VpcId: replacement."""

    def network(tenancy: str) -> Template:
        return {
            "Vpc": resource("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "InstanceTenancy": tenancy}),
            "Subnet": resource("AWS::EC2::Subnet", {"VpcId": {"Ref": "Vpc"}}),
            "Group": resource(TOPIC, {"DisplayName": {"Fn::Sub": "of ${Vpc.VpcId}"}}),
        }

    changes = changed(network("default"), network("dedicated"))
    maybe = Effect.MAY_BE_REPLACED
    assert effects(changes) == {"Vpc": maybe, "Subnet": maybe, "Group": Effect.MAY_CHANGE}
    assert [each.certain for each in changes["Subnet"].properties] == [False]


def test_certainty_wins_over_possibility_though_it_is_found_later() -> None:
    """``Gateway`` may be replaced by its parameter, and is by its subnet, which is by its VPC."""

    def network(cidr: str) -> Template:
        return {
            "Afterwards": resource(TOPIC, {"DisplayName": {"Ref": "Gateway"}}),
            "Gateway": resource(
                "AWS::EC2::NatGateway", {"SubnetId": {"Ref": "Subnet"}, "AllocationId": {"Ref": "Address"}}
            ),
            "Subnet": resource("AWS::EC2::Subnet", {"VpcId": {"Ref": "Vpc"}}),
            "Vpc": resource("AWS::EC2::VPC", {"CidrBlock": cidr}),
        }

    old, new = (
        stack(network(cidr), sections={"Parameters": {"Address": {"Type": SSM, "Default": default}}})
        for cidr, default in (("10.0.0.0/16", "/a"), ("10.1.0.0/16", "/b"))
    )
    found = {each.logical_id: each.effect for each in stack_change(old, new).resources}
    replaced = dict.fromkeys(("Gateway", "Subnet", "Vpc"), Effect.REPLACED)
    assert found == {**replaced, "Afterwards": Effect.CHANGED}


def test_other_code_changes_the_functions_that_run_it_and_not_their_responses() -> None:
    resources = {
        "Function": resource(FUNCTION, {"Code": {"S3Key": "{asset:Handler/Code}.zip"}, "Role": "arn"}),
        "Answered": resource("Custom::Thing", {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}}),
    }
    old = stack(resources, assets=code("Handler/Code", handler="1", shared="1"))
    new = stack(resources, assets=code("Handler/Code", handler="2", more="1"))
    change = stack_change(old, new)
    [function] = change.resources
    assert (function.logical_id, function.effect) == ("Function", Effect.CHANGED)
    assert properties(function) == {"Code.S3Key": ("no", "Handler/Code")}
    [asset] = change.assets
    assert (asset.changed, asset.new, asset.removed) == (("handler.py",), ("more.py",), ("shared.py",))
    assert asset.users == ("Function",)


@cases("before, after, when")
def test_less_kept_than_before_is_reported(
    before: dict[str, Any], after: dict[str, Any], when: tuple[str, ...]
) -> None:
    sides = one(TOPIC, {"TopicName": "a"}, **before), one(TOPIC, {"TopicName": "a"}, **after)
    [change] = changed(*sides).values()
    assert (change.no_longer_kept, len(change.reasons)) == (when, len(when))
    [found] = report(*sides).environments
    assert found.level is (Level.LOOK if when else Level.PLAIN)
    assert all(f"1 resource no longer kept when {each}" in found.sentence for each in when[:1])


def test_another_order_makes_nothing_certain_that_is_only_possible() -> None:
    """What the resource follows may stay as it is; the deployment then passes over it, whatever its order is."""
    scaling = resource("Custom::Scaling", {"ServiceToken": "arn:a", "Maximum": "4"})
    config = resource("AWS::SSM::Parameter", {"Type": "String", "Value": {"Fn::GetAtt": ["Scaling", "Count"]}})
    before = {"Scaling": scaling, "Other": resource("AWS::SNS::Topic"), "Config": {**config, "DependsOn": ["Other"]}}
    after = {
        **before,
        "Scaling": resource("Custom::Scaling", {"ServiceToken": "arn:a", "Maximum": "8"}),
        "Config": config,
    }
    found = changed(before, after)
    assert found["Config"].attributes
    assert found["Config"].effect is Effect.MAY_CHANGE


@pytest.mark.parametrize(("policy", "stays"), [("Retain", True), ("Delete", False)])
def test_the_old_resource_of_a_replacement_stays_where_the_template_retains_it(policy: str, stays: bool) -> None:
    sides = (one(ROLE, {"Path": path}, UpdateReplacePolicy=policy) for path in ("/a/", "/b/"))
    [change] = changed(*sides).values()
    assert (change.effect, change.old_one_stays) == (Effect.REPLACED, stays)


def test_another_service_token_is_refused() -> None:
    """Template reference, AWS::CloudFormation::CustomResource, ServiceToken: updates are not supported."""

    def runtime_of(runtime: str) -> Template:
        return {
            "Function": resource(FUNCTION, {"Code": {}, "Role": "arn", "PackageType": runtime}),
            "Thing": resource("Custom::Thing", {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}}),
        }

    changes = changed(runtime_of("Zip"), runtime_of("Image"))
    assert effects(changes) == {"Function": Effect.REPLACED, "Thing": Effect.REFUSED}


@pytest.mark.parametrize(("policy", "stays"), [("Delete", False), ("Retain", True)])
def test_another_logical_id_alone_is_reported_as_a_new_resource(policy: str, stays: bool) -> None:
    """CloudFormation identifies a resource by its logical id: it creates another one."""
    [change] = changed(
        {"Old1": resource(TOPIC, {"DisplayName": "a"}, DeletionPolicy=policy)},
        {"New1": resource(TOPIC, {"DisplayName": "a"}, DeletionPolicy=policy)},
    ).values()
    assert (change.logical_id, change.renamed_from, change.effect) == ("New1", "Old1", Effect.REPLACED)
    assert change.old_one_stays is stays
    assert change.reasons[0].endswith("makes a new resource." if stays else "and removes the old one.")


def inline(name: str, *actions: str, on: str = "Role", policy_name: str = "") -> Template:
    """An inline policy of a role."""
    statements = [{"Sid": each[3:], "Effect": "Allow", "Action": each, "Resource": "*"} for each in actions]
    document = {"PolicyDocument": {"Statement": statements}, "PolicyName": policy_name or name, "Roles": [{"Ref": on}]}
    return {name: resource("AWS::IAM::Policy", document)}


def test_an_inline_policy_under_another_name_is_renamed_whatever_its_statements() -> None:
    [alone] = changed(inline("Old", "s3:GetObject"), inline("New", "s3:GetObject")).values()
    assert (alone.logical_id, alone.renamed_from, alone.effect) == ("New", "Old", Effect.RENAMED)
    assert (alone.properties, len(alone.reasons)) == ((), 1)
    [other] = changed(inline("Old", "s3:GetObject"), inline("New", "s3:GetObject", "s3:PutObject")).values()
    assert (other.effect, [each.name for each in other.properties]) == (
        Effect.RENAMED,
        ["PolicyDocument.Statement[PutObject]"],
    )
    [found] = report(inline("Old", "s3:Get"), inline("New", "s3:Get")).environments
    assert (found.level, found.sentence) == (Level.PLAIN, "1 renamed")


def test_an_inline_policy_of_another_role_or_with_its_old_name_is_another_one() -> None:
    """By the same name the two are one policy at IAM, which goes with the old resource."""
    elsewhere = changed(inline("Old", "s3:Get"), inline("New", "s3:Get", "s3:Put", on="Other"))
    assert effects(elsewhere) == {"New": Effect.NEW, "Old": Effect.REMOVED}
    old, new = (inline(name, action, policy_name="p") for name, action in (("Old", "s3:Get"), ("New", "s3:Put")))
    assert effects(changed(old, new)) == {"New": Effect.NEW, "Old": Effect.REMOVED}


def placed(**policies: Template) -> StackSnapshot:
    """A stack of inline policies; ``A``, ``B``, …: the construct that each is in."""
    paths = {name: construct for construct, each in policies.items() for name in each}
    made = stack({name: each for one in policies.values() for name, each in one.items()})
    moved = {name: replace(each, path=f"{paths[name][0]}/{name}") for name, each in made.resources.items()}
    return replace(made, resources=moved)


def test_an_inline_policy_of_several_is_renamed_by_its_construct_and_an_only_one_by_its_role() -> None:
    def renamed(before: StackSnapshot, after: StackSnapshot) -> dict[str, str | None]:
        changes = stack_change(before, after).resources
        return {each.logical_id: each.renamed_from for each in changes if each.effect is Effect.RENAMED}

    two = placed(A=inline("A1", "s3:Get"), B=inline("B1", "s3:Put"))
    assert renamed(two, placed(A=inline("A2", "s3:Put"), B=inline("B2", "s3:Get"))) == {"A2": "A1", "B2": "B1"}
    assert renamed(placed(A=inline("A1", "s3:Get")), placed(C=inline("C1", "s3:Put"))) == {"C1": "A1"}
    assert renamed(two, placed(C=inline("C1", "s3:A"), D=inline("D1", "s3:B"))) == {}


def test_another_logical_id_with_the_same_name_exists_already() -> None:
    topic = resource(TOPIC, {"TopicName": "mine"})
    old = {"Old": topic}
    [change] = changed(old, {"New": topic}).values()
    assert (change.effect, change.renamed_from) == (Effect.REFUSED, "Old")
    changes = changed(old, {"New": resource(TOPIC, {"TopicName": "mine", "DisplayName": "x"})})
    assert effects(changes) == {"New": Effect.REFUSED, "Old": Effect.REMOVED}


# Two values, property by property.
READ, WRITE = {"Sid": "Read", "Action": "a"}, {"Sid": "Write", "Action": "b"}
ROLE_OF_A, ROLE_OF_B = ({"Fn::GetAtt": [name, "Arn"]} for name in "AB")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"Same": [1], "In": {"A": 1, "B": 1}}, {"Same": [1], "In": {"A": 2, "B": 1}}, {"In.A": (1, 2)}),
        ({"Gone": 1}, {"New": None}, {"Gone": (1, ABSENT), "New": (ABSENT, None)}),
        ([READ, WRITE], [WRITE | {"Action": "c"}, READ], {"[Write].Action": ("b", "c")}),
        ([READ], [WRITE, READ], {"[Write]": (ABSENT, WRITE)}),
        ([{"Name": "a", "x": 1}], [{"Name": "b", "x": 2}], {"[0].Name": ("a", "b"), "[0].x": (1, 2)}),
        ([{"Sid": "A", "x": 1}], [{"Sid": "A", "x": 2}], {"[0].x": (1, 2)}),
        (
            [{"Name": "a"}, {"Name": "b"}],
            [{"Name": "a2"}, {"Name": "b2"}],
            {"[0].Name": ("a", "a2"), "[1].Name": ("b", "b2")},
        ),
        ({"S": [READ, WRITE]}, {"S": [WRITE, READ]}, {"S": ([READ, WRITE], [WRITE, READ])}),
        ({"Role": ROLE_OF_A}, {"Role": ROLE_OF_B}, {"Role": (ROLE_OF_A, ROLE_OF_B)}),
        ({"a": 1, "b": [0]}, {"a": True, "b": [False]}, {"a": (1, True), "b[0]": (0, False)}),
    ],
    ids=[
        "as deep in as it lies",
        "what comes and goes",
        "items with names by them",
        "a new item by its name",
        "a single item by its place, so that its name may change",
        "a single item has its number even where its name stays",
        "items without a name in common by place",
        "another order of the same items is one difference",
        "functions as a whole",
        "one is not true",
    ],
)
def test_differences_of_two_values(before: Any, after: Any, expected: dict[str, tuple[Any, Any]]) -> None:
    assert {each.name: (each.before, each.after) for each in differences(before, after)} == expected


@given(json_values(), json_values())
def test_there_is_a_difference_exactly_where_the_json_differs(before: Any, after: Any) -> None:
    found = list(differences(before, after))
    assert bool(found) == (json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True))
    assert list(differences(before, before)) == []
    assert len({each.path for each in found}) == len(found)


def test_changes_that_only_follow_another_are_marked_and_an_endpoint_moves_traffic_besides() -> None:
    reader = {"Reader": resource("AWS::SSM::Parameter", {"Type": "String", "Value": {"Ref": "Config"}})}
    found = changed({**serving(), **reader}, {**serving(variant={"InstanceType": "ml.g5.2xlarge"}), **reader})
    following = {name: each.only_follows for name, each in found.items()}
    assert following == {"Config": False, "Endpoint": False, "Reader": True}
