"""What a change is said to open and to close."""

from __future__ import annotations

from typing import Any

import pytest

from tests.review.policies import allow, bucket, deny, environment
from tests.review.small import MODEL, Template, resource
from tritonstack.review.access.openings import OpeningKind, opening_changes
from tritonstack.review.access.permissions import permission_changes
from tritonstack.review.snapshot import NO_ENVIRONMENT

OPENED, CLOSED, OTHER = OpeningKind.OPENED, OpeningKind.CLOSED, OpeningKind.OTHER
Told = list[tuple[str, str, str]]
HTTPS = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
WORLD, TEN, TEN_ONE = {"CidrIp": "0.0.0.0/0"}, {"CidrIp": "10.0.0.0/8"}, {"CidrIp": "10.1.0.0/16"}
NOTHING = {"IpProtocol": "icmp", "FromPort": 252, "ToPort": 86, "CidrIp": "255.255.255.255/32"}
TLS = deny("s3:*", "*", Principal="*", Condition={"Bool": {"aws:SecureTransport": "false"}})
VPC = {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}
BLOCK = dict.fromkeys(("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True)


def told(before: Template | None, after: Template | None) -> Told:
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


def encryption(**by_default: str) -> dict[str, Any]:
    """A bucket's encryption."""
    return {"ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": by_default}]}


OF_TEN = "from 10.0.0.0/8 (16777216 addresses)"
TEN_80 = HTTPS | TEN | {"FromPort": 80}
LOCAL6 = HTTPS | {"CidrIpv6": "fd00::/8"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([], [HTTPS | WORLD], [(OPENED, "lets in tcp 443 from 0.0.0.0/0 (every IPv4 address)")]),
        ([HTTPS | TEN], [], [(CLOSED, f"no longer lets in tcp 443 {OF_TEN}")]),
        ([HTTPS | TEN], [HTTPS | TEN_ONE, HTTPS | TEN], []),
        ([HTTPS | TEN_ONE], [HTTPS | TEN], [(OPENED, f"lets in tcp 443 {OF_TEN}")]),
        ([HTTPS | TEN], [HTTPS | TEN_ONE], [(CLOSED, f"no longer lets in tcp 443 {OF_TEN}")]),
        ([HTTPS | TEN], [HTTPS | TEN | {"Description": "other words"}], []),
        ([HTTPS | TEN], [TEN | {"IpProtocol": "6", "FromPort": "443", "ToPort": "443"}], []),
        ([HTTPS | TEN], [TEN_80], [(OPENED, f"lets in tcp 80-443 {OF_TEN}")]),
        ([HTTPS | TEN], [TEN | {"IpProtocol": -1}], [(OPENED, f"lets in every protocol and port {OF_TEN}")]),
        ([], [HTTPS | TEN, TEN_80], [(OPENED, f"lets in tcp 80-443 {OF_TEN}")]),
        ([], [HTTPS | {"SourcePrefixListId": "pl-1"}], [(OPENED, "lets in tcp 443 from pl-1")]),
        ([LOCAL6], [LOCAL6, HTTPS | {"CidrIpv6": "fd01::/16"}], []),
    ],
)
def test_rules_of_a_security_group(before: list[Any], after: list[Any], expected: list[tuple[Any, str]]) -> None:
    assert told(group(*before), group(*after)) == [(kind, "Group", words) for kind, words in expected]


def test_a_rule_that_moves_out_of_its_group_is_no_change() -> None:
    own = resource("AWS::EC2::SecurityGroupIngress", HTTPS | TEN | {"GroupId": {"Fn::GetAtt": ["Group", "GroupId"]}})
    assert told(group(HTTPS | TEN), {**group(), "Rule": own}) == []


def test_a_rule_outwards_of_a_group_that_is_not_of_the_app() -> None:
    after = one("AWS::EC2::SecurityGroupEgress", **HTTPS, **WORLD, GroupId="sg-1")
    assert told({}, after) == [(OPENED, "sg-1", "lets out tcp 443 to 0.0.0.0/0 (every IPv4 address)")]


def test_a_new_group_without_a_rule_outwards_lets_out_everything() -> None:
    words = "lets out every protocol and port to every address, as AWS adds it to a group without an outbound rule"
    assert told({}, group(outward=())) == [(OPENED, "Group", words)]
    assert told({}, group(outward=(NOTHING,))) == []
    assert told(group(outward=(HTTPS | TEN,)), group(outward=())) == [
        (CLOSED, "Group", "no longer lets out tcp 443 to 10.0.0.0/8 (16777216 addresses)")
    ]


BUCKET, LOGS, SUBNET = "AWS::S3::Bucket", "AWS::Logs::LogGroup", "AWS::EC2::Subnet"
INSIDE = "runs in a VPC (SecurityGroupIds: sg-1; Subnets: subnet-1)"
OUTSIDE = "has outbound internet access from its containers: no VPC, no network isolation"
MOVED = f"runs in a VPC (SecurityGroupIds: sg-1; Subnets: subnet-2) — before: {INSIDE}"
FREE = "no longer isolated from every network (EnableNetworkIsolation)"
ADDRESS = "gives instances in it a public address (MapPublicIpOnLaunch)"
OWN_KEY = "encrypts its data by BucketEncryption with AWS's own key of the service in KMS"
KMS = {"SSEAlgorithm": "aws:kms"}


