"""From what the stacks tell to the document of the environment, in which every null has its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from tritonstack.naming import ArchiveName, outputs_parameter
from tritonstack.outputs import document as parts
from tritonstack.outputs.contract import CONTRACT, MINOR
from tritonstack.outputs.reading import Told

NOTHING_BUILT = "a deployment of this environment builds nothing: archives are published before it"
OWN_NETWORK = "the environment has no network of its own: its containers are in SageMaker's"
UNWATCHED = "the environment was deployed with neither a dashboard nor alarms"
NO_DASHBOARD = "the environment was deployed without a dashboard"
NO_ALARMS = "the environment was deployed without alarms"
TOO_MANY_NAMES = (
    "a parameter does not hold so many names: aws cloudwatch describe-alarms --alarm-name-prefix {environment}-"
)
NO_ENGINE_PROJECT = "CodeBuild builds no engine of this environment"
NO_PROCESSING = "SageMaker Processing builds no engine of this environment"


def document_of(told: Told, *, environment: str) -> parts.OutputsDocument:
    """The document.

    Args:
        told: what is deployed; the artifacts stack is.
        environment: the environment's name.
    """
    stacks = told.stacks
    artifacts, network, builds, watch = (
        stacks.get(kind) for kind in ("artifacts", "network", "builds", "observability")
    )
    if artifacts is None:
        raise ValueError(f"the artifacts stack of {environment} tells nothing")
    values: dict[str, Any] = {
        "contract": CONTRACT,
        "minor": MINOR,
        "environment": environment,
        "account": artifacts["account"],
        "region": artifacts["region"],
        "artifacts": _part(parts.Artifacts, artifacts),
        "network": None if network is None else _part(parts.Network, network),
        "builds": None if builds is None else _part(parts.Builds, builds),
        "observability": None if watch is None else _part(parts.Observability, watch),
        "endpoints": {
            name: _endpoint(serving, releases=told.releases[name], alarms=_alarms_of(name, watch))
            for name, serving in sorted(told.serving().items())
        },
    }
    reasons = _Reasons(watch, environment=environment)
    absent = {pointer: reasons.of(pointer) for pointer in sorted(nulls(values))}
    return parts.OutputsDocument.model_validate({**values, "absent": absent})


def nulls(values: Mapping[str, Any], at: str = "") -> list[str]:
    """The JSON Pointers of everything in it that is null."""
    found: list[str] = []
    for name, value in values.items():
        if value is None:
            found.append(f"{at}/{name}")
        elif isinstance(value, Mapping):
            found += nulls(value, f"{at}/{name}")
    return found


class _Reasons:
    """Why something is null."""

    def __init__(self, watch: Mapping[str, Any] | None, *, environment: str) -> None:
        names = TOO_MANY_NAMES.format(environment=environment)
        no_alarms = NO_ALARMS if watch is None or watch["alarm_topic_arn"] is None else names
        self._reasons = {
            "network": OWN_NETWORK,
            "builds": NOTHING_BUILT,
            "observability": UNWATCHED,
            "engine_project": NO_ENGINE_PROJECT,
            "processing_role_arn": NO_PROCESSING,
            "dashboard": NO_DASHBOARD,
            "alarm_topic_arn": NO_ALARMS,
            "composite_alarms": NO_ALARMS,
            "build_alarms": no_alarms,
            "alarms": no_alarms,
        }

    def of(self, pointer: str) -> str:
        """The reason, by the field's name: a field that can be null has a name of its own."""
        return self._reasons[pointer.rpartition("/")[2]]


def _alarms_of(endpoint: str, watch: Mapping[str, Any] | None) -> list[str] | None:
    """An endpoint's alarms. One that was deployed after the observability stack is not watched yet."""
    if watch is None or watch["endpoint_alarms"] is None:
        return None
    names: list[str] = watch["endpoint_alarms"].get(endpoint, [])
    return names


def _endpoint(told: Mapping[str, Any], *, releases: Mapping[str, str], alarms: list[str] | None) -> dict[str, Any]:
    records = told["release_records"]
    values = {**told, "name": told["endpoint_name"], "arn": told["endpoint_arn"], "alarms": alarms}
    values["releases"] = {
        model: {"parameter": records + model, "digest": digest, "archive": str(ArchiveName(model=model, digest=digest))}
        for model, digest in sorted(releases.items())
    }
    return _part(parts.Endpoint, values, stack=f"serving-{told['endpoint']}")


def _part(model: type[BaseModel], told: Mapping[str, Any], *, stack: str | None = None) -> dict[str, Any]:
    """The fields that a part of the document has, of what a stack tells."""
    parameter = outputs_parameter(environment=told["environment"], stack=stack or told["kind"])
    values = {**told, "parameter": parameter}
    return {name: values[name] for name in model.model_fields}
