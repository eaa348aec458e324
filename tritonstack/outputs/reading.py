"""Reads the outputs of an environment's stacks from SSM, and assembles the document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tritonstack.aws.session import Session, parameters_below
from tritonstack.config import Environment
from tritonstack.errors import Problem, refuse
from tritonstack.naming import DIGEST_LENGTH, DIGEST_PATTERN, ArchiveName, outputs_parameter, serving_part, stack_path
from tritonstack.outputs.contract import CONTRACT, KINDS, MINOR, PARAMETER, OutputsDocument


def read_outputs(session: Session, settings: Environment) -> OutputsDocument:
    """The outputs of an environment's stacks, checked against its file; every null of it has its reason.

    Raises:
        InputError: nothing or half of it is deployed, by another contract, or of another environment; with every
            problem.
        WorkFailedError: AWS refused a request.
    """
    path = outputs_parameter(environment=settings.environment)
    values = parameters_below(session, path)
    problems: list[Problem] = []
    stacks = {name: _checked(name, value, settings, problems) for name, value in sorted(values.items())}
    stacks = {name: outputs for name, outputs in stacks.items() if outputs is not None}
    problems += _missing(settings, known=set(values), stacks=stacks)
    serving = [each for each in stacks.values() if each["kind"] == "serving"]
    releases = {each["endpoint"]: parameters_below(session, each["release_records"]) for each in serving}
    problems += [
        Problem(
            field=each["release_records"] + model,
            found=repr(digest),
            allowed=f"a digest of {DIGEST_LENGTH} hexadecimal digits",
            advice="tritonstack releases shows what it was; tritonstack rollback writes it",
        )
        for each in serving
        for model, digest in sorted(releases[each["endpoint"]].items())
        if not re.fullmatch(DIGEST_PATTERN, digest)
    ]
    refuse(problems)
    return _document(stacks, releases)


def _missing(settings: Environment, *, known: set[str], stacks: Mapping[str, Any]) -> Iterator[Problem]:
    """Stacks of the environment's file that are not deployed; ``known``: those that are, readable or not."""
    name = settings.environment
    path = outputs_parameter(environment=name)
    if not known:
        yield Problem(
            field=path,
            found=f"nothing: {name} is not deployed in this account and region, or by a version before outputs",
            allowed=f"a parameter for each stack of {name}",
            advice=f"cdk deploy '{name}/*' (tritonstack local deploy -e {name}), or check AWS_PROFILE, AWS_REGION",
        )
        return
    expected = {"artifacts", *(serving_part(each.name) for each in settings.hosted_endpoints)}
    if settings.network is not None:
        expected.add("network")
    if settings.watched:
        expected.add("observability")
    if any(each["kind"] == "serving" and each["builds_on_deploy"] for each in stacks.values()):
        expected.add("builds")
    for missing in sorted(expected - known):
        yield Problem(
            field=path + missing,
            found="no such parameter: the stack is not deployed, or by a version before outputs",
            allowed=f"the stack {name}/{missing}, which environments/{name}.yaml asks for",
            advice=f"cdk deploy '{name}/{missing}'",
        )


