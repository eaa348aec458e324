"""Reads from SSM what the stacks of an environment tell. Problems are gathered, so that all are told at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError

from tritonstack.aws_session import Session
from tritonstack.config import Environment
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.models.bucket import code_of
from tritonstack.naming import DIGEST_LENGTH, outputs_parameter
from tritonstack.outputs.contract import CONTRACT
from tritonstack.outputs.parameters import PARAMETER

REFUSED = ("AccessDeniedException", "AccessDenied", "UnauthorizedException")


@dataclass
class Problems:
    """What is wrong with an environment's outputs.

    Attributes:
        found: everything.
        failed: whether AWS refused something, which is no wrong input.
    """

    found: list[Problem] = field(default_factory=list)
    failed: bool = False

    def add(self, problem: Problem, *, failed: bool = False) -> None:
        """Add one."""
        self.found.append(problem)
        self.failed |= failed

    def end(self) -> None:
        """Raise them all: :class:`WorkFailedError` where AWS refused something, else :class:`InputError`."""
        if self.found and self.failed:
            raise WorkFailedError("\n".join(map(str, self.found)))
        if self.found:
            raise InputError(self.found)


@dataclass(frozen=True, kw_only=True)
class Told:
    """What is deployed of an environment.

    Attributes:
        stacks: last part of the parameter's name (``artifacts``, ``serving-digits``) → what that stack tells.
        releases: endpoint → model → digest, as the records are now.
    """

    stacks: Mapping[str, Any]
    releases: Mapping[str, Mapping[str, str]]

    def serving(self) -> dict[str, Any]:
        """Endpoint → what its stack tells."""
        return {each["endpoint"]: each for each in self.stacks.values() if each["kind"] == "serving"}


def read_told(session: Session, settings: Environment) -> Told:
    """What is deployed of an environment, compared with what its file says should be.

    Raises:
        InputError: nothing or half of it is deployed, by another contract, or of another environment.
        WorkFailedError: AWS refused something. Either names every problem.
    """
    problems = Problems()
    ssm = session.client("ssm")
    stacks = _read_stacks(ssm, settings, problems)
    releases: dict[str, dict[str, str]] = {}
    for told in stacks.values():
        if told["kind"] == "serving":
            releases[told["endpoint"]] = _read_releases(ssm, told["release_records"], problems)
    problems.end()
    return Told(stacks=stacks, releases=releases)


def _read_stacks(ssm: Any, settings: Environment, problems: Problems) -> dict[str, Any]:
    path = outputs_parameter(environment=settings.environment)
    try:
        values = dict(_under(ssm, path))
    except (BotoCoreError, ClientError) as error:
        problems.add(_unreadable(path, error), failed=True)
        return {}
    stacks: dict[str, Any] = {}
    for name, value in sorted(values.items()):
        told = _checked(f"{path}{name}", value, settings, problems)
        if told is not None:
            stacks[name] = told
    _require_stacks(settings, known=set(values), stacks=stacks, problems=problems)
    return stacks


def _require_stacks(settings: Environment, *, known: set[str], stacks: Mapping[str, Any], problems: Problems) -> None:
    """What the environment's file asks for must be there; ``known``: what is, readable or not."""
    expected = {"artifacts", *(f"serving-{each.name}" for each in settings.endpoints)}
    if settings.network is not None:
        expected.add("network")
    if settings.dashboard or settings.alarms is not None:
        expected.add("observability")
    if any(each["kind"] == "serving" and each["builds_on_deploy"] for each in stacks.values()):
        expected.add("builds")
    name = settings.environment
    path = outputs_parameter(environment=name)
    if not known:
        problems.add(
            Problem(
                field=path,
                found=f"nothing: {name} is not deployed in this account and region, or by a version before outputs",
                allowed=f"a parameter for each stack of {name}",
                advice=f"cdk deploy '{name}/*' (tritonstack local deploy {name}); or look at AWS_PROFILE, AWS_REGION",
            )
        )
        return
    for missing in sorted(expected - known):
        problems.add(
            Problem(
                field=path + missing,
                found="no such parameter: the stack is not deployed, or by a version before outputs",
                allowed=f"the stack {name}/{missing}, which environments/{name}.yaml asks for",
                advice=f"cdk deploy '{name}/{missing}'",
            )
        )


