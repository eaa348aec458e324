"""The evaluator against the examples of the IAM user guide, with the outcomes that the guide states.

Two rows of its "Condition operators" are not here, where it contradicts itself: by the first, ``distribution/admin``
does not match ``distribution/*``; by the second, ``ForAllValues:StringNotLike`` matches what ``StringLike`` does.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import cases
from tritonstack.aws.iam_evaluation import Policies, PolicyKind, Request, evaluate, refusal
from tritonstack.aws.iam_policies import arn_covers, covers

ROLE = "arn:aws:iam::123456789012:role/examplerole"
SESSION = "arn:aws:sts::123456789012:assumed-role/examplerole/examplerolesessionname"


def request(principal: str = ROLE, action: str = "s3:GetObject", resource: str = "*", **more: Any) -> Request:
    return Request(principal=principal, action=action, resource=resource, **more)


def allow(action: Any = "*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: Any = "*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {**allow(action, resource, **more), "Effect": "Deny"}


Context = dict[str, str | tuple[str, ...]]


@cases("page, condition, matching, others")
def test_conditions(page: str, condition: dict[str, Any], matching: list[Context], others: list[Context]) -> None:
    policies = Policies(identity=[allow(Condition=condition)])
    assert [each for each in matching if not evaluate(request(context=each), policies).allowed] == []
    assert [each for each in others if evaluate(request(context=each), policies).allowed] == []


@cases("page, policies, allowed, others")
def test_policies(
    page: str, policies: dict[str, Any], allowed: list[dict[str, Any]], others: list[dict[str, Any]]
) -> None:
    given = Policies(**policies)
    assert [each for each in allowed if not evaluate(request(**each), given).allowed] == []
    assert [each for each in others if evaluate(request(**each), given).allowed] == []


@cases("principal, named, others, kind, allowed")
def test_the_principal_of_a_resource_s_policy_decides_what_limits_it(
    principal: str, named: Any, others: dict[str, Any], kind: PolicyKind, allowed: bool
) -> None:
    """Of "How AWS enforcement code logic evaluates requests", with implicit denies of the other policies."""
    tried = request(principal, session=SESSION if principal == ROLE else None)
    statement = {"Effect": "Allow", "Principal": named, "Action": "s3:*"}
    found = evaluate(tried, Policies(resource=[statement], **others))
    assert (found.allowed, found.explicit_deny, found.kind) == (allowed, False, kind)
    allowing = [statement] if kind is PolicyKind.RESOURCE else others.get("identity", [])
    assert found.statements == tuple(allowing) * allowed


@pytest.mark.parametrize("kind", PolicyKind)
def test_an_explicit_deny_of_any_policy_wins(kind: PolicyKind) -> None:
    everything: dict[str, Any] = {each.name.lower(): [allow(Principal="*")] for each in PolicyKind}
    tried, denying = request(session=SESSION), deny(Principal="*")
    assert evaluate(tried, Policies(**everything)).allowed
    found = evaluate(tried, Policies(**everything | {kind.name.lower(): [allow(Principal="*"), denying]}))
    assert (found.allowed, found.explicit_deny, found.kind, found.statements) == (False, True, kind, (denying,))


@cases("statement, message")
def test_what_the_guide_has_no_rule_for_is_refused(statement: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(request(context={"aws:k": ("a", "b")}), Policies(identity=[statement]))
    with pytest.raises(ValueError, match="NotPrincipal"):
        evaluate(request(), Policies(resource=[deny(NotPrincipal={"AWS": ROLE})]))


@cases("policies, reason")
def test_refusals_in_aws_s_words(policies: dict[str, Any], reason: str) -> None:
    action = "sts:AssumeRole" if "trust" in reason else "s3:Get"
    tried = request(action=action, resource="arn:aws:s3:::b", session=SESSION)
    refused = f"User: {SESSION} is not authorized to perform: {action} on resource: arn:aws:s3:::b {reason}"
    assert refusal(tried, evaluate(tried, Policies(**policies))) == refused


def test_patterns_that_cover_patterns() -> None:
    assert not arn_covers("arn:aws:logs:*:log-group:x", "arn:aws:logs:us-east-1:1:log-group:x")
    assert arn_covers("arn:aws:logs:*:1:log-group:*", "arn:aws:logs:us-east-1:1:log-group:x")
    assert covers("a?c*", "abc")
    assert not covers("a.c", "abc")
    assert not covers("[a]", "a")
