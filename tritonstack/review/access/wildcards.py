"""Wildcards and accounts of others in grants, with the reason that cdk-nag's acknowledgement gives for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tritonstack.aws.iam_policies import EVERYBODY, is_wild
from tritonstack.review.access.policies import ANYTHING, OWN_RESOURCE, Grant, Subject, SubjectKind
from tritonstack.review.snapshot import Findings

_RULE = "AwsSolutions-IAM5"
_REFERENCE = re.compile(r"<([^<>]*)>")
_ACCOUNT = re.compile(r"(?<![0-9])[0-9]{12}(?![0-9])")


def wildcards(grants: Iterable[Grant], *, subject: Subject, findings: Findings | None) -> tuple[str, ...]:
    """Every wildcard of a subject's grants that allow, in words, sorted.

    ``findings``: of the environment, with the reasons of accepted wildcards; None where they are unknown.
    """
    found = {text for grant in grants if grant.allows for text in _wildcards(grant, subject, findings)}
    return tuple(sorted(found))


def _wildcards(grant: Grant, subject: Subject, findings: Findings | None) -> Iterator[str]:
    own = subject.kind is SubjectKind.TRUST or subject.type in OWN_RESOURCE
    for kind, element in (("action", grant.action), ("resource", grant.resource)):
        if kind == "resource" and element == ANYTHING and own:
            continue
        if element.negated:
            yield f"{kind}: {element.words}"
        elif is_wild(element.shown):
            text = f"{kind} {element.shown}{_breadth(kind, element.shown)}"
            if subject.kind is SubjectKind.IDENTITY:
                text += _reason(grant, subject, f"{kind.capitalize()}::{element.shown}", findings)
            yield text
    if grant.principal is not None and (grant.principal.negated or grant.principal.text == EVERYBODY):
        yield f"principal: {grant.principal.words}"


def _breadth(kind: str, pattern: str) -> str:
    if kind == "action":
        if pattern == "*":
            return " (every action of every service)"
        return f" (every action of {pattern[:-2]})" if pattern.endswith(":*") else ""
    if pattern == "*":
        return " (everything)"
    parts = pattern.split(":", 5)
    return f" (every resource of {parts[2]})" if len(parts) == 6 and parts[5] == "*" else ""


def _reason(grant: Grant, subject: Subject, wildcard: str, findings: Findings | None) -> str:
    """The reason with which cdk-nag's finding on the same wildcard is accepted, if there is one."""
    if findings is None:
        return ""

    def shown(rule: str) -> str:
        """cdk-nag's ``<Bucket.Arn>`` as a permission shows it."""
        return _REFERENCE.sub(lambda found: subject.values.known.get(f"${{{found[1]}}}", f"${{{found[1]}}}"), rule)

    for finding in findings:
        same_place = finding.accepted and f"{grant.source.path}/".startswith(f"{finding.path}/")
        if finding.stack == subject.stack and same_place and shown(finding.rule) == f"{_RULE}[{wildcard}]":
            return f" — accepted: {finding.accepted}"
    if "*" not in wildcard:
        return " — each ? is one character, so the pattern is bounded; cdk-nag looks at * alone"
    return " — no reason is written"


def foreign_accounts(grants: Iterable[Grant], account: str | None) -> tuple[str, ...]:
    """Accounts among the principals that are not the stack's own, sorted."""
    named = {
        each
        for grant in grants
        if grant.principal is not None and grant.principal.text.startswith(("AWS:", "CanonicalUser:"))
        for each in _ACCOUNT.findall(grant.principal.text)
    }
    return tuple(sorted(named - {account}))