def _checked(parameter: str, value: str, settings: Environment, problems: Problems) -> Any:
    """What a parameter tells, or None after a problem."""
    stack = parameter.rpartition("/")[2]
    advice = f"cdk deploy '{settings.environment}/{stack}' after a change, or put the stack's own value back"
    try:
        read = PARAMETER.validate_json(value)
    except ValidationError as error:
        contract = _contract(value)
        if contract is not None and contract != CONTRACT:
            problems.add(_other_contract(parameter, contract, settings))
            return None
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        found = f"{place}: {first['msg']}" if place else str(first["msg"])
        problems.add(
            Problem(
                field=parameter, found=found, allowed=f"what the stack wrote, by contract {CONTRACT}", advice=advice
            )
        )
        return None
    if read["contract"] != CONTRACT:
        problems.add(_other_contract(parameter, read["contract"], settings))
        return None
    expected = {"environment": settings.environment, "account": settings.account, "region": settings.region}
    differ = [name for name, wanted in expected.items() if read[name] != wanted]
    for name in differ:
        problems.add(
            Problem(
                field=f"{parameter}: {name}",
                found=repr(read[name]),
                allowed=f"{expected[name]!r}, as in environments/{settings.environment}.yaml",
                advice="Another environment wrote it: look at the file, AWS_PROFILE and AWS_REGION.",
            )
        )
    return None if differ else read


def _contract(value: str) -> int | None:
    """The contract's version in a value that is otherwise unreadable; None where it has none."""
    found = re.search(r'"contract"\s*:\s*(\d+)', value)
    return int(found[1]) if found else None


def _other_contract(parameter: str, contract: int, settings: Environment) -> Problem:
    stack = parameter.rpartition("/")[2]
    older = f"The stack is of an older version: cdk deploy '{settings.environment}/{stack}'"
    newer = "The stack is of a newer version: use the tritonstack that deployed it."
    return Problem(
        field=f"{parameter}: contract",
        found=str(contract),
        allowed=str(CONTRACT),
        advice=older if contract < CONTRACT else newer,
    )


def _read_releases(ssm: Any, path: str, problems: Problems) -> dict[str, str]:
    """Model → digest."""
    try:
        records = dict(_under(ssm, path))
    except (BotoCoreError, ClientError) as error:
        problems.add(_unreadable(path, error), failed=True)
        return {}
    for model, digest in sorted(records.items()):
        if not re.fullmatch(rf"[0-9a-f]{{{DIGEST_LENGTH}}}", digest):
            problems.add(
                Problem(
                    field=path + model,
                    found=repr(digest),
                    allowed=f"a digest of {DIGEST_LENGTH} hexadecimal digits",
                    advice="tritonstack releases shows what it was; tritonstack rollback writes it",
                )
            )
    return records


def _under(ssm: Any, path: str) -> Iterator[tuple[str, str]]:
    """The parameters right under a path: last part of the name, and value."""
    for page in ssm.get_paginator("get_parameters_by_path").paginate(Path=path.rstrip("/")):
        for parameter in page["Parameters"]:
            yield parameter["Name"].rpartition("/")[2], parameter["Value"]


def _unreadable(path: str, error: Exception) -> Problem:
    advice = "allow ssm:GetParametersByPath on it (docs/outputs.md lists what a reader needs)"
    return Problem(
        field=path,
        found=f"could not be read: {error}",
        allowed="parameters that these credentials can list",
        advice=advice if code_of(error) in REFUSED else "",
    )
