"""What is broad in a permission, with the written reason where somebody accepted it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tritonstack.review.grants import ANYTHING, EVERYBODY, Grant
from tritonstack.review.patterns import is_wild
from tritonstack.review.policies import OWN_RESOURCE, Subject, SubjectKind
from tritonstack.review.snapshot import Findings

_RULE = "AwsSolutions-IAM5"
_REFERENCE = re.compile(r"<([^<>]*)>")
_ACCOUNT = re.compile(r"(?<![0-9])[0-9]{12}(?![0-9])")


def wildcards(grants: Iterable[Grant], *, subject: Subject, findings: Findings | None) -> tuple[str, ...]:
    """Every wildcard of grants that allow, in words, sorted.

    Args:
        grants: of one subject.
        subject: whom they are about.
        findings: of the environment, with the reasons for what is accepted; None where they are not known.
    """
    found: set[str] = set()
    for grant in grants:
        if grant.allows:
            found.update(_of(grant, subject, findings))
    return tuple(sorted(found))


def _of(grant: Grant, subject: Subject, findings: Findings | None) -> Iterator[str]:
    for kind, element, word in (("action", grant.action, _action_word), ("resource", grant.resource, _resource_word)):
        if kind == "resource" and element == ANYTHING and _is_own_resource(subject):
            continue
        if element.negated:
            yield f"{kind}: {element.words}"
        elif is_wild(element.shown[0]):
            text = f"{kind} {element.shown[0]}{word(element.shown[0])}"
            if subject.kind is SubjectKind.IDENTITY:
                text += _reason(grant, subject, f"{kind.capitalize()}::{element.shown[0]}", findings)
            yield text
    if grant.principal is not None and (grant.principal.negated or grant.principal.texts == (EVERYBODY,)):
        yield f"principal: {grant.principal.words}"


def _is_own_resource(subject: Subject) -> bool:
    """Whether ``*`` as a resource is the subject itself, or nothing that a statement says."""
    return subject.kind is SubjectKind.TRUST or subject.type in OWN_RESOURCE


def _action_word(action: str) -> str:
    if action == "*":
        return " (every action of every service)"
    return f" (every action of {action[:-2]})" if action.endswith(":*") else ""


def _resource_word(resource: str) -> str:
    if resource == "*":
        return " (everything)"
    parts = resource.split(":", 5)
    return f" (every resource of {parts[2]})" if len(parts) == 6 and parts[5] == "*" else ""


def foreign_accounts(grants: Iterable[Grant], account: str | None) -> tuple[str, ...]:
    """Accounts among the principals that are not the stack's own, sorted."""
    named = {
        each
        for grant in grants
        if grant.principal is not None
        for text in grant.principal.texts
        if text.startswith(("AWS:", "CanonicalUser:"))
        for each in _ACCOUNT.findall(text)
    }
    return tuple(sorted(named - {account}))


def _reason(grant: Grant, subject: Subject, what: str, findings: Findings | None) -> str:
    """The acknowledgement of cdk-nag's finding on the same text, if there is one."""
    if findings is None:
        return ""
    rule = f"{_RULE}[{what}]"
    for finding in findings.accepted:
        same_place = grant.source.path == finding.path or grant.source.path.startswith(f"{finding.path}/")
        if finding.stack == subject.stack and same_place and _as_shown(finding.rule, subject) == rule:
            return f" — accepted: {finding.accepted}"
    return " — no reason is written"


def _as_shown(rule: str, subject: Subject) -> str:
    """cdk-nag's ``<Bucket.Arn>`` as a permission shows it."""
    return _REFERENCE.sub(lambda found: subject.replaced.get(f"${{{found[1]}}}", f"${{{found[1]}}}"), rule)
