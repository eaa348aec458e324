"""What several statements hold together: each of them alone holds less."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.evaluator import Request, applies
from tests.review.policies import NARROWER, OTHER, WIDER, allow, changes, deny, policy, role, told
from tests.review.small import resource
from tritonstack.review import grants as grants_module

GET, PUT = "s3:GetObject", "s3:PutObject"
B = "arn:aws:s3:::b/*"


def when(operator: str, key: str, *values: str) -> dict[str, Any]:
    return {"Condition": {operator: {key: list(values)}}}


def but(action: str | list[str], on: str = B) -> dict[str, Any]:
    return {"Effect": "Allow", "NotAction": action, "Resource": on}


A, C, BOTH = (when("StringEquals", "k", *values) for values in (["a"], ["c"], ["a", "c"]))
NOT_A = when("StringNotEquals", "k", "a")
SAME = [
    pytest.param([allow(GET, **BOTH)], [allow(GET, **A), allow(GET, **C)], id="values of a condition"),
    pytest.param(
        [allow("s3:ListBucket", **when("StringLike", "s3:prefix", "x/*", "y/*"))],
        [allow("s3:ListBucket", **when("StringLike", "s3:prefix", each)) for each in ("x/*", "y/*")],
        id="prefixes",
    ),
    pytest.param([allow(GET)], [allow(GET, **A), allow(GET, **NOT_A)], id="a condition and its opposite"),
    pytest.param(
        [allow(GET)],
        [allow(GET, **when("Null", "k", "true")), allow(GET, **when("Null", "k", "false"))],
        id="with a key and without it",
    ),
    pytest.param([allow("*")], [but(GET), allow(GET)], id="all but one, and that one"),
    pytest.param([but("iam:*")], [but(["iam:*", "sts:*"]), allow("sts:*")], id="all but two, and one of these"),
    pytest.param(
        [but("iam:*")], [but(["s3:Get*", "iam:*"]), allow("s3:Get*")], id="all but a part of a service, and that part"
    ),
    pytest.param(
        [allow(GET, "*")],
        [{"Effect": "Allow", "Action": GET, "NotResource": B}, allow(GET)],
        id="all but one resource, and that one",
    ),
    pytest.param([but("a:A")], [but(["a:A", "a:C"]), but(["a:A", "a:E"])], id="all but two, twice"),
    pytest.param(
        [allow("s3:*"), but(["s3:Get*", "iam:*"])],
        [allow("s3:Get*"), but(["s3:Get*", "iam:*"])],
        id="a service, beside all but another and a part of it",
    ),
    pytest.param(
        [allow(GET, **NOT_A)], [allow(GET, **NOT_A), allow(GET, **when("Null", "k", "true"))], id="without a key"
    ),
    pytest.param(
        [allow(GET, **BOTH), but("s3:*")],
        [allow(GET, **A), allow(GET, **C), but("s3:*")],
        id="values of a condition, beside all but the service",
    ),
    pytest.param([deny(GET, **BOTH)], [deny(GET, **A), deny(GET, **C)], id="of a Deny"),
    pytest.param(
        [{"Fn::If": ["Large", allow(GET), allow(GET)]}], [allow(GET)], id="both branches of a template's condition"
    ),
    pytest.param(
        [{**allow([GET, PUT]), "Condition": {"StringEquals": {"k": ["a", "c"]}, "Bool": {"l": "true"}}}],
        [
            {**allow(action), "Condition": {"StringEquals": {"k": value}, "Bool": {"l": "true"}}}
            for action in (GET, PUT)
            for value in ("a", "c")
        ],
        id="values beside another condition",
    ),
]


@pytest.mark.parametrize(("one", "several"), SAME)
def test_what_several_hold_together_is_no_news(one: list[Any], several: list[Any]) -> None:
    assert told(role(*one), role(*several)) == []
    assert told(role(*several), role(*one)) == []


@pytest.mark.parametrize(("one", "several"), SAME)
def test_without_one_of_them_it_is(one: list[Any], several: list[Any]) -> None:
    if len(several) > 1:
        assert told(role(*several[1:]), role(*one)) != []


def test_in_two_policies_of_a_role_they_are_as_much_together() -> None:
    second = resource("AWS::IAM::Policy", policy(allow(GET, **C))["Properties"])
    assert told(role(allow(GET, **BOTH)), {**role(allow(GET, **A)), "More": second}) == []


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ([allow("s3:Get*")], [allow("s3:GetO*"), allow("s3:GetB*")]),
        ([allow(GET)], [allow(GET, **when("Bool", "k", "true")), allow(GET, **when("Bool", "k", "false"))]),
        ([allow(GET)], [allow(GET, **A), allow(GET, **when("StringNotEqualsIfExists", "k", "b"))]),
        ([allow(GET, **when("ForAnyValue:StringEquals", "k", "a"))], [allow(GET, **when("StringEquals", "k", "a"))]),
        ([allow("*")], [but(GET), allow(GET, "arn:aws:s3:::b/x")]),
        ([allow(GET, **when("StringEquals", "k", "${aws:v}"))], [allow(GET, **NOT_A)]),
    ],
)
def test_what_is_more_than_all_of_them_is_told(one: list[Any], several: list[Any]) -> None:
    """Of a key that is not in the request neither true nor false holds, and a variable may have any value."""
    assert {WIDER, OTHER} & {kind for kind, _ in told(role(*several), role(*one))}


def test_patterns_that_cut_one_another_are_seen_where_the_rest_holds_all_of_one() -> None:
    assert (
        told(role(allow("s3:Get*"), but("s3:Get*")), role(allow("s3:Get*"), but("s3:Get*"), allow("s3:*Object"))) == []
    )


def test_of_several_the_conditions_before_are_all_told() -> None:
    [change] = changes(role(allow(GET, **A), allow(GET, **C)), role(allow(GET, **when("StringEquals", "k", *"ace"))))
    assert change.kind is WIDER
    assert change.statement.endswith("— before: StringEquals k a or StringEquals k c; now: StringEquals k a | c | e")


def test_a_role_under_another_logical_id_may_what_it_could() -> None:
    old = role(allow(GET))
    new = {"Renamed": old["Role"], "Access": resource("AWS::IAM::Policy", {**old["Access"]["Properties"]})}
    new["Access"]["Properties"]["Roles"] = [{"Ref": "Renamed"}]
    assert told(old, new) == []
    new["Access"]["Properties"]["PolicyDocument"] = {"Statement": [allow([GET, PUT])]}
    assert told(old, new) == [(WIDER, f"may now: {PUT} on {B}")]


def test_policies_that_would_take_too_long_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one, several = role(allow(GET, **BOTH)), role(allow(GET, **A), allow(GET, **C))
    assert told(several, one) == []
    monkeypatch.setattr(grants_module, "MOST_STEPS", 1)
    assert [kind for kind, _ in told(several, one)] == [WIDER]


ACTIONS = ("a:A", "a:C", "a:E")
RESOURCES = ("arn:a", "arn:c", "arn:e")
"""The last of each is in no statement: it stands for all others."""
CONTEXTS: tuple[dict[str, str], ...] = ({}, {"k": "a"}, {"k": "c"}, {"k": "e"})


def element(name: str, values: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)
    return st.just({name: "*"}) | st.builds(
        lambda key, chosen: {key: chosen}, st.sampled_from([name, f"Not{name}"]), some
    )


STATEMENTS = st.lists(
    st.builds(
        lambda action, on, condition: {"Effect": "Allow", **action, **on, **condition},
        element("Action", ACTIONS[:-1]),
        element("Resource", RESOURCES[:-1]),
        st.sampled_from([{}, A, C, BOTH, NOT_A, when("StringNotEquals", "k", "a", "c"), when("Null", "k", "true")]),
    ),
    max_size=4,
)


def allowed(statements: list[Any]) -> set[tuple[str, str, int]]:
    return {
        (action, on, number)
        for action in ACTIONS
        for on in RESOURCES
        for number, context in enumerate(CONTEXTS)
        for each in statements
        if applies(each, Request(principal="arn:aws:iam::1:role/r", action=action, resource=on, context=context))
    }


@given(STATEMENTS, STATEMENTS)
def test_something_is_told_where_iam_allows_something_else_and_nowhere_else(
    before: list[Any], after: list[Any]
) -> None:
    """As IAM evaluates, of all requests that such statements tell apart."""
    kinds = {each.kind for each in changes(role(*before), role(*after))}
    was, now = allowed(before), allowed(after)
    assert bool(kinds & {WIDER, OTHER}) is bool(now - was) or OTHER in kinds
    assert bool(kinds & {NARROWER, OTHER}) is bool(was - now) or OTHER in kinds
    assert bool(kinds) is (was != now)
