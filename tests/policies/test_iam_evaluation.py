"""The evaluator against the examples of the IAM user guide, with the outcomes that the guide states.

Two rows of its "Condition operators" are not here, where it contradicts itself: ``distribution/admin`` is said not to
match ``distribution/*``; and a ``ForAllValues:StringNotLike`` to match what ``StringLike`` does.
"""

from __future__ import annotations

from typing import Any

import pytest

from tritonstack.iam_evaluation import Policies, PolicyKind, Request, evaluate, refusal
from tritonstack.iam_policies import arn_covers, covers

ACCOUNT = "arn:aws:iam::123456789012"
ROLE, USER, ROOT = f"{ACCOUNT}:role/examplerole", f"{ACCOUNT}:user/exampleuser", f"{ACCOUNT}:root"
SESSION = "arn:aws:sts::123456789012:assumed-role/examplerole/examplerolesessionname"


def request(principal: str = ROLE, action: str = "s3:GetObject", resource: str = "*", **more: Any) -> Request:
    return Request(principal=principal, action=action, resource=resource, **more)


def allow(action: Any = "*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: Any = "*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {**allow(action, resource, **more), "Effect": "Deny"}


K, KEY = "aws:k", "QmluYXJ5VmFsdWVJbkJhc2U2NA=="
NAME, PREFIX, DEPARTMENT, DUTY = "aws:username", "s3:prefix", "aws:PrincipalTag/department", "aws:PrincipalTag/role"
ENVIRONMENT, TAGS, WHO, CLUSTER = "aws:RequestTag/environment", "aws:TagKeys", "aws:PrincipalArn", "ecs:cluster"
ANA, MARY, NIKKI = (f"arn:aws:iam::222222222222:user/{name}" for name in ("Ana", "Mary", "Nikki"))
TAGGED = {"StringEquals": {DEPARTMENT: ["finance", "hr", "legal"], DUTY: ["audit", "security"]}}
ONE, TWO = (f"arn:aws:ecs:us-east-1:111122223333:cluster/default{number}" for number in (1, 2))
FINANCE = "arn:aws:someservice:*:111122223333:finance/*"
STORE = "arn:aws:someservice:us-east-2:999999999999:store/abc:111122223333:finance/document.txt"
TOPIC, OTHER_TOPIC = (f"arn:aws:sns:us-west-2:{account}:TOPIC-ID" for account in ("123456789012", "777788889999"))
CDN, OTHER_CDN = (f"arn:aws::cloudfront:{account}:distribution" for account in ("123456789012", "777788889999"))
TEAM, OBJECT_TEAM, ISSUED = "aws:PrincipalTag/Team", "s3:ExistingObjectTag/Team", "2020-01-01T00:00:01Z"
CONDITIONS: list[tuple[str, dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("string", {"StringEquals": {K: "iamuser-admin"}}, [{K: "iamuser-admin"}], [{K: "dev-ops"}, {}]),
    ("string, variable", {"StringLike": {PREFIX: ["", "home/", f"home/${{{NAME}}}/"]}},
     [{NAME: "martha", PREFIX: "home/martha/"}, {PREFIX: ""}],
     [{NAME: "nikki", PREFIX: "home/martha/"}, {PREFIX: "home/martha/"}, {PREFIX: "home//"}]),
    ("string, negated", {"StringNotEquals": {K: ["a", "b"]}}, [{K: "c"}, {}], [{K: "b"}]),
    ("string, multivalued", {"StringEqualsIgnoreCase": {ENVIRONMENT: ["preprod", "storage"]},
                             "ForAnyValue:StringEquals": {TAGS: "environment"}},
     [{TAGS: ("environment",), ENVIRONMENT: "preprod"}, {TAGS: ("environment", "cost"), ENVIRONMENT: "PreProd"}],
     [{TAGS: ("Environment",), "aws:RequestTag/Environment": "preprod"}, {TAGS: ("cost",), ENVIRONMENT: "preprod"},
      {ENVIRONMENT: "storage"}, {TAGS: ("environment",)}, {}]),
    ("numeric", {"NumericLessThanEquals": {K: "10"}}, [{K: "9"}, {K: "10"}], [{K: "11"}, {K: "many"}, {}]),
    ("numeric", {"NumericGreaterThanEquals": {K: "10"}}, [{K: "10"}, {K: "10.5"}], [{K: "9"}]),
    ("date", {"DateGreaterThan": {K: ISSUED}},
     [{K: "2020-01-01T00:00:02Z"}, {K: "2020-02"}, {K: "2021"}, {K: "1577836802"}],
     [{K: "2019"}, {K: "1577836801"}, {K: "2020-01-01T01:00:01+01:00"}, {K: "2020-01-01"}, {}]),
    ("Boolean", {"Bool": {K: False}}, [{K: "false"}], [{K: "true"}, {}]),
    ("binary", {"BinaryEquals": {K: KEY}}, [{K: KEY}], [{K: "ASIAIOSFODNN7EXAMPLE"}, {}]),
    ("IP address", {"IpAddress": {K: ["203.0.113.0/24", "2001:DB8:1234:5678::/64"]}},
     [{K: "203.0.113.1"}, {K: "2001:db8:1234:5678::1"}], [{K: "198.51.100.1"}, {}]),
    ("ARN", {"ArnEquals": {K: TOPIC.replace("us-west-2", "*")}}, [{K: TOPIC}], [{K: OTHER_TOPIC}, {K: "arn:aws"}, {}]),
    ("ARN", {"ArnLike": {K: FINANCE}}, [], [{K: STORE}]),
    ("ARN", {"StringLike": {K: FINANCE}}, [{K: STORE}], []),
    ("ARN, multivalued", {"ForAllValues:ArnLike": {K: [f"{CDN}/*", f"{CDN}/support*"]}},
     [{K: (f"{CDN}/costcenter", f"{CDN}/support2025")}, {}], [{K: (f"{CDN}/a", f"{OTHER_CDN}/costcenter")}]),
    ("IfExists", {"StringLikeIfExists": {K: ["t1.*", "t2.*", "m3.*"]}}, [{K: "t1.micro"}, {}], [{K: "m2.micro"}]),
    ("IfExists, negated", {"StringNotEqualsIfExists": {K: "a"}}, [{K: "b"}, {}], [{K: "a"}]),
    ("Null", {"Null": {K: "false"}}, [{K: ISSUED}], [{}, {K: ()}]),
    ("Null", {"Null": {K: "true"}}, [{}, {K: ()}], [{K: ISSUED}]),
    ("Condition: case", {"StringEquals": {"AWS:K": "johndoe"}}, [{K: "johndoe"}], [{K: "JohnDoe"}]),
    ("multiple keys", {**TAGGED, "ArnLike": {WHO: [ANA, MARY]}}, [{DEPARTMENT: "legal", DUTY: "audit", WHO: MARY}],
     [{DEPARTMENT: "hr", DUTY: "audit", WHO: NIKKI}, {DEPARTMENT: "hr", DUTY: "payroll", WHO: MARY},
      {DEPARTMENT: "hr", WHO: MARY}, {WHO: MARY}]),
    ("multiple keys, negated", {**TAGGED, "ArnNotLike": {WHO: [ANA, MARY]}},
     [{DEPARTMENT: "legal", DUTY: "audit", WHO: NIKKI}],
     [{DEPARTMENT: "hr", DUTY: "audit", WHO: MARY}, {DEPARTMENT: "hr", DUTY: "payroll", WHO: NIKKI},
      {DEPARTMENT: "hr", WHO: NIKKI}, {WHO: NIKKI}]),
    ("multivalued", {"ForAllValues:StringEquals": {K: ["environment", "cost-center"]}, "Null": {K: "false"}},
     [{K: ("environment",)}, {K: ("environment", "cost-center")}], [{K: ("environment", "dept")}, {}]),
    ("multivalued", {"ForAnyValue:StringEquals": {K: ["environment", "cost-center"]}},
     [{K: ("environment",)}, {K: ("environment", "dept")}], [{K: ("dept",)}, {}]),
    ("multivalued: empty", {"ForAllValues:StringEquals": {K: "a"}}, [{K: ("",)}, {}], [{K: ("a", "b")}]),
    ("multivalued: empty", {"ForAnyValue:StringEquals": {K: ["a", ""]}}, [{K: ("a", "b")}], [{K: ("",)}, {}]),
    ("multivalued examples", {"ForAllValues:StringNotLike": {K: ["key1*", "key2*"]}}, [{K: ("key3:legal",)}, {}],
     [{K: ("key1:legal",)}, {K: ("key1:hr", "key1:personnel")}, {K: ("key1:hr", "key2:audit")}]),
    ("multivalued examples", {"ForAnyValue:StringEquals": {K: "webserver"}},
     [{K: ("webserver",)}, {K: ("environment", "webserver", "test")}], [{K: ("environment", "test")}, {}]),
    ("multivalued, negated", {"ForAnyValue:StringNotEquals": {K: "a"}}, [{K: ("a", "b")}], [{K: ("a",)}, {}]),
    ("re:Post", {"ForAnyValue:StringEqualsIfExists": {K: "team"}}, [{K: ("team",)}], [{}]),
    ("single-valued examples",
     {"StringEquals": {ENVIRONMENT: ["production", "prod-backup"]}, "ArnEquals": {CLUSTER: [ONE, TWO]}},
     [{ENVIRONMENT: "production", CLUSTER: ONE}, {ENVIRONMENT: "prod-backup", CLUSTER: TWO}],
     [{"aws:RequestTag/webserver": "production", CLUSTER: TWO}, {CLUSTER: TWO}]),
    ("variables without a value", {"StringNotEquals": {OBJECT_TEAM: f"${{{TEAM}}}"}},
     [{OBJECT_TEAM: "a"}, {OBJECT_TEAM: "a", TEAM: ("a", "b")}], [{OBJECT_TEAM: "a", TEAM.upper(): "a"}]),
    ("variables: special", {"StringLike": {K: "${*}${?}${$}*"}}, [{K: "*?$a"}], [{K: "ab$a"}]),
    ("variables: special", {"StringEquals": {K: "${*}"}}, [{K: "*"}], [{K: "a"}]),
]  # fmt: skip
"""Page of the guide, or section of "Condition operators"; ``Condition``, contexts that match, contexts that do not."""


@pytest.mark.parametrize(("page", "condition", "matching", "others"), CONDITIONS)
def test_conditions(page: str, condition: dict[str, Any], matching: list[Any], others: list[Any]) -> None:
    policies = Policies(identity=[allow(Condition=condition)])
    assert [each for each in matching if not evaluate(request(context=each), policies).allowed] == []
    assert [each for each in others if evaluate(request(context=each), policies).allowed] == []


BUCKET, TABLES = "arn:aws:s3:::carlossalazar", "arn:aws:dynamodb:us-east-2:111122223333:table"
CARLOS, SHIRLEY, BOB = (f"{ACCOUNT}:user/{name}" for name in ("carlossalazar", "ShirleyRodriguez", "bob"))
AS_BOB = {NAME: "bob", WHO: BOB}
OWN_BUCKET = allow("s3:*", [f"{BUCKET}/*", BUCKET])
BUT_BOB = deny(Principal="*", Condition={"ArnNotEquals": {WHO: BOB}})
ALL, MANAGES = [allow()], [allow(["s3:*", "cloudwatch:*", "ec2:*"])]


def objects(*keys: str) -> list[Request]:
    return [request(resource=f"arn:aws:s3:::{key}") for key in keys]


EXAMPLES: list[tuple[str, Policies, list[Request], list[Request]]] = [
    ("single account",
     Policies(identity=[OWN_BUCKET, deny("s3:*", "*log*")], resource=[{**OWN_BUCKET, "Principal": {"AWS": CARLOS}}]),
     [request(CARLOS, "s3:PutObject", f"{BUCKET}/a")], [request(CARLOS, "s3:PutObject", f"{BUCKET}-logs/a")]),
    ("explicit and implicit denies", Policies(identity=[allow(["iam:Get*", "iam:List*"]), deny("iam:*Report")]),
     [request(action="iam:GetUser"), request(action="IAM:getuser")],
     [request(action="iam:CreatePolicy"), request(action="iam:GetCredentialReport")]),
    ("boundaries", Policies(identity=[allow(["iam:CreateUser", "ec2:*"])], boundary=MANAGES),
     [request(SHIRLEY, "ec2:RunInstances")], [request(SHIRLEY, "iam:CreateUser"), request(SHIRLEY, "s3:GetObject")]),
    ("session policies", Policies(identity=[allow(["iam:*", "s3:*"])], session=MANAGES),
     [request(session=SESSION)], [request(action="iam:GetUser"), request(action="ec2:RunInstances")]),
    ("Resource", Policies(identity=[allow(resource="arn:aws:s3:::b/*/test/*")]),
     objects("b/1/test/object.jpg", "b/1/2/test/3/object.jpg", "b/1///test///object.jpg", "b//test/a", "b/1/test/"),
     objects("b/1-test/object.jpg", "b/test/object.jpg", "b/1/2/test.jpg", "B/1/test/a")),
    ("NotResource", Policies(identity=[*ALL, {"Effect": "Deny", "Action": "*", "NotResource": "arn:aws:s3:::HR/*"}]),
     objects("HR/a"), objects("HRB/a")),
    ("NotAction", Policies(identity=[{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}]),
     [request()], [request(action="iam:GetUser")]),
    ("variables", Policies(identity=[allow(resource=f"{TABLES}/${{aws:username}}")]),
     [request(resource=f"{TABLES}/bob", context=AS_BOB)],
     [request(resource=f"{TABLES}/eve", context=AS_BOB), request(resource=f"{TABLES}/bob")]),
    ("variables without a value",
     Policies(identity=[*ALL, {"Effect": "Deny", "Action": "*", "NotResource": f"{TABLES}/${{aws:username}}"}]),
     [request(resource=f"{TABLES}/bob", context=AS_BOB)], [request(resource=f"{TABLES}/bob")]),
    ("variables: defaults", Policies(identity=[allow(resource=f"arn:aws:s3:::b-${{{TEAM}, 'company-wide'}}")]),
     [request(resource="arn:aws:s3:::b-yellow", context={TEAM: "yellow"}), *objects("b-company-wide")],
     [request(resource="arn:aws:s3:::b-company-wide", context={TEAM: "yellow"})]),
    ("Principal", Policies(identity=ALL, resource=[BUT_BOB]), [request(context=AS_BOB)], [request()]),
]  # fmt: skip
"""Page of the guide, policies, requests that they allow, requests that they do not."""


@pytest.mark.parametrize(("page", "policies", "allowed", "others"), EXAMPLES)
def test_policies(page: str, policies: Policies, allowed: list[Request], others: list[Request]) -> None:
    assert [each for each in allowed if not evaluate(each, policies).allowed] == []
    assert [each for each in others if evaluate(each, policies).allowed] == []


LOGS = "logs.amazonaws.com"
IDENTITY, RESOURCE, BOUNDARY, SESSION_POLICY, ENDPOINT = PolicyKind
NONE: dict[str, Any] = {"boundary": [], "session": []}
KEY_POLICY = {"resource_must_allow": True}


@pytest.mark.parametrize(
    ("principal", "named", "others", "kind", "allowed"),
    [
        (USER, {"AWS": USER}, {"boundary": []}, RESOURCE, True),
        (ROLE, {"AWS": SESSION}, NONE, RESOURCE, True),
        (ROLE, {"AWS": [ROOT, SESSION]}, NONE, RESOURCE, True),
        (ROLE, "*", NONE, RESOURCE, True),
        (ROLE, {"AWS": "*"}, NONE, RESOURCE, True),
        (ROLE, {"AWS": ROLE}, {}, RESOURCE, True),
        (ROLE, {"AWS": ROLE}, {"boundary": [], "session": ALL}, BOUNDARY, False),
        (ROLE, {"AWS": ROLE}, {"boundary": ALL, "session": []}, SESSION_POLICY, False),
        (ROLE, {"AWS": ROLE}, {"boundary": ALL, "session": ALL}, RESOURCE, True),
        (ROLE, {"AWS": ROOT}, {}, IDENTITY, False),
        (ROLE, {"AWS": "123456789012"}, {"identity": ALL}, IDENTITY, True),
        (USER, {"AWS": ROLE}, {"boundary": []}, IDENTITY, False),
        (USER, {"AWS": ROLE}, {"identity": ALL, "boundary": []}, BOUNDARY, False),
        (ROOT, {"AWS": USER}, {}, IDENTITY, True),
        (ROLE, {"Service": LOGS}, {}, IDENTITY, False),
        (LOGS, {"Service": ["sns.amazonaws.com", LOGS]}, {}, RESOURCE, True),
        (LOGS, {"Service": "sns.amazonaws.com"}, {"identity": ALL}, RESOURCE, False),
        (LOGS, {"AWS": ROOT}, {"identity": ALL}, RESOURCE, False),
        (LOGS, "*", {}, RESOURCE, True),
        # Of a KMS key or a role.
        (ROLE, {"AWS": ROOT}, {**KEY_POLICY, "identity": ALL}, IDENTITY, True),
        (ROLE, {"AWS": ROOT}, KEY_POLICY, IDENTITY, False),
        (ROLE, {"AWS": ROLE}, KEY_POLICY, RESOURCE, True),
        (ROLE, {"AWS": "arn:aws:iam::999999999999:root"}, {**KEY_POLICY, "identity": ALL}, RESOURCE, False),
        (ROOT, {"AWS": ROOT}, KEY_POLICY, IDENTITY, True),
        (ROOT, {"AWS": ROLE}, KEY_POLICY, RESOURCE, False),
    ],
)
def test_whom_a_resource_s_policy_names_says_what_limits_it(
    principal: str, named: Any, others: dict[str, Any], kind: PolicyKind, allowed: bool
) -> None:
    """Of "How AWS enforcement code logic evaluates requests", with implicit denies of the other policies."""
    asked = request(principal, session=SESSION if principal == ROLE else None)
    statement = {"Effect": "Allow", "Principal": named, "Action": "s3:*"}
    found = evaluate(asked, Policies(resource=[statement], **others))
    assert (found.allowed, found.explicit_deny, found.kind) == (allowed, False, kind)
    assert found.statements == tuple([statement] if kind is RESOURCE else others.get("identity", [])) * allowed


@pytest.mark.parametrize("kind", PolicyKind)
def test_an_explicit_deny_of_any_policy_wins(kind: PolicyKind) -> None:
    everything: dict[str, Any] = {each.name.lower(): [allow(Principal="*")] for each in PolicyKind}
    asked, denying = request(session=SESSION), deny(Principal="*")
    assert evaluate(asked, Policies(**everything)).allowed
    found = evaluate(asked, Policies(**everything | {kind.name.lower(): [allow(Principal="*"), denying]}))
    assert (found.allowed, found.explicit_deny, found.kind, found.statements) == (False, True, kind, (denying,))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ({"Effect": "Allow", "Action": "*"}, "needs one of Resource"),
        ({**allow(), "NotAction": "s3:*"}, "needs one of Action"),
        (allow(Condition={"StringSounds": {K: "a"}}), "StringSounds"),
        (allow(Condition={"NullIfExists": {K: "true"}}), "NullIfExists"),
        (allow(Condition={"ForSome:StringLike": {K: "a"}}), "ForSome:StringLike"),
        (allow(Condition={"StringEquals": {K: "a"}}), f"{K} has several values"),
    ],
)
def test_what_the_guide_has_no_rule_for_is_refused(statement: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(request(context={K: ("a", "b")}), Policies(identity=[statement]))
    with pytest.raises(ValueError, match="NotPrincipal"):
        evaluate(request(), Policies(resource=[deny(NotPrincipal={"AWS": ROLE})]))


@pytest.mark.parametrize(
    ("policies", "reason"),
    [
        (Policies(), "because no identity-based policy allows the s3:Get action"),
        (Policies(identity=[deny()]), "with an explicit deny in an identity-based policy"),
        (Policies(resource_must_allow=True), "because no resource-based policy allows the s3:Get action"),
        (Policies(resource=[BUT_BOB]), "with an explicit deny in a resource-based policy"),
        (Policies(identity=ALL, boundary=[]), "because no permissions boundary allows the s3:Get action"),
        (Policies(boundary=[deny()]), "with an explicit deny in a permissions boundary"),
        (Policies(identity=ALL, session=[]), "because no session policy allows the s3:Get action"),
        (Policies(endpoint=[]), "because no VPC endpoint policy allows the s3:Get action"),
        (Policies(endpoint=[BUT_BOB]), "with an explicit deny in a VPC endpoint policy"),
        (Policies(resource_must_allow=True), "because no role trust policy allows the sts:AssumeRole action"),
        (Policies(resource=[BUT_BOB]), "with an explicit deny in the role trust policy"),
    ],
)
def test_refusals_in_aws_s_words(policies: Policies, reason: str) -> None:
    action = "sts:AssumeRole" if "trust" in reason else "s3:Get"
    asked = request(action=action, resource=BUCKET, session=SESSION)
    refused = f"User: {SESSION} is not authorized to perform: {action} on resource: {BUCKET} {reason}"
    assert refusal(asked, evaluate(asked, policies)) == refused


def test_patterns_that_cover_patterns() -> None:
    assert not arn_covers("arn:aws:logs:*:log-group:x", "arn:aws:logs:us-east-1:1:log-group:x")
    assert arn_covers("arn:aws:logs:*:1:log-group:*", "arn:aws:logs:us-east-1:1:log-group:x")
    assert covers("a?c*", "abc")
    assert not covers("a.c", "abc")
    assert not covers("[a]", "a")