def _checked(stack: str, value: str, settings: Environment, problems: list[Problem]) -> Any:
    """The outputs in the value of a stack's parameter, or None after a problem."""
    parameter = outputs_parameter(environment=settings.environment, stack=stack)
    deploy = f"cdk deploy '{stack_path(environment=settings.environment, part=stack)}'"
    version = re.search(r'"contract"\s*:\s*(\d+)', value)  # of another contract it may be unreadable otherwise
    if version and int(version[1]) != CONTRACT:
        older, newer = f"The stack is of an older version: {deploy}", "Use the tritonstack that deployed the stack."
        advice = older if int(version[1]) < CONTRACT else f"The stack is of a newer version. {newer}"
        field = f"{parameter}: contract"
        problems.append(Problem(field=field, found=version[1], allowed=str(CONTRACT), advice=advice))
        return None
    try:
        outputs = PARAMETER.validate_json(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        found = f"{place}: {first['msg']}" if place else str(first["msg"])
        advice = f"{deploy} after a change, or put the stack's own value back"
        allowed = f"what the stack wrote, by contract {CONTRACT}"
        problems.append(Problem(field=parameter, found=found, allowed=allowed, advice=advice))
        return None
    expected = {"environment": settings.environment, "account": settings.account, "region": settings.region}
    differ = [name for name, wanted in expected.items() if outputs[name] != wanted]
    for name in differ:
        allowed = f"{expected[name]!r}, as in environments/{settings.environment}.yaml"
        advice = "Another environment wrote it: look at the file, AWS_PROFILE and AWS_REGION."
        problems.append(
            Problem(field=f"{parameter}: {name}", found=repr(outputs[name]), allowed=allowed, advice=advice)
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


def _document(stacks: Mapping[str, Any], releases: Mapping[str, Mapping[str, str]]) -> OutputsDocument:
    """The document; ``releases``: endpoint → model → digest, as the records are now."""
    artifacts, watch = stacks["artifacts"], stacks.get("observability")
    endpoints = {each["endpoint"]: each for each in stacks.values() if each["kind"] == "serving"}
    # An endpoint that was deployed after the observability stack has no alarms yet.
    alarms: Mapping[str, list[str]] | None = watch and watch["endpoint_alarms"]
    parts = {kind: _part(stacks[kind]) if kind in stacks else None for kind in KINDS if kind != "serving"}
    # What a part of the document does not have of its stack's parameter is passed over.
    document = OutputsDocument.model_validate(
        {
            **artifacts,
            **parts,
            "contract": CONTRACT,
            "minor": MINOR,
            "endpoints": {
                name: _endpoint(serving, releases[name], alarms=None if alarms is None else alarms.get(name, []))
                for name, serving in sorted(endpoints.items())
            },
            "absent": {},
        }
    )
    without = watch is None or watch["alarm_topic_arn"] is None
    why = NO_ALARMS if without else TOO_MANY_NAMES.format(environment=artifacts["environment"])
    reasons = {**REASONS, "alarms": why, "build_alarms": why}
    nulls = sorted(pointer for pointer, value in fields(document.model_dump()) if value is None)
    return document.model_copy(update={"absent": {each: reasons[each.rpartition("/")[2]] for each in nulls}})


def fields(values: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """JSON Pointer and value of every single value; a list is one."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from fields(value, f"{at}/{name}")
        else:
            yield f"{at}/{name}", value


def _endpoint(outputs: Mapping[str, Any], releases: Mapping[str, str], *, alarms: list[str] | None) -> dict[str, Any]:
    records = outputs["release_records"]
    values = {
        "variants": {},
        "streams": False,
        "instance_types": [outputs["instance_type"]],  # of an endpoint without instance pools
        "platforms": [outputs["platform"]],
        **outputs,
        "name": outputs["endpoint_name"],
        "arn": outputs["endpoint_arn"],
        "alarms": alarms,
    }
    values["releases"] = {
        model: {"parameter": records + model, "digest": digest, "archive": str(ArchiveName(model=model, digest=digest))}
        for model, digest in sorted(releases.items())
    }
    return _part(values, stack=serving_part(outputs["endpoint"]))


def _part(outputs: Mapping[str, Any], *, stack: str | None = None) -> dict[str, Any]:
    """A stack's outputs, with the parameter that holds them."""
    return {
        **outputs,
        "parameter": outputs_parameter(environment=outputs["environment"], stack=stack or outputs["kind"]),
    }


def table(document: OutputsDocument) -> Table:
    """Every value, and why it is missing where it is."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    made.add_column("field", no_wrap=True)
    made.add_column("value", overflow="fold")
    for pointer, value in fields(document.model_dump(exclude={"absent"})):
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        made.add_row(pointer[1:].replace("/", "."), f"- ({document.absent[pointer]})" if value is None else text)
    return made
