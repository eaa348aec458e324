"""Access that a change opens and closes, as reported."""

from __future__ import annotations

from typing import Any

from tests.cases import cases
from tests.review.policies import allow, bucket, deny, environment
from tests.review.small import MODEL, Template, resource
from tritonstack.review.access.openings import OpeningKind, opening_changes
from tritonstack.review.access.permissions import permission_changes
from tritonstack.review.snapshot import NO_ENVIRONMENT

OPENED, CLOSED = OpeningKind.OPENED, OpeningKind.CLOSED
Openings = list[tuple[str, str, str]]
Rules = list[dict[str, Any]]
Line = tuple[OpeningKind, str]
"""What a change does, and the sentence for it."""
HTTPS = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
WORLD, TEN = {"CidrIp": "0.0.0.0/0"}, {"CidrIp": "10.0.0.0/8"}
NOTHING = {"IpProtocol": "icmp", "FromPort": 252, "ToPort": 86, "CidrIp": "255.255.255.255/32"}
TLS = deny("s3:*", "*", Principal="*", Condition={"Bool": {"aws:SecureTransport": "false"}})


def reported(before: Template | None, after: Template | None) -> Openings:
    """Kind, name and sentence of each change; None for an environment that is not there."""
    sides = [NO_ENVIRONMENT if each is None else environment(each) for each in (before, after)]
    found = opening_changes(*sides, permissions=permission_changes(*sides))
    return [(each.kind, each.name, each.sentence) for each in found]


def group(*rules: dict[str, Any], outward: tuple[dict[str, Any], ...] = (NOTHING,)) -> Template:
    """A security group with these rules inwards."""
    properties = {"GroupDescription": "g", "SecurityGroupIngress": list(rules), "SecurityGroupEgress": list(outward)}
    return {"Group": resource("AWS::EC2::SecurityGroup", properties)}


def one(kind: str, /, **properties: Any) -> Template:
    """One resource of a type."""
    return {"It": resource(kind, properties)}


@cases("before, after, expected")
def test_rules_of_a_security_group(before: Rules, after: Rules, expected: list[Line]) -> None:
    assert reported(group(*before), group(*after)) == [(kind, "Group", words) for kind, words in expected]


def test_a_rule_that_moves_out_of_its_group_is_no_change() -> None:
    own = resource("AWS::EC2::SecurityGroupIngress", HTTPS | TEN | {"GroupId": {"Fn::GetAtt": ["Group", "GroupId"]}})
    assert reported(group(HTTPS | TEN), {**group(), "Rule": own}) == []


def test_a_rule_outwards_of_a_group_that_is_not_of_the_app() -> None:
    after = one("AWS::EC2::SecurityGroupEgress", **HTTPS, **WORLD, GroupId="sg-1")
    assert reported({}, after) == [(OPENED, "sg-1", "lets out tcp 443 to 0.0.0.0/0 (every IPv4 address)")]


def test_a_new_group_without_a_rule_outwards_lets_out_everything() -> None:
    words = "lets out every protocol and port to every address, as AWS adds it to a group without an outbound rule"
    assert reported({}, group(outward=())) == [(OPENED, "Group", words)]
    assert reported({}, group(outward=(NOTHING,))) == []
    assert reported(group(outward=(HTTPS | TEN,)), group(outward=())) == [
        (CLOSED, "Group", "no longer lets out tcp 443 to 10.0.0.0/8 (16777216 addresses)")
    ]


@cases("kind, before, after, expected")
def test_what_keeps_data_and_programs_in(
    kind: str, before: dict[str, Any] | None, after: dict[str, Any] | None, expected: list[Line]
) -> None:
    sides = [{} if properties is None else one(kind, **properties) for properties in (before, after)]
    assert reported(*sides) == [(opening, "It", words) for opening, words in expected]


def test_a_subnet_becomes_public_by_the_route_of_its_table() -> None:
    before = {
        "Subnet": resource("AWS::EC2::Subnet"),
        "Table": resource("AWS::EC2::RouteTable"),
        "Gateway": resource("AWS::EC2::InternetGateway"),
        "Routed": resource(
            "AWS::EC2::SubnetRouteTableAssociation", {"RouteTableId": {"Ref": "Table"}, "SubnetId": {"Ref": "Subnet"}}
        ),
    }
    route = {"RouteTableId": {"Ref": "Table"}, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": {"Ref": "Gateway"}}
    after = {**before, "Route": resource("AWS::EC2::Route", route)}
    assert reported(before, after) == [
        (OPENED, "Subnet", "is a public subnet, by a route to an internet gateway"),
        (OPENED, "Table", "routes to 0.0.0.0/0 (every IPv4 address) through ${Gateway} (an internet gateway)"),
    ]


def test_what_a_resources_policy_opens() -> None:
    read = allow("s3:GetObject", "*", Principal="*")
    assert reported(bucket(TLS), bucket(deny("s3:Put*", "*", Principal="*"))) == [
        (OPENED, "Bucket", "requests without TLS are no longer refused: s3:*")
    ]
    assert reported(bucket(), bucket(TLS)) == [(CLOSED, "Bucket", "requests without TLS are refused from now on: s3:*")]
    assert reported(bucket(TLS), bucket(TLS, read)) == [
        (OPENED, "Bucket", "open to everybody: anybody may now: s3:GetObject")
    ]


def test_a_vpc_endpoint_comes_and_its_policy_changes() -> None:
    def endpoint(*statements: Any) -> Template:
        document = {"PolicyDocument": {"Statement": list(statements)}} if statements else {}
        return one("AWS::EC2::VPCEndpoint", ServiceName="com.amazonaws.us-east-1.s3", **document)

    mine = allow("s3:GetObject", "arn:aws:s3:::b/*", Principal="*")
    assert reported({}, endpoint(mine)) == [(OPENED, "It", "is a private way to com.amazonaws.us-east-1.s3")]
    assert reported(endpoint(mine), endpoint()) == [(OPENED, "It", "its policy: anybody may now: *")]
    assert [kind for kind, _, _ in reported(endpoint(), endpoint(mine))] == [CLOSED]


def test_openings_are_reported_first() -> None:
    before = {"Log": resource("AWS::Logs::LogGroup", {"KmsKeyId": "k"}), "Model": resource(MODEL)}
    after = {"Log": resource("AWS::Logs::LogGroup"), "Model": resource(MODEL, {"EnableNetworkIsolation": True})}
    assert [(kind, name) for kind, name, _ in reported(before, after)] == [(OPENED, "Log"), (CLOSED, "Model")]


def test_what_has_another_logical_id_and_is_the_same_else_opens_and_closes_nothing() -> None:
    before = {"Model": resource(MODEL, {"ExecutionRoleArn": "arn:role"})}
    assert reported(before, {"Renamed": before["Model"]}) == []
