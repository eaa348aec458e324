"""The KMS key of your own that the settings name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tritonstack.iam_policies import covers, listed
from tritonstack.preflight.subject import About, PreflightResult, Subject

_NO_KEY = ("NotFoundException",)
_WOULD = "DryRunOperationException"
"""KMS's error code for a DryRun that would succeed (developer guide, "Testing your permissions")."""
_POLICY_PAGE = "docs/decisions/0014-network-and-keys.md has the statements."
USED = "kms:GenerateDataKey"
"""The action that every user of a key here needs, whatever else."""


def _services(subject: Subject) -> Iterator[str]:
    """CloudWatch Logs, where log groups are encrypted; CloudWatch, where alarms notify an encrypted topic."""
    environment = subject.environment
    created = environment.network is not None and environment.network.created is not None
    if subject.builds_on_deploy or created or environment.logs.endpoint_days is not None:
        yield f"logs.{environment.region}.amazonaws.com"
    if environment.alarms is not None:
        yield "cloudwatch.amazonaws.com"


def check_key(subject: Subject) -> Iterator[PreflightResult]:
    """The key of the environment's file: state, kind, policy, and whether the caller may encrypt (with DryRun)."""
    arn, field = subject.environment.artifacts.key_arn, "artifacts.key_arn"
    if arn is None:
        return
    needed = f"{field}: an enabled symmetric key in {subject.environment.region}"
    results = list(About(check="key", subject=arn, needed=needed).look(_key_state, subject, arn))
    yield from results
    if any(result.outcome == "fails" for result in results):
        return
    services = tuple(_services(subject))
    needed = f"{field}: delegates to IAM of the account" + (f"; lets in {', '.join(services)}" if services else "")
    yield from About(check="key", subject=f"policy of {arn}", needed=needed).look(_key_policy, subject, arn, services)
    about = About(check="key", subject=f"use of {arn}", needed=f"{field}: encrypts for the caller")
    yield from about.look(_key_dry_run, subject, arn)


def _key_state(about: About, subject: Subject, arn: str) -> PreflightResult:
    answer = subject.calls.ask("kms", "describe_key", absent=_NO_KEY, KeyId=arn)
    if answer is None:
        return about.fails("no such key", advice="Name a key that is there.")
    metadata = answer["KeyMetadata"]
    state, usage = metadata.get("KeyState", "Enabled"), metadata.get("KeyUsage", "ENCRYPT_DECRYPT")
    spec = metadata.get("KeySpec", "SYMMETRIC_DEFAULT")
    found = f"{state}, {usage}, {spec}"
    if state != "Enabled":
        return about.fails(found, advice="Enable it (aws kms enable-key), or cancel its deletion, or name another one.")
    if usage != "ENCRYPT_DECRYPT" or spec != "SYMMETRIC_DEFAULT":
        return about.fails(found, advice="Name a symmetric key for encryption: S3, EBS and logs take no other.")
    return about.passes(found)


def _key_policy(about: About, subject: Subject, arn: str, services: tuple[str, ...]) -> PreflightResult:
    metadata = subject.calls.must("kms", "describe_key", KeyId=arn)["KeyMetadata"]
    answer = subject.calls.must("kms", "get_key_policy", KeyId=metadata["Arn"], PolicyName="default")
    policy = json.loads(answer["Policy"])
    missing = [service for service in services if not lets_in(policy, "Service", (service, f"{service}.cn"))]
    account = subject.environment.account
    root = (account, f"arn:*:iam::{account}:root")
    if not lets_in(policy, "AWS", root):
        missing.insert(0, f"IAM of account {account}")
    if missing:
        return about.fails(
            f"lets in no {', no '.join(missing)}", advice=f"Add statements to the key's policy: {_POLICY_PAGE}"
        )
    return about.passes("lets in what is needed (conditions are not looked at)")


def lets_in(policy: dict[str, Any], kind: str, principals: Iterable[str]) -> bool:
    """Whether a statement allows ``USED`` for one of the principals (patterns); its conditions are not looked at."""
    wanted = tuple(principals)
    for statement in listed(policy.get("Statement")):
        named = statement.get("Principal")
        names = ["*"] if named == "*" else listed(named.get(kind)) if isinstance(named, dict) else []
        allows = any(covers(str(action).lower(), USED.lower()) for action in listed(statement.get("Action")))
        known = any(name == "*" or covers(pattern, name) for name in names for pattern in wanted)
        if statement.get("Effect") == "Allow" and allows and known:
            return True
    return False


def _key_dry_run(about: About, subject: Subject, arn: str) -> PreflightResult:
    answer = subject.calls.ask(
        "kms", "encrypt", absent=(_WOULD,), KeyId=arn, Plaintext=b"tritonstack preflight", DryRun=True
    )
    if answer is None:
        return about.passes("would encrypt (DryRun)")
    return about.unknown("KMS ignored DryRun and encrypted a text of no meaning", advice="Report it: KMS never does.")
