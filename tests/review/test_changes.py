"""Environments and stacks compared; and what holds of any two of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings

from tests.review.small import Template, of, resource, serving, stack, stack_change
from tests.review.values import stacks
from tritonstack.review.change import Effect, ResourceChange
from tritonstack.review.compare import compare
from tritonstack.review.snapshot import (
    Asset,
    AssetKind,
    Finding,
    Resource,
    Snapshots,
    StackSnapshot,
    stack_text,
)

TOPIC = {"Topic": resource("AWS::SNS::Topic")}


def test_environments_that_are_added_removed_or_stay_are_reported() -> None:
    dev, old, new = (of(stack(TOPIC), environment=name).environments for name in ("dev", "old", "new"))
    changes = compare(Snapshots(environments={**dev, **old}), Snapshots(environments={**dev, **new}))
    effects = {"dev": None, "new": Effect.NEW, "old": Effect.REMOVED}
    assert {each.name: each.effect for each in changes} == effects


def test_no_deployment_removes_a_stack_that_the_app_lost() -> None:
    [environment] = compare(of(stack(TOPIC), stack(TOPIC, name="b")), of(stack(TOPIC)))
    [change] = environment.stacks
    assert (change.name, change.effect) == ("b", Effect.REMOVED)
    assert "dev-b stays and is billed until it is deleted" in change.reasons[0]
    assert [each.effect for each in change.resources] == [Effect.REMOVED]


def test_a_stack_of_another_account_is_another_stack() -> None:
    change = stack_change(stack(serving()), stack(serving(), account="222222222222"))
    assert change.effect is Effect.REPLACED
    assert [each.name for each in change.template] == ["Account"]
    assert {each.effect for each in change.resources} == {Effect.NEW}
    assert "dev-serving: it stays and is billed until it is deleted" in change.reasons[0]
    assert "with credentials of account 111111111111, aws cloudformation delete-stack" in change.reasons[0]


def test_what_the_app_lost_is_named_with_the_command_that_deletes_it() -> None:
    tagged: dict[str, Any] = {"tags": {"tritonstack:environment": "dev"}}
    stays, goes = stack(TOPIC, **tagged), stack(TOPIC, name="b", **tagged)
    [environment] = compare(of(stays, goes), of(stays))
    assert environment.stacks[0].reasons[0].endswith("After the deployment: tritonstack leftovers -e dev --delete")
    [whole] = compare(of(goes), Snapshots(environments={}))
    assert whole.stacks[0].reasons[0].endswith("tritonstack leftovers -e dev --region us-east-1 --removed --delete")
    moved = stack_change(stays, stack(TOPIC, region="eu-west-1", **tagged))
    assert moved.reasons[0].endswith("tritonstack leftovers -e dev --region us-east-1 --delete")
    [access] = compare(of(stays, stack(TOPIC, name="pipeline-access", **tagged)), of(stays))
    assert access.stacks[0].reasons[0].endswith("aws cloudformation delete-stack --stack-name dev-pipeline-access")


def test_outputs_and_the_stacks_own_tags_are_reported() -> None:
    old = stack(TOPIC, sections={"Outputs": {"A": {"Value": "1"}}})
    new = stack(TOPIC, sections={"Outputs": {"A": {"Value": "2"}}}, tags={"team": "a"})
    assert [each.name for each in stack_change(old, new).template] == ["Outputs.A.Value", "StackTags"]


def test_the_source_of_builds_is_no_change_and_what_an_asset_is_is_one() -> None:
    source = {"Source": Asset(path="Source", kind=AssetKind.SOURCE, files={})}
    [same] = compare(of(stack(TOPIC, assets=source)), of(stack(TOPIC, assets=source)))
    assert same.effect is None
    image = {"Source": replace(source["Source"], kind=AssetKind.IMAGE, files={"Dockerfile": "1"})}
    [change] = stack_change(stack(TOPIC, assets=source), stack(TOPIC, assets=image)).assets
    assert (change.kind, change.new) == ("image", ("Dockerfile",))


def finding(rule: str, accepted: str = "") -> Finding:
    return Finding(stack="serving", path="Role", rule=rule, accepted=accepted)


def test_findings_come_go_and_are_accepted() -> None:
    old = (finding("A"), finding("B"), finding("C", "because"), finding("E", "once"))
    new = (finding("B"), finding("D"), finding("A", "because"), finding("E", "now"))
    [change] = compare(of(findings=old), of(findings=new))
    assert (change.effect, change.findings_known) == (Effect.CHANGED, True)
    assert [(each.change, each.rule, each.reason) for each in change.findings] == [
        ("new", "D", None),
        ("gone", "A", None),
        ("accepted", "A", "because"),
        ("accepted", "E", "now"),
        ("no longer accepted", "C", "because"),
        ("no longer accepted", "E", "once"),
    ]


def test_without_validation_on_both_sides_findings_are_left_out() -> None:
    known = (finding("A"),)
    for old, new in ((known, None), (None, known), (None, None)):
        [change] = compare(of(findings=old), of(findings=new))
        assert (change.effect, change.findings_known, change.findings) == (None, False, ())


def test_a_value_that_crosses_by_an_ssm_parameter_moves_what_reads_it() -> None:
    """Values cross stacks as SSM parameters: a bucket that is replaced replaces the model of another stack."""

    def environment(bucket: str) -> Snapshots:
        name = "/tritonstack/dev/_artifacts/bucket-name"
        artifacts = {
            "Bucket": resource("AWS::S3::Bucket", {"BucketName": bucket}),
            "Name": resource("AWS::SSM::Parameter", {"Name": name, "Type": "String", "Value": {"Ref": "Bucket"}}),
        }
        parameter = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": name}
        container = {"PrimaryContainer": {"ModelDataUrl": {"Fn::Sub": "s3://${Read}/"}}}
        return of(
            stack(artifacts, name="artifacts"),
            stack(
                {"Model": resource("AWS::SageMaker::Model", container)}, sections={"Parameters": {"Read": parameter}}
            ),
            stack(TOPIC, name="observability"),
        )

    [change] = compare(environment("a"), environment("b"))
    assert {each.name: {one.path: one.effect for one in each.resources} for each in change.stacks} == {
        "artifacts": {"Bucket": Effect.REPLACED, "Name": Effect.CHANGED},
        "serving": {"Model": Effect.REPLACED},
    }
    [model] = change.stacks[1].resources
    assert [(each.name, each.follows) for each in model.properties] == [("PrimaryContainer.ModelDataUrl", "Read")]


SSM = "AWS::SSM::Parameter::Value<AWS::EC2::Subnet::Id>"
PARAMETERS = {"Parameters": {"Subnet": {"Type": SSM, "Default": "/dev/subnet"}}}


def network(cidr: str = "10.0.0.0/20", *, subnet_parameter: Any = None) -> Template:
    """A VPC with two subnets; the first one's id is in a parameter."""
    return {
        "Vpc": resource("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"}),
        "Subnet": resource("AWS::EC2::Subnet", {"VpcId": {"Ref": "Vpc"}, "CidrBlock": cidr}),
        "Other": resource("AWS::EC2::Subnet", {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.16.0/20"}),
        "Told": resource(
            "AWS::SSM::Parameter", {"Name": "/dev/subnet", "Value": subnet_parameter or {"Ref": "Subnet"}}
        ),
    }


def joined(reads: str = "Subnet") -> Template:
    """An endpoint whose containers are in the subnet of the parameter."""
    template = serving()
    template["Model"]["Properties"]["VpcConfig"] = {"Subnets": [{"Ref": reads}], "SecurityGroupIds": ["sg-1"]}
    return template


def network_changes(before: Template, after: Template, *, reads: str = "Subnet") -> dict[str, ResourceChange]:
    """Logical id → change, of the network's stack."""
    fleet = stack(joined(reads), name="serving", sections=PARAMETERS)
    old, new = (of(stack(each, name="network"), fleet) for each in (before, after))
    [environment] = compare(old, new)
    return {each.logical_id: each for one in environment.stacks if one.name == "network" for each in one.resources}


def test_a_removed_subnet_that_another_stacks_fleet_uses_is_reported_as_left_behind() -> None:
    gone = {"Told": network(subnet_parameter="subnet-1")["Told"]}
    found = network_changes(network(), gone)
    assert {found[name].effect for name in ("Vpc", "Subnet", "Other")} == {Effect.REMOVED}
    for name in ("Subnet", "Vpc"):
        assert found[name].reasons[-1].startswith("It is left behind: the fleet of dev-serving, which")
    assert not found["Other"].reasons, "nobody runs in it"
    assert not network_changes(network(), gone, reads="Another")["Subnet"].reasons, "no endpoint runs in it"
    replaced = network_changes(network(), network("10.0.32.0/20"))
    assert (replaced["Subnet"].effect, "Vpc" in replaced) == (Effect.REPLACED, False)
    assert replaced["Subnet"].reasons[-1].startswith("The old one is left behind: the fleet of dev-serving")


@settings(max_examples=50)
@given(stacks(), stacks())
def test_every_difference_is_reported_once_and_a_second_run_reports_the_same(
    one: StackSnapshot, other: StackSnapshot
) -> None:
    changes = compare(of(one), of(other))
    assert compare(of(one), of(other)) == changes
    [environment] = changes
    subnet_parameter = {each.logical_id for change in environment.stacks for each in change.resources}
    renamed = {each.renamed_from for change in environment.stacks for each in change.resources}
    for name in one.resources.keys() | other.resources.keys():
        if json_of(one.resources.get(name)) != json_of(other.resources.get(name)):
            assert name in subnet_parameter | renamed
    assert len(subnet_parameter) == sum(len(change.resources) for change in environment.stacks)
    assert (environment.effect is None) == (stack_text(one) == stack_text(other))


def json_of(resource: Resource | None) -> str:
    """A resource as JSON text, in which ``1`` and ``true`` differ."""
    return "" if resource is None else json.dumps([resource.type, resource.properties, resource.attributes])
