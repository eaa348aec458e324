"""The evaluator itself: truth tables written by hand from the IAM user guide."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policies.evaluation import Request, Verdict, applies, evaluate
from tritonstack.iam_policies import arn_covers, covers

ROLE = "arn:aws:iam::123456789012:role/r"
OBJECT = "arn:aws:s3:::mine/endpoints/a"
ALLOW = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::mine/*"}
DENY = {"Effect": "Deny", "Action": "s3:*", "Resource": "*"}
OTHER = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"}
ROOT = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "*", "Resource": "*"}
THIS_ROLE = {"Effect": "Allow", "Principal": {"AWS": ROLE}, "Action": "s3:GetObject", "Resource": "*"}
EVERYBODY_DENIED = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"}
SERVICE = {"Effect": "Allow", "Principal": {"Service": "logs.amazonaws.com"}, "Action": "s3:*", "Resource": "*"}
A, D, N = Verdict.ALLOWED, Verdict.DENIED, Verdict.NOT_ALLOWED


def request(**changes: Any) -> Request:
    return Request(**{"principal": ROLE, "action": "s3:GetObject", "resource": OBJECT, **changes})


@pytest.mark.parametrize(
    ("identity", "boundary", "resource", "verdict"),
    [
        ([], None, None, N),
        ([ALLOW], None, None, A),
        ([OTHER], None, None, N),
        ([ALLOW, DENY], None, None, D),
        ([DENY, ALLOW], None, None, D),
        ([ALLOW], [ALLOW], None, A),
        ([ALLOW], [OTHER], None, N),
        ([ALLOW], [], None, N),
        ([], [ALLOW], None, N),
        ([ALLOW], [ALLOW, DENY], None, D),
        ([ALLOW], None, [EVERYBODY_DENIED], D),
        ([], None, [THIS_ROLE], A),
        ([], [ALLOW], [THIS_ROLE], A),
        ([], [OTHER], [THIS_ROLE], N),
        ([], None, [ROOT], N),
        ([ALLOW], None, [ROOT], A),
        ([], None, [SERVICE], N),
        ([DENY], None, [THIS_ROLE], D),
    ],
)
def test_identity_boundary_and_resource_policies_together(
    identity: list[Any], boundary: list[Any] | None, resource: list[Any] | None, verdict: Verdict
) -> None:
    assert evaluate(request(), identity=identity, boundary=boundary, resource=resource) is verdict


@pytest.mark.parametrize(
    ("identity", "key", "verdict"),
    [
        ([ALLOW], [ROOT], A),
        ([ALLOW], [], N),
        ([], [ROOT], N),
        ([], [THIS_ROLE], A),
        ([ALLOW], [SERVICE], N),
        ([ALLOW, DENY], [ROOT], D),
    ],
)
def test_a_key_lets_nobody_in_whom_its_policy_does_not(identity: list[Any], key: list[Any], verdict: Verdict) -> None:
    assert evaluate(request(), identity=identity, resource=key, resource_must_allow=True) is verdict


def test_a_service_has_no_identity_policies() -> None:
    service = request(principal="logs.amazonaws.com")
    assert evaluate(service, identity=[ALLOW]) is N
    assert evaluate(service, resource=[SERVICE]) is A
    assert evaluate(request(principal="sns.amazonaws.com"), resource=[SERVICE]) is N


def test_another_account_is_not_this_one() -> None:
    stranger = request(principal="arn:aws:iam::999999999999:role/r")
    assert evaluate(stranger, identity=[ALLOW], resource=[ROOT], resource_must_allow=True) is N


@pytest.mark.parametrize(
    ("statement", "matches"),
    [
        ({"Action": "s3:getobject", "Resource": "*"}, True),
        ({"Action": "s3:Get*", "Resource": "*"}, True),
        ({"Action": "s3:Get?bject", "Resource": "*"}, True),
        ({"Action": "s3:GetObjectVersion", "Resource": "*"}, False),
        ({"Action": ["s3:PutObject", "s3:GetObject"], "Resource": "*"}, True),
        ({"NotAction": "s3:PutObject", "Resource": "*"}, True),
        ({"NotAction": "s3:Get*", "Resource": "*"}, False),
        ({"NotAction": ["iam:*", "s3:GetObject"], "Resource": "*"}, False),
        ({"Action": "*", "Resource": "arn:aws:s3:::mine"}, False),
        ({"Action": "*", "Resource": "arn:aws:s3:::mine/endpoints/*"}, True),
        ({"Action": "*", "Resource": "arn:aws:s3:::MINE/*"}, False),
        ({"Action": "*", "NotResource": "arn:aws:s3:::mine/*"}, False),
        ({"Action": "*", "NotResource": "arn:aws:s3:::other/*"}, True),
        ({"Action": "*", "Resource": "arn:aws:s3:::mine/[a-z]*"}, False),
    ],
)
def test_actions_have_no_case_and_resources_do(statement: dict[str, Any], matches: bool) -> None:
    assert applies({"Effect": "Allow", **statement}, request()) is matches


@pytest.mark.parametrize("statement", [{"Action": "*"}, {"Action": "*", "NotAction": "s3:*", "Resource": "*"}])
def test_a_statement_that_iam_would_refuse_is_refused(statement: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs one of"):
        applies({"Effect": "Allow", **statement}, request())


KEY = "aws:k"


def statement(condition: dict[str, Any]) -> dict[str, Any]:
    return {**ALLOW, "Condition": condition}


@pytest.mark.parametrize(
    ("condition", "context", "holds"),
    [
        ({"StringEquals": {KEY: "a"}}, {KEY: "a"}, True),
        ({"StringEquals": {KEY: "a"}}, {"AWS:K": "a"}, True),
        ({"StringEquals": {KEY: "a"}}, {KEY: "A"}, False),
        ({"StringEquals": {KEY: "a*"}}, {KEY: "ab"}, False),
        ({"StringEquals": {KEY: ["a", "b"]}}, {KEY: "b"}, True),
        ({"StringEquals": {KEY: "a"}}, {}, False),
        ({"StringEqualsIfExists": {KEY: "a"}}, {}, True),
        ({"StringEqualsIfExists": {KEY: "a"}}, {KEY: "b"}, False),
        ({"StringEqualsIgnoreCase": {KEY: "a"}}, {KEY: "A"}, True),
        ({"StringNotEquals": {KEY: "a"}}, {}, True),
        ({"StringNotEquals": {KEY: ["a", "b"]}}, {KEY: "b"}, False),
        ({"StringNotEquals": {KEY: "a"}}, {KEY: "c"}, True),
        ({"StringLike": {KEY: "bert.*.tar.gz"}}, {KEY: "bert.0.tar.gz"}, True),
        ({"StringLike": {KEY: "bert.*.tar.gz"}}, {KEY: "bert-large.0.tar.gz"}, False),
        ({"StringNotLike": {KEY: "a*"}}, {KEY: "ab"}, False),
        ({"Bool": {KEY: "true"}}, {KEY: "true"}, True),
        ({"Bool": {KEY: True}}, {KEY: "false"}, False),
        ({"Bool": {KEY: "false"}}, {}, False),
        ({"Null": {KEY: "true"}}, {}, True),
        ({"Null": {KEY: "true"}}, {KEY: "a"}, False),
        ({"Null": {KEY: "false"}}, {KEY: "a"}, True),
        ({"ArnLike": {KEY: "arn:aws:s3:::a*"}}, {KEY: "arn:aws:s3:::ab"}, True),
        ({"ArnLike": {KEY: "arn:*:s3:::a"}}, {KEY: "arn:aws:sns:::a"}, False),
        ({"ArnNotLike": {KEY: "arn:aws:s3:::a"}}, {KEY: "arn:aws:s3:::b"}, True),
        ({"ForAnyValue:StringEquals": {KEY: "a"}}, {KEY: ("b", "a")}, True),
        ({"ForAnyValue:StringEquals": {KEY: "a"}}, {KEY: ("b",)}, False),
        ({"ForAnyValue:StringEquals": {KEY: "a"}}, {}, False),
        ({"ForAllValues:StringEquals": {KEY: ["a", "b"]}}, {KEY: ("b", "a")}, True),
        ({"ForAllValues:StringEquals": {KEY: "a"}}, {KEY: ("b", "a")}, False),
        ({"ForAllValues:StringEquals": {KEY: "a"}}, {}, True),
        ({"NumericLessThanEquals": {KEY: "10"}}, {KEY: "9"}, True),
        ({"NumericGreaterThanEquals": {KEY: "10"}}, {KEY: "9"}, False),
        ({"StringEquals": {KEY: "a", "aws:j": "b"}}, {KEY: "a"}, False),
        ({"StringEquals": {KEY: "a"}, "Bool": {"aws:j": "true"}}, {KEY: "a", "aws:j": "true"}, True),
    ],
)
def test_conditions(condition: dict[str, Any], context: dict[str, Any], holds: bool) -> None:
    assert applies(statement(condition), request(context=context)) is holds


def test_an_operator_that_is_not_known_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="DateLessThan"):
        applies(statement({"DateLessThan": {KEY: "2026-01-01"}}), request(context={KEY: "2025-01-01"}))


def test_a_wildcard_in_an_arn_condition_crosses_no_colon_but_in_the_last_part() -> None:
    assert not arn_covers("arn:aws:logs:*:log-group:x", "arn:aws:logs:us-east-1:1:log-group:x")
    assert arn_covers("arn:aws:logs:*:1:log-group:*", "arn:aws:logs:us-east-1:1:log-group:x")


def test_wildcards_are_two_signs_and_no_others() -> None:
    assert covers("a?c*", "abc")
    assert not covers("a.c", "abc")
    assert not covers("[a]", "a")
