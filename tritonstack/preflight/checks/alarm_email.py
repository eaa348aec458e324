"""Whoever alarms shall tell has confirmed it: an address that did not is told nothing."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject

_PENDING = "PendingConfirmation"
"""SNS's word in the place of a subscription's ARN (API reference, Subscribe)."""


def check(subject: Subject) -> Iterator[Result]:
    """A result for each address."""
    alarms = subject.environment.alarms
    for address in alarms.email if alarms is not None else ():
        about = About(check="alarm-email", subject=address, needed="a confirmed subscription, or none yet")
        yield from about.look(_look, subject)


def _look(about: About, subject: Subject) -> Result:
    topics = subject.stacks.made(f"{subject.environment.environment}-observability", "AWS::SNS::Topic")
    rows = [
        row
        for topic in topics
        for row in subject.calls.pages("sns", "list_subscriptions_by_topic", "Subscriptions", TopicArn=topic)
        if row.get("Protocol") == "email" and row.get("Endpoint") == about.subject
    ]
    if not rows:
        return about.passes("none yet: a deployment subscribes it, and SNS writes to it")
    if all(row["SubscriptionArn"] == _PENDING for row in rows):
        return about.fails("it has not confirmed: no alarm reaches it", advice="Confirm by the link that SNS mailed.")
    return about.passes("confirmed")


CHECK = Check(name="alarm-email", title="addresses of alarms", run=check)
