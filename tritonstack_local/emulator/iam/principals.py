"""Principals: the owner of an access key, the policies of roles and users, and sessions of roles.

MiniStack keeps roles, users, policies and the sessions that AssumeRole makes. The account's administrator is the caller
whose access key is none of theirs but the one that ``tritonstack local up`` drew.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tritonstack.aws.iam_evaluation import Policy, Statement
from tritonstack.aws.iam_policies import listed
from tritonstack_local import ACCOUNT
from tritonstack_local.emulator.ministack_adapter import iam
from tritonstack_local.emulator.ministack_adapter.core import get_region
from tritonstack_local.emulator.request_validation import CREDENTIALS, RefusedError

EVERYTHING: Policy = ({"Sid": "Administrator", "Effect": "Allow", "Action": "*", "Resource": "*"},)
_SESSION_SECONDS = 12 * 3600.0
"""The longest session of a role (IAM API reference, MaxSessionDuration)."""


class CredentialsError(RefusedError):
    """Credentials that AWS does not accept, before any policy is read."""


@dataclass(frozen=True, kw_only=True)
class Principal:
    """The caller of a request."""

    arn: str  # of the role, the user or the account; of a service its name
    kind: Literal["administrator", "role", "user", "service"]
    session: str | None = None  # the ARN of the role's session
    policies: Policy | None = None  # of the session, where AssumeRole was given some
    vpc: str | None = None  # the VPC that its requests come from

    @property
    def name(self) -> str:
        """The role's or the user's name."""
        return self.arn.rpartition("/")[2]

    @property
    def shown(self) -> str:
        """Name in AWS's messages."""
        return self.session or self.arn


ADMINISTRATOR = Principal(arn=f"arn:aws:iam::{ACCOUNT}:user/administrator", kind="administrator")


def principal_of(access_key: str) -> Principal:
    """The caller whose access key this is.

    Raises CredentialsError: there is none (the request is not signed), it is unknown, or its session has ended.
    """
    if not access_key:
        raise CredentialsError(
            "MissingAuthenticationToken", "Request is missing Authentication Token", source="STS", status=403
        )
    session = iam.sessions().get(access_key)
    if session is not None:
        if iam.session_expired(session):
            raise CredentialsError(
                "ExpiredTokenException",
                "The security token included in the request is expired",
                source="STS",
                status=403,
            )
        return _session_principal(session)
    if access_key == CREDENTIALS["AWS_ACCESS_KEY_ID"]:
        return ADMINISTRATOR
    key = iam.access_keys().get(access_key)
    if key is not None and key["Status"] == "Active":
        return Principal(arn=iam.users().get(key["UserName"])["Arn"], kind="user")
    raise CredentialsError(
        "InvalidClientTokenId", "The security token included in the request is invalid.", source="STS", status=403
    )


def _session_principal(session: Mapping[str, Any]) -> Principal:
    arn = session["Arn"]  # arn:aws:sts::111111111111:assumed-role/name/session
    if ":assumed-role/" not in arn:
        return ADMINISTRATOR if arn.endswith(":root") else Principal(arn=arn, kind="user")
    given = session.get("SessionPolicies") or {}
    documents = [given["Policy"]] if given.get("Policy") else []
    documents += [_managed_document(each) for each in given.get("PolicyArns", ())]
    role = role_record(arn.split("/")[1], account=arn.split(":")[4])
    return Principal(
        arn=role["Arn"] if role is not None else arn,
        kind="role",
        session=arn,
        policies=tuple(each for one in documents for each in statements_of(one)) if documents else None,
        vpc=session.get("Vpc"),
    )


def role_principal(role_arn: str, session_name: str, *, vpc: str | None = None) -> Principal:
    """A session of a role, as a service uses it inside the local AWS."""
    account, name = role_arn.split(":")[4], role_arn.rpartition("/")[2]
    session = f"arn:aws:sts::{account}:assumed-role/{name}/{session_name}"
    return Principal(arn=role_arn, kind="role", session=session, vpc=vpc)


