"""Permissions and openings of drawn policies: what holds whatever the statements are."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.review.policies import NARROWER, OTHER, WIDER, changes, environment, policy, role
from tests.review.small import Template, resource
from tritonstack.aws.iam_evaluation import Policies, Request, evaluate
from tritonstack.review.access.openings import OpeningKind, opening_changes
from tritonstack.review.access.permissions import Direction, permission_changes
from tritonstack.review.snapshot import EnvironmentSnapshot

ACTIONS = ("s3:GetObject", "s3:GetAcl", "s3:PutObject", "sns:Publish")
WIDE_ACTIONS = (*ACTIONS, "s3:Get*", "s3:*", "*")
RESOURCES = ("arn:a", "arn:ab", "arn:b")
WIDE_RESOURCES = (*RESOURCES, "arn:a*", "*")
CONTEXTS: tuple[dict[str, str], ...] = ({}, {"k": "x"}, {"k": "y"}, {"k": "x", "l": "x"})
SWAPPED = {WIDER: NARROWER, NARROWER: WIDER, OTHER: OTHER}
OPPOSITE = {
    OpeningKind.OPENED: OpeningKind.CLOSED,
    OpeningKind.CLOSED: OpeningKind.OPENED,
    OpeningKind.OTHER: OpeningKind.OTHER,
}

CONDITIONS = st.sampled_from(
    [
        {},
        {"StringEquals": {"k": "x"}},
        {"StringEquals": {"k": ["x", "y"]}},
        {"StringEquals": {"k": "x", "l": "x"}},
        {"StringNotEquals": {"k": "x"}},
        {"StringEqualsIfExists": {"k": "x"}},
    ]
)


def element(name: str, values: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """``Action`` or ``NotAction`` with some values."""
    given_values = st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)
    return st.builds(lambda key, some: {key: some}, st.sampled_from([name, name, f"Not{name}"]), given_values)


def statement(effect: str, action: Any, on: Any, condition: Any) -> dict[str, Any]:
    """A statement of an identity's policy."""
    return {"Effect": effect, **action, **on, **({"Condition": condition} if condition else {})}


STATEMENTS = st.lists(
    st.builds(
        statement,
        st.sampled_from(["Allow", "Allow", "Deny"]),
        element("Action", WIDE_ACTIONS),
        element("Resource", WIDE_RESOURCES),
        CONDITIONS,
    ),
    max_size=4,
)
RULES = st.lists(
    st.fixed_dictionaries(
        {
            "IpProtocol": st.sampled_from(["tcp", "udp", "-1"]),
            "FromPort": st.sampled_from([1, 80]),
            "ToPort": st.sampled_from([80, 443]),
            "CidrIp": st.sampled_from(["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16"]),
        }
    ),
    max_size=4,
)


def cut(statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same statements, one for each action and resource; what is negated cannot be cut."""
    return [
        {**each, **({"Action": [action]} if action else {}), **({"Resource": [on]} if on else {})}
        for each in statements
        for action in each.get("Action", [None])
        for on in each.get("Resource", [None])
    ]


def group(rules: list[dict[str, Any]]) -> Template:
    """A security group with these rules inwards."""
    return {"Group": resource("AWS::EC2::SecurityGroup", {"SecurityGroupIngress": rules})}


def everything(statements: list[dict[str, Any]], rules: list[dict[str, Any]]) -> EnvironmentSnapshot:
    return environment({**role(*statements), **group(rules)})


@given(STATEMENTS, STATEMENTS, RULES, RULES)
def test_the_other_way_round_wider_is_narrower(a: list[Any], b: list[Any], rules: list[Any], others: list[Any]) -> None:
    before, after = everything(a, rules), everything(b, others)
    there, back = permission_changes(before, after), permission_changes(after, before)
    assert sorted(
        (SWAPPED[Direction(each.kind)], each.allows, each.actions, each.resources) for each in there
    ) == sorted((each.kind, each.allows, each.actions, each.resources) for each in back)
    opened = opening_changes(before, after, permissions=there)
    closed = opening_changes(after, before, permissions=back)
    assert sorted(OPPOSITE[OpeningKind(each.kind)] for each in opened) == sorted(each.kind for each in closed)


@given(STATEMENTS, st.randoms(use_true_random=False))
def test_the_grouping_and_order_of_statements_is_no_change(statements: list[Any], random: Any) -> None:
    pieces = cut(statements)
    random.shuffle(pieces)
    middle = random.randint(0, len(pieces))
    apart = {**role(*pieces[:middle]), "More": policy(*pieces[middle:])}
    assert changes(role(*statements), apart) == ()
    assert changes(apart, role(*statements)) == ()


def allowed(statements: list[Any]) -> set[tuple[str, str, int]]:
    """What IAM lets a role with these statements do, of all requests here."""
    return {
        (action, on, number)
        for action in (*ACTIONS, "zzz:Else")
        for on in (*RESOURCES, "arn:else")
        for number, context in enumerate(CONTEXTS)
        if evaluate(
            Request(principal="arn:aws:iam::111111111111:role/r", action=action, resource=on, context=context),
            Policies(identity=statements),
        ).allowed
    }


@given(STATEMENTS, STATEMENTS)
def test_what_iam_allows_from_now_on_is_never_left_out(before: list[Any], after: list[Any]) -> None:
    """By IAM's evaluation: a request allowed after and not before is reported as wider, or as changed conditions."""
    kinds = {each.kind for each in changes(role(*before), role(*after))}
    was, now = allowed(before), allowed(after)
    if now - was:
        assert kinds & {WIDER, OTHER}
    if was - now:
        assert kinds & {NARROWER, OTHER}
    if kinds == {WIDER}:
        assert was <= now
    if kinds == {NARROWER}:
        assert now <= was
