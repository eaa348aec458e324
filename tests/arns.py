"""ARNs and actions as tables of tests write them, short."""

from __future__ import annotations

ACCOUNT, REGION = "123456789012", "us-east-1"
_PLACES = {"s3": ":", "iam": ":{account}"}
"""Service → region and account in its ARNs, where they are not both."""


def arn(service: str, resource: str, *, account: str = ACCOUNT) -> str:
    """An ARN in the account, and the region of the tests."""
    place = _PLACES.get(service, f"{REGION}:{{account}}").format(account=account)
    return f"arn:aws:{service}:{place}:{resource}"


def arn_of(short: str, *, account: str = ACCOUNT) -> str:
    """``sqs:q`` → the queue's ARN; ``*`` and whole ARNs stay as they are."""
    service, colon, resource = short.partition(":")
    return arn(service, resource, account=account) if colon and service != "arn" else short


def actions_of(short: str) -> list[str]:
    """``s3:GetObject PutObject iam:PassRole`` → three actions: each without a service is of the one before it."""
    actions: list[str] = []
    for name in short.split():
        actions.append(name if ":" in name else f"{actions[-1].partition(':')[0]}:{name}")
    return actions