def blocked(**members: bool) -> Template:
    """A bucket that blocks public access, with other members of the block."""
    return one(BUCKET, PublicAccessBlockConfiguration=BLOCK | members)


def encrypted(**by_default: str) -> Template:
    """A bucket that is encrypted so."""
    return one(BUCKET, BucketEncryption=encryption(**by_default))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            one(MODEL, VpcConfig=VPC),
            one(MODEL),
            [(OPENED, f"no longer {INSIDE}")],
        ),
        (one(MODEL), one(MODEL, VpcConfig=VPC), [(CLOSED, INSIDE)]),
        (one(MODEL, VpcConfig=VPC), one(MODEL, VpcConfig=VPC | {"Subnets": ["subnet-2"]}), [(OTHER, MOVED)]),
        (one(MODEL, VpcConfig={"Subnets": ["a", "b"]}), one(MODEL, VpcConfig={"Subnets": ["b", "a"]}), []),
        (one(MODEL, EnableNetworkIsolation=True), one(MODEL, EnableNetworkIsolation=False), [(OPENED, FREE)]),
        ({}, one(MODEL), [(OPENED, OUTSIDE)]),
        ({}, one(MODEL, EnableNetworkIsolation=True), []),
        (blocked(), blocked(BlockPublicPolicy=False), [(OPENED, "no longer blocks public access (BlockPublicPolicy)")]),
        (
            blocked(),
            one(BUCKET),
            [(OPENED, f"no longer blocks public access ({flag})") for flag in sorted(BLOCK)],
        ),
        ({}, one(BUCKET), []),
        ({}, blocked(BlockPublicAcls=False), [(OPENED, "leaves public access open (BlockPublicAcls)")]),
        (one(LOGS, KmsKeyId="arn:a"), one(LOGS), [(OPENED, "no longer encrypts its data by KmsKeyId arn:a")]),
        (
            one(LOGS, KmsKeyId="arn:a"),
            one(LOGS, KmsKeyId="arn:b"),
            [(OTHER, "encrypts its data by KmsKeyId arn:b — before: encrypts its data by KmsKeyId arn:a")],
        ),
        (
            encrypted(**KMS, KMSMasterKeyID="arn:key"),
            encrypted(SSEAlgorithm="AES256"),
            [(OPENED, "no longer encrypts its data by BucketEncryption arn:key")],
        ),
        (one(BUCKET), encrypted(**KMS), [(CLOSED, OWN_KEY)]),
        (one(SUBNET, MapPublicIpOnLaunch=False), one(SUBNET, MapPublicIpOnLaunch=True), [(OPENED, ADDRESS)]),
        ({}, one("AWS::EC2::InternetGateway"), [(OPENED, "is an internet gateway")]),
        (
            {},
            one("AWS::Lambda::Url", AuthType="NONE"),
            [(OPENED, "open to everybody: requests need no signature (AuthType NONE)")],
        ),
    ],
)
def test_what_keeps_data_and_programs_in(before: Template, after: Template, expected: list[tuple[Any, str]]) -> None:
    assert told(before, after) == [(kind, "It", words) for kind, words in expected]


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
    assert told(before, after) == [
        (OPENED, "Subnet", "is a public subnet, by a route to an internet gateway"),
        (OPENED, "Table", "routes to 0.0.0.0/0 (every IPv4 address) through ${Gateway} (an internet gateway)"),
    ]


def test_what_a_resources_policy_opens() -> None:
    read = allow("s3:GetObject", "*", Principal="*")
    assert told(bucket(TLS), bucket(deny("s3:Put*", "*", Principal="*"))) == [
        (OPENED, "Bucket", "requests without TLS are no longer refused: s3:*")
    ]
    assert told(bucket(), bucket(TLS)) == [(CLOSED, "Bucket", "requests without TLS are refused from now on: s3:*")]
    assert told(bucket(TLS), bucket(TLS, read)) == [
        (OPENED, "Bucket", "open to everybody: anybody may now: s3:GetObject")
    ]


def test_a_vpc_endpoint_comes_and_its_policy_changes() -> None:
    def endpoint(*statements: Any) -> Template:
        document = {"PolicyDocument": {"Statement": list(statements)}} if statements else {}
        return one("AWS::EC2::VPCEndpoint", ServiceName="com.amazonaws.us-east-1.s3", **document)

    mine = allow("s3:GetObject", "arn:aws:s3:::b/*", Principal="*")
    assert told({}, endpoint(mine)) == [(OPENED, "It", "is a private way to com.amazonaws.us-east-1.s3")]
    assert told(endpoint(mine), endpoint()) == [(OPENED, "It", "its policy: anybody may now: *")]
    assert [kind for kind, _, _ in told(endpoint(), endpoint(mine))] == [CLOSED]


def test_what_opens_is_told_first() -> None:
    before = {"Log": resource("AWS::Logs::LogGroup", {"KmsKeyId": "k"}), "Model": resource(MODEL)}
    after = {"Log": resource("AWS::Logs::LogGroup"), "Model": resource(MODEL, {"EnableNetworkIsolation": True})}
    assert [(kind, name) for kind, name, _ in told(before, after)] == [(OPENED, "Log"), (CLOSED, "Model")]


def test_what_has_another_logical_id_and_is_the_same_else_opens_and_closes_nothing() -> None:
    before = {"Model": resource(MODEL, {"ExecutionRoleArn": "arn:role"})}
    assert told(before, {"Renamed": before["Model"]}) == []
