"""``tritonstack local iam report``, and what else shows permissions: denials in ``status``, a role for ``env``."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel, ValidationError
from rich.text import Text

from tritonstack.cli.conventions import json_option, plain_table, print_json, result_console
from tritonstack.errors import InputError, Problem
from tritonstack_local.aws import LocalAws, require_local_aws

SHOWN_DENIALS = 5
CDK_HASH = r"(?<=.)[0-9A-F]{8}$"
"""What the CDK appends to a construct's path for a logical id; the ids of the bootstrap's template have none."""


@click.group("iam", epilog="example: tritonstack local iam report")
def iam_command() -> None:
    """Report which permissions each role used, and what was denied."""


@iam_command.command("report", epilog="example: tritonstack local iam report --json")
@click.option(
    "--records",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of records that several local AWS left (variable TRITONSTACK_IAM_RECORDS) instead of the running one.",
)
@json_option()
def report_command(*, records: Path | None, as_json: bool) -> None:
    """Report for each role the actions that were used, and those that are granted and were never used.

    A statement is needed where a request was allowed by it alone, and a pattern of it where no other matched:
    without it that request is refused.
    """
    roles = merged([require_local_aws().iam()] if records is None else _recorded(records))
    if as_json:
        print_json([role.document() for role in roles])
        return
    rows = [
        (
            role.name,
            each.sid,
            "yes" if each.alone else "no",
            ", ".join(sorted(each.used)) or "none",
            ", ".join(each.unused) or "none",
        )
        for role in roles
        for each in role.statements
    ]
    result_console().print(plain_table(("role", "statement", "needed", "used", "granted, never used"), rows))


def _recorded(folder: Path) -> Iterator[Recorded]:
    files = sorted(folder.glob("*.json"))
    if not files:
        advice = "run with TRITONSTACK_IAM_RECORDS set to this folder; a local AWS writes when it ends"
        raise InputError([Problem(file=str(folder), found="no record", allowed="files *.json", advice=advice)])
    for file in files:
        try:
            yield Recorded.model_validate_json(file.read_bytes())
        except ValidationError as error:
            found = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:3])
            allowed = "what a local AWS of this version wrote when it ended"
            raise InputError([Problem(file=str(file), found=found, allowed=allowed, advice="Remove it.")]) from error


class GrantedStatement(BaseModel):
    """A statement of a role's policy, and its use."""

    sid: str
    policy: str
    effect: str
    actions: list[str]  # patterns
    resources: list[str]  # patterns
    used: Counter[str]  # action → how often
    alone: int  # requests that this statement alone allowed, so that they fail without
    needed: Counter[str]  # pattern → requests among them that it alone matched

    @property
    def unused(self) -> list[str]:
        """The patterns that no used action matches."""
        return [
            pattern
            for pattern in self.actions
            if not any(fnmatchcase(each.lower(), pattern.lower()) for each in self.used)
        ]


class RoleUse(BaseModel):
    """A role and its use; ``stack`` and ``logical_id`` are empty where no stack made it."""

    arn: str
    stack: str
    logical_id: str
    statements: list[GrantedStatement]

    @property
    def name(self) -> str:
        """``dev-serving-digits/ActivationHandlerRole``, or the role's own name."""
        own = self.arn.rpartition("/")[2]
        return f"{self.stack}/{re.sub(CDK_HASH, '', self.logical_id)}" if self.stack else own

    def document(self) -> dict[str, Any]:
        statements = [
            {
                "sid": each.sid,
                "needed": bool(each.alone),
                "used": dict(sorted(each.used.items())),
                "never_used": each.unused,
                "patterns": {pattern: pattern in each.needed for pattern in (*each.actions, *each.resources)},
            }
            for each in self.statements
        ]
        return {"role": self.name, "statements": statements}


class Recorded(BaseModel):
    """The emulator's records (``emulator/iam/records.py``), as far as a report reads them."""

    roles: list[RoleUse]


def merged(documents: Iterable[Any]) -> list[RoleUse]:
    """Uses of several local AWS together, by stack and logical id; denying statements are left out. Sorted by name."""
    found: dict[str, RoleUse] = {}
    for role in (role for document in documents for role in Recorded.model_validate(document).roles):
        use = found.setdefault(role.name, role.model_copy(update={"statements": []}))
        for statement in (each for each in role.statements if each.effect == "Allow"):
            statement.sid = statement.sid or statement.policy
            # A resource may have a random part in its name, and has the same place.
            shape = statement.sid, statement.actions, len(statement.resources)
            same = [each for each in use.statements if (each.sid, each.actions, len(each.resources)) == shape]
            if not same:
                use.statements.append(statement)
            for own in same:
                own.alone += statement.alone
                own.used += statement.used
                mine = dict(zip(statement.resources, own.resources, strict=True))
                own.needed.update({mine.get(each, each): times for each, times in statement.needed.items()})
    return [found[name] for name in sorted(found)]


def denials(document: dict[str, Any]) -> list[Text]:
    """Lines on the latest denials: action, principal, what denied it, and the statement that would allow it."""
    every = document["denials"]
    if not document["enforced"]:
        return [Text("IAM is switched off: every request is allowed", style="yellow")]
    lines = [Text(f"denied by IAM: {len(every)}", style="red")] if every else []
    for each in every[-SHOWN_DENIALS:]:
        allow = each["would_allow"]
        advice = "an explicit deny overrides it" if allow is None else f"would be allowed by {json.dumps(allow)}"
        times = f" ({each['times']} times)" if each["times"] > 1 else ""
        lines.append(Text(f"  {each['by']}{times}: {each['message']}\n    {advice}", style="red"))
    return lines


def role_variables(aws: LocalAws, role: str) -> dict[str, str]:
    """The variables that give a caller a session of a role. Raises InputError: there is no such role."""
    query = urllib.parse.urlencode({"role": role, "session": "local-env"})
    try:
        given = aws.own_route(f"iam/credentials?{query}")
    except urllib.error.HTTPError as error:
        allowed, advice = "a role of the local AWS", "aws iam list-roles --query 'Roles[].RoleName'"
        raise InputError([Problem(field="--role", found=role, allowed=allowed, advice=advice)]) from error
    return {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }
