"""Reads the outputs of an environment's stacks from SSM, and assembles the document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tritonstack.aws_session import Session, code_of, parameters_below
from tritonstack.config import Environment
from tritonstack.errors import Problem, WorkFailedError, refuse
from tritonstack.naming import DIGEST_LENGTH, ArchiveName, outputs_parameter
from tritonstack.outputs.contract import (
    CONTRACT,
    MINOR,
    PARAMETER,
    Artifacts,
    Builds,
    Endpoint,
    Network,
    Observability,
    OutputsDocument,
)

REFUSED = ("AccessDeniedException", "AccessDenied", "UnauthorizedException")


@dataclass(frozen=True, kw_only=True)
class DeployedOutputs:
    """What is deployed of an environment."""

    # last part of the parameter's name (``artifacts``, ``serving-digits``) → the stack's outputs
    stacks: Mapping[str, Any]
    releases: Mapping[str, Mapping[str, str]]  # endpoint → model → digest, as the records are now

    def serving(self) -> dict[str, Any]:
        """Endpoint → the outputs of its stack."""
        return {each["endpoint"]: each for each in self.stacks.values() if each["kind"] == "serving"}


def read_outputs(session: Session, settings: Environment) -> DeployedOutputs:
    """The outputs of an environment's stacks, checked against its file.

    Raises:
        InputError: nothing or half of it is deployed, by another contract, or of another environment.
        WorkFailedError: AWS refused a call. Either names every problem.
    """
    reader = _Reader(session, settings)
    stacks = reader.stacks()
    releases = {
        outputs["endpoint"]: reader.releases(outputs["release_records"])
        for outputs in stacks.values()
        if outputs["kind"] == "serving"
    }
    reader.raise_problems()
    return DeployedOutputs(stacks=stacks, releases=releases)


class _Reader:
    """Reads parameters and gathers problems, so that all are reported at once."""

    def __init__(self, session: Session, settings: Environment) -> None:
        self._session = session
        self._settings = settings
        self._problems: list[Problem] = []
        self._refused = False

    def raise_problems(self) -> None:
        """Raise all problems: WorkFailedError where AWS refused a call, else InputError."""
        if self._refused:
            raise WorkFailedError("\n".join(map(str, self._problems)))
        refuse(self._problems)

    def stacks(self) -> dict[str, Any]:
        """Last part of a parameter's name → the outputs in it."""
        path = outputs_parameter(environment=self._settings.environment)
        values = self._under(path)
        if values is None:
            return {}
        checked = {name: self._checked(f"{path}{name}", value) for name, value in sorted(values.items())}
        stacks = {name: outputs for name, outputs in checked.items() if outputs is not None}
        self._require_stacks(known=set(values), stacks=stacks)
        return stacks

    def releases(self, path: str) -> dict[str, str]:
        """Model → digest."""
        records = self._under(path) or {}
        for model, digest in sorted(records.items()):
            if not re.fullmatch(rf"[0-9a-f]{{{DIGEST_LENGTH}}}", digest):
                self._add(
                    field=path + model,
                    found=repr(digest),
                    allowed=f"a digest of {DIGEST_LENGTH} hexadecimal digits",
                    advice="tritonstack releases shows what it was; tritonstack rollback writes it",
                )
        return records

    def _add(self, *, field: str, found: str, allowed: str, advice: str = "") -> None:
        self._problems.append(Problem(field=field, found=found, allowed=allowed, advice=advice))

    def _under(self, path: str) -> dict[str, str] | None:
        """The parameters right under a path: last part of the name → value. None where AWS refuses the call."""
        try:
            return parameters_below(self._session, path)
        except WorkFailedError as error:
            advice = "allow ssm:GetParametersByPath on it (docs/outputs.md lists what a reader needs)"
            self._add(
                field=path,
                found=str(error),
                allowed="parameters that these credentials can list",
                advice=advice if error.__cause__ and code_of(error.__cause__) in REFUSED else "",
            )
            self._refused = True
            return None

    def _require_stacks(self, *, known: set[str], stacks: Mapping[str, Any]) -> None:
        """Report stacks that the environment's file demands; ``known``: those that exist, readable or not."""
        settings = self._settings
        name = settings.environment
        path = outputs_parameter(environment=name)
        if not known:
            self._add(
                field=path,
                found=f"nothing: {name} is not deployed in this account and region, or by a version before outputs",
                allowed=f"a parameter for each stack of {name}",
                advice=f"cdk deploy '{name}/*' (tritonstack local deploy -e {name}), or check AWS_PROFILE, AWS_REGION",
            )
            return
        expected = {"artifacts", *(f"serving-{each.name}" for each in settings.endpoints)}
        if settings.network is not None:
            expected.add("network")
        if settings.watched:
            expected.add("observability")
        if any(each["kind"] == "serving" and each["builds_on_deploy"] for each in stacks.values()):
            expected.add("builds")
        for missing in sorted(expected - known):
            self._add(
                field=path + missing,
                found="no such parameter: the stack is not deployed, or by a version before outputs",
                allowed=f"the stack {name}/{missing}, which environments/{name}.yaml asks for",
                advice=f"cdk deploy '{name}/{missing}'",
            )

    def _checked(self, parameter: str, value: str) -> Any:
        """The outputs in a parameter's value, or None after a problem."""
        settings = self._settings
        stack = parameter.rpartition("/")[2]
        # Of another contract it may be unreadable otherwise.
        version = re.search(r'"contract"\s*:\s*(\d+)', value)
        try:
            outputs = PARAMETER.validate_json(value)
            contract = outputs["contract"]
        except ValidationError as error:
            outputs, contract = None, int(version[1]) if version else CONTRACT
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            found = f"{place}: {first['msg']}" if place else str(first["msg"])
        if contract != CONTRACT:
            older = f"The stack is of an older version: cdk deploy '{settings.environment}/{stack}'"
            newer = "The stack is of a newer version: use the tritonstack that deployed it."
            self._add(
                field=f"{parameter}: contract",
                found=str(contract),
                allowed=str(CONTRACT),
                advice=older if contract < CONTRACT else newer,
            )
            return None
        if outputs is None:
            self._add(
                field=parameter,
                found=found,
                allowed=f"what the stack wrote, by contract {CONTRACT}",
                advice=f"cdk deploy '{settings.environment}/{stack}' after a change, or put the stack's own value back",
            )
            return None
        expected = {"environment": settings.environment, "account": settings.account, "region": settings.region}
        differ = [name for name, wanted in expected.items() if outputs[name] != wanted]
        for name in differ:
            self._add(
                field=f"{parameter}: {name}",
                found=repr(outputs[name]),
                allowed=f"{expected[name]!r}, as in environments/{settings.environment}.yaml",
                advice="Another environment wrote it: look at the file, AWS_PROFILE and AWS_REGION.",
            )
        return None if differ else outputs


