"""What Inference Recommender refuses beside what botocore's model says."""

from __future__ import annotations

from typing import Any

from tritonstack_local.emulator.refusal import RefusedError

GUIDE = 'SageMaker developer guide, "Run a custom load test"'
_USERS, _SPAWN, _SECONDS = (1, 3), (0, 3), (120, 3600)
_LONGEST_JOB = 7200


def check_job(request: dict[str, Any]) -> None:
    """Raise ``RefusedError`` for a load test outside the documented limits, or without what one needs."""
    given = request["InputConfig"]
    if ("ModelPackageVersionArn" in given) == ("ModelName" in given):
        raise _refused("Exactly one of ModelPackageVersionArn and ModelName must be specified in InputConfig.")
    if request["JobType"] == "Default":
        if "TrafficPattern" in given or "StoppingConditions" in request:
            raise _refused("TrafficPattern and StoppingConditions are of Advanced jobs alone.")
        return
    for name in ("TrafficPattern", "EndpointConfigurations", "ResourceLimit"):
        if name not in given:
            raise _refused(f"InputConfig.{name} must be specified for an Advanced job.")
    duration = given.get("JobDurationInSeconds", _LONGEST_JOB)
    if duration > _LONGEST_JOB:
        raise _refused(f"JobDurationInSeconds {duration} is above {_LONGEST_JOB}.")
    for phase in given["TrafficPattern"].get("Phases", []):
        _check_phase(phase)
    if sum(seconds_of(given["TrafficPattern"])) > duration:
        raise _refused("The phases take longer than JobDurationInSeconds.")


def seconds_of(pattern: dict[str, Any]) -> list[float]:
    """How long each phase takes."""
    return [float(phase.get("DurationInSeconds", _SECONDS[0])) for phase in pattern.get("Phases", [])]


def _check_phase(phase: dict[str, Any]) -> None:
    for name, (least, most) in (
        ("InitialNumberOfUsers", _USERS),
        ("SpawnRate", _SPAWN),
        ("DurationInSeconds", _SECONDS),
    ):
        if name in phase and not least <= phase[name] <= most:
            raise _refused(f"{name} {phase[name]} is not between {least} and {most}.")


def _refused(sentence: str) -> RefusedError:
    return RefusedError("ValidationException", sentence, source=GUIDE)