def service_principal(name: str) -> Principal:
    """An AWS service that acts as itself (``events.amazonaws.com``)."""
    return Principal(arn=name, kind="service")


def register_session(
    role_arn: str, session_name: str, *, vpc: str | None = None, lasts: bool = False
) -> dict[str, Any]:
    """Credentials of a new session of a role, whose trust policy was looked at.

    ``lasts``: whether it is a service's, which renews its sessions: here it has one that does not end.

    Returns AccessKeyId, SecretAccessKey, SessionToken and Expiration (seconds since the epoch).
    """
    principal = role_principal(role_arn, session_name)
    given = {
        "AccessKeyId": iam.gen_session_access_key(),
        "SecretAccessKey": iam.gen_secret(),
        "SessionToken": iam.gen_session_token(),
        "Expiration": None if lasts else time.time() + _SESSION_SECONDS,
    }
    record = {**given, "Arn": principal.session, "UserId": f"{principal.name}:{session_name}", "Vpc": vpc}
    record |= {"AccountId": role_arn.split(":")[4], "PrincipalType": "AssumedRole"}
    iam.register_session(given["AccessKeyId"], record)
    return given


# --- Policies ---


def role_record(name: str, *, account: str = ACCOUNT) -> dict[str, Any] | None:
    """MiniStack's record of a role, or None."""
    record: dict[str, Any] | None = iam.roles().get_scoped(account, None, name)
    return record


def named_policies(principal: Principal) -> Iterator[tuple[str, Policy]]:
    """Name and statements of every policy of a role or a user; none for a service."""
    if principal.kind == "administrator":
        yield "Administrator", EVERYTHING
    elif principal.kind == "role":
        record = role_record(principal.name, account=principal.arn.split(":")[4]) or {}
        yield from _inline(record.get("InlinePolicies"))
        yield from _attached(record)
    elif principal.kind == "user":
        record = iam.users().get(principal.name) or {}
        yield from _inline(iam.user_inline_policies().get(principal.name))
        yield from _attached(record)
        for group, members in iam.groups().items():
            if principal.name in members.get("Users", ()):
                yield from _inline(iam.group_inline_policies().get(group))
                yield from _attached(members)


def boundary_of(principal: Principal) -> Policy | None:
    """The statements of a role's or a user's permissions boundary; None without one."""
    record = iam.users().get(principal.name) if principal.kind == "user" else None
    if principal.kind == "role":
        record = role_record(principal.name, account=principal.arn.split(":")[4])
    arn = (record or {}).get("PermissionsBoundary")
    return statements_of(_managed_document(arn)) if arn else None


def tags_of(principal: Principal) -> dict[str, str]:
    record = role_record(principal.name) if principal.kind == "role" else None
    return {tag["Key"]: tag["Value"] for tag in (record or {}).get("Tags") or ()}


def _inline(documents: Mapping[str, Any] | None) -> Iterator[tuple[str, Policy]]:
    for name, document in list((documents or {}).items()):
        yield name, statements_of(document if isinstance(document, str) else json.dumps(document, sort_keys=True))


def _attached(record: Mapping[str, Any]) -> Iterator[tuple[str, Policy]]:
    for arn in list(record.get("AttachedPolicies") or ()):
        yield arn, statements_of(_managed_document(arn))


def _managed_document(arn: str) -> str:
    """The default version of a managed policy; nothing is allowed by one that is not there."""
    record = iam.lookup_policy(arn)
    if record is None:
        return "{}"
    return str(record["Versions"][record["DefaultVersionId"]]["Document"])


@functools.lru_cache(maxsize=4096)
def statements_of(document: str) -> tuple[Statement, ...]:
    """The statements of a policy document in JSON."""
    found = json.loads(document or "{}")
    return tuple(listed(found.get("Statement")))


def region() -> str:
    """The region of the request in progress."""
    return str(get_region())