NO_ALARMS = "the environment was deployed without alarms"
REASONS = {
    "network": "the environment has no network of its own: its containers are in SageMaker's",
    "builds": "a deployment of this environment builds nothing: archives are published before it",
    "observability": "the environment was deployed with neither a dashboard nor alarms",
    "engine_project": "CodeBuild builds no engine of this environment",
    "processing_role_arn": "SageMaker Processing builds no engine of this environment",
    "dashboard": "the environment was deployed without a dashboard",
    "alarm_topic_arn": NO_ALARMS,
    "composite_alarms": NO_ALARMS,
}
"""Field → why it is null. Two more fields can be null: ``alarms`` and ``build_alarms``."""
TOO_MANY_NAMES = (
    "a parameter does not hold so many names: aws cloudwatch describe-alarms --alarm-name-prefix {environment}-"
)


def document_of(deployed: DeployedOutputs, *, environment: str) -> OutputsDocument:
    """The document of an environment whose artifacts stack is deployed; every null of it has its reason."""
    stacks = deployed.stacks
    artifacts, watch = stacks["artifacts"], stacks.get("observability")
    parts = {"network": Network, "builds": Builds, "observability": Observability}
    values: dict[str, Any] = {
        "contract": CONTRACT,
        "minor": MINOR,
        "environment": environment,
        "account": artifacts["account"],
        "region": artifacts["region"],
        "artifacts": _part(Artifacts, artifacts),
        **{kind: _part(model, stacks[kind]) if kind in stacks else None for kind, model in parts.items()},
        "endpoints": {
            name: _endpoint(serving, releases=deployed.releases[name], alarms=_alarms_of(name, watch))
            for name, serving in sorted(deployed.serving().items())
        },
    }
    without = watch is None or watch["alarm_topic_arn"] is None
    alarms = NO_ALARMS if without else TOO_MANY_NAMES.format(environment=environment)
    reasons = {**REASONS, "alarms": alarms, "build_alarms": alarms}
    nulls = sorted(pointer for pointer, value in fields(values) if value is None)
    absent = {pointer: reasons[pointer.rpartition("/")[2]] for pointer in nulls}
    return OutputsDocument.model_validate({**values, "absent": absent})


def fields(values: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """JSON Pointer and value of every single value; a list is one."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from fields(value, f"{at}/{name}")
        else:
            yield f"{at}/{name}", value


def _alarms_of(endpoint: str, watch: Mapping[str, Any] | None) -> list[str] | None:
    """Alarms of an endpoint. One that was deployed after the observability stack has none yet."""
    if watch is None or watch["endpoint_alarms"] is None:
        return None
    names: list[str] = watch["endpoint_alarms"].get(endpoint, [])
    return names


def _endpoint(outputs: Mapping[str, Any], *, releases: Mapping[str, str], alarms: list[str] | None) -> dict[str, Any]:
    records = outputs["release_records"]
    values = {**outputs, "name": outputs["endpoint_name"], "arn": outputs["endpoint_arn"], "alarms": alarms}
    values["releases"] = {
        model: {"parameter": records + model, "digest": digest, "archive": str(ArchiveName(model=model, digest=digest))}
        for model, digest in sorted(releases.items())
    }
    return _part(Endpoint, values, stack=f"serving-{outputs['endpoint']}")


def _part(part: type[Any], outputs: Mapping[str, Any], *, stack: str | None = None) -> dict[str, Any]:
    """The fields of a part of the document, from a stack's outputs."""
    parameter = outputs_parameter(environment=outputs["environment"], stack=stack or outputs["kind"])
    values = {**outputs, "parameter": parameter}
    return {name: values[name] for name in part.__annotations__}


def table(document: OutputsDocument) -> Table:
    """Every value, and why it is missing where it is."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    made.add_column("field", no_wrap=True)
    made.add_column("value", overflow="fold")
    for pointer, value in fields(document.model_dump(exclude={"absent"})):
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        made.add_row(pointer[1:].replace("/", "."), f"- ({document.absent[pointer]})" if value is None else text)
    return made
