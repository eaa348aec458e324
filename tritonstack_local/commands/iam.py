"""``tritonstack local iam report``, and what else shows permissions: denials in ``status``, a role for ``env``."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.text import Text

from tritonstack.cli.conventions import json_option, plain_table, print_json, result_console
from tritonstack.errors import InputError, Problem
from tritonstack_local.aws import LocalAws, read_url, require_local_aws

SHOWN_DENIALS = 5
CDK_HASH = r"(?<=.)[0-9A-F]{8}$"
"""What the CDK appends to a construct's path for a logical id; the ids of the bootstrap's template have none."""


@click.group("iam")
def iam_command() -> None:
    """Report which permissions each role used, and what was denied."""


@iam_command.command("report")
@click.option(
    "--records",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of records that several local AWS left (variable TRITONSTACK_IAM_RECORDS) instead of the running one.",
)
@json_option()
def report_command(*, records: Path | None, as_json: bool) -> None:
    """Report for each role the actions that were used, and those that are granted and were never used.

    A statement is needed where a request was allowed by it alone: without it that request is refused.
    """
    documents = [require_local_aws().iam()] if records is None else list(_recorded(records))
    roles = merged(documents)
    if as_json:
        print_json([role.document() for role in roles])
        return
    rows = [
        (
            role.name,
            each.sid,
            "yes" if each.needed else "no",
            ", ".join(sorted(each.used)) or "none",
            ", ".join(each.unused) or "none",
        )
        for role in roles
        for each in role.statements.values()
    ]
    result_console().print(plain_table(("role", "statement", "needed", "used", "granted, never used"), rows))


def _recorded(folder: Path) -> Iterator[dict[str, Any]]:
    files = sorted(folder.glob("*.json"))
    if not files:
        advice = "run with TRITONSTACK_IAM_RECORDS set to this folder; a local AWS writes when it ends"
        raise InputError([Problem(file=str(folder), found="no record", allowed="files *.json", advice=advice)])
    for file in files:
        try:
            yield _RECORD.validate_json(file.read_bytes()).model_dump()
        except ValidationError as error:
            found = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:3])
            allowed = "what a local AWS of this version wrote when it ended"
            raise InputError([Problem(file=str(file), found=found, allowed=allowed, advice="Remove it.")]) from error


class _Statement(BaseModel):
    """A statement of a role's policy, and what was used of it."""

    sid: str
    policy: str
    effect: str
    actions: list[str]
    used: dict[str, int]
    needed: bool


class _Role(BaseModel):
    """A role; ``stack`` and ``logical_id`` are empty where no stack made it."""

    arn: str
    stack: str
    logical_id: str
    statements: list[_Statement]


class _Recorded(BaseModel):
    """What an emulator writes (``emulator/iam/records.py``), as far as a report reads it."""

    roles: list[_Role]


_RECORD = TypeAdapter(_Recorded)


@dataclass(kw_only=True)
class GrantedStatement:
    """A statement of a role, wherever that role was deployed."""

    sid: str
    actions: tuple[str, ...]  # patterns
    used: dict[str, int] = field(default_factory=dict)  # action → how often
    needed: bool = False  # whether a request was allowed by this statement alone, so that it fails without

    @property
    def unused(self) -> list[str]:
        """The patterns that no used action matches."""
        return [
            pattern
            for pattern in self.actions
            if not any(fnmatchcase(each.lower(), pattern.lower()) for each in self.used)
        ]


@dataclass(kw_only=True)
class RoleUse:
    """A role of a stack, and what was used of it."""

    name: str  # ``dev-serving-digits/ActivationHandlerRole``, or the role's own name where no stack made it
    statements: dict[tuple[str, tuple[str, ...]], GrantedStatement] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        statements = [
            {
                "sid": each.sid,
                "needed": each.needed,
                "used": dict(sorted(each.used.items())),
                "never_used": each.unused,
            }
            for each in self.statements.values()
        ]
        return {"role": self.name, "statements": statements}


def merged(documents: Iterable[dict[str, Any]]) -> list[RoleUse]:
    """Uses of several local AWS together, by stack and logical id; denying statements are left out. Sorted by name."""
    found: dict[str, RoleUse] = {}
    for document in documents:
        for role in document["roles"]:
            logical_id = re.sub(CDK_HASH, "", role["logical_id"])
            name = f"{role['stack']}/{logical_id}" if role["stack"] else role["arn"].rpartition("/")[2]
            use = found.setdefault(name, RoleUse(name=name))
            for statement in role["statements"]:
                if statement["effect"] != "Allow":
                    continue
                key = (statement["sid"] or statement["policy"], tuple(statement["actions"]))
                own = use.statements.setdefault(key, GrantedStatement(sid=key[0], actions=key[1]))
                own.needed = own.needed or statement["needed"]
                for action, count in statement["used"].items():
                    own.used[action] = own.used.get(action, 0) + count
    return [found[name] for name in sorted(found)]


def denials(document: dict[str, Any]) -> list[Text]:
    """Lines on the latest denials: what was denied, to whom, by what, and which statement would allow it."""
    every = document["denials"]
    if not document["enforced"]:
        return [Text("IAM is switched off: every request is allowed", style="yellow")]
    lines = [Text(f"denied by IAM: {len(every)}", style="red")] if every else []
    for each in every[-SHOWN_DENIALS:]:
        allow = each["would_allow"]
        advice = "an explicit deny stands against it" if allow is None else f"would be allowed by {json.dumps(allow)}"
        times = f" ({each['times']} times)" if each["times"] > 1 else ""
        lines.append(Text(f"  {each['by']}{times}: {each['message']}\n    {advice}", style="red"))
    return lines


def role_variables(aws: LocalAws, role: str) -> dict[str, str]:
    """The variables that give a caller a session of a role. Raises InputError: there is no such role."""
    query = urllib.parse.urlencode({"role": role, "session": "local-env"})
    try:
        given = json.loads(read_url(f"{aws.emulator_url}/_tritonstack/iam/credentials?{query}"))
    except urllib.error.HTTPError as error:
        allowed, advice = "a role of the local AWS", "aws iam list-roles --query 'Roles[].RoleName'"
        raise InputError([Problem(field="--role", found=role, allowed=allowed, advice=advice)]) from error
    return {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }
