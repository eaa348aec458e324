"""What CodePipeline refuses of a declaration, beyond what botocore's model says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritonstack_local.emulator.refusal import RefusedError

Declaration = dict[str, Any]

_GUIDE = "CodePipeline user guide"
STRUCTURE = f"{_GUIDE}, Pipeline structure reference"
QUOTAS = f"{_GUIDE}, Quotas in AWS CodePipeline"
ROLLBACK = f"{_GUIDE}, Configuring stage rollback"
MODES = f"{_GUIDE}, Set or change the pipeline execution mode"
TYPES = f"{_GUIDE}, Pipeline types"
MOST_STAGES, MOST_ACTIONS_OF_STAGE = 50, 50

Complaint = tuple[str, str]
"""What is wrong, and where it is documented."""


def check_structure(pipeline: Declaration) -> None:
    """Raise RefusedError (InvalidStructureException) with the first thing that is wrong; AWS names one too."""
    for message, source in _complaints(pipeline):
        raise RefusedError("InvalidStructureException", message, source=source)


def _complaints(pipeline: Declaration) -> Iterator[Complaint]:
    yield from _stages(pipeline["stages"])
    yield from _sources(pipeline["stages"])
    yield from _artifacts(pipeline["stages"])
    yield from _features(pipeline)
    yield from _failures(pipeline)
    yield from _stores(pipeline)


def _stages(stages: list[Declaration]) -> Iterator[Complaint]:
    """Numbers and names of stages and their actions."""
    if len(stages) < 2:
        yield f"Pipeline has {len(stages)} stage(s). There should be a minimum of 2 stages in a pipeline", STRUCTURE
    if len(stages) > MOST_STAGES:
        yield f"Pipeline has {len(stages)} stages, and at most {MOST_STAGES} are allowed", QUOTAS
    for name in _twice(stage["name"] for stage in stages):
        yield f"Stage names must be unique within a pipeline: {name} stands there twice", STRUCTURE
    for stage in stages:
        actions = stage["actions"]
        if not actions:
            yield f"Stage {stage['name']} has no action", STRUCTURE
        if len(actions) > MOST_ACTIONS_OF_STAGE:
            yield (
                f"Stage {stage['name']} has {len(actions)} actions, at most {MOST_ACTIONS_OF_STAGE} are allowed",
                QUOTAS,
            )
        for name in _twice(action["name"] for action in actions):
            yield f"Action names must be unique within a stage: {name} stands twice in {stage['name']}", STRUCTURE


def _sources(stages: list[Declaration]) -> Iterator[Complaint]:
    """Source actions are in the first stage, and nothing else is."""
    for index, stage in enumerate(stages):
        for action in stage["actions"]:
            is_source = action["actionTypeId"]["category"] == "Source"
            if index == 0 and not is_source:
                yield (
                    (
                        f"Pipeline should start with a stage that only contains source actions: {action['name']} of "
                        f"{stage['name']} is none"
                    ),
                    STRUCTURE,
                )
            if index > 0 and is_source:
                yield (
                    f"Only the first stage may contain source actions: {stage['name']} has {action['name']}",
                    STRUCTURE,
                )


def _artifacts(stages: list[Declaration]) -> Iterator[Complaint]:
    """What an action takes, an earlier one has left; no two leave the same."""
    left: dict[str, str] = {}
    for stage in stages:
        order = sorted(stage["actions"], key=lambda action: int(action.get("runOrder", 1)))
        for action in order:
            earlier = [
                name
                for other in order
                if int(other.get("runOrder", 1)) < int(action.get("runOrder", 1))
                for name in _names(other, "outputArtifacts")
            ]
            for name in _names(action, "inputArtifacts"):
                if name not in left and name not in earlier:
                    yield (
                        (
                            f"Input artifact {name} of action {action['name']} in {stage['name']} is not declared as "
                            "output artifact of any preceding action"
                        ),
                        STRUCTURE,
                    )
        for action in order:
            for name in _names(action, "outputArtifacts"):
                if name in left:
                    yield (
                        (
                            f"Output artifact names must be unique within a pipeline: {name} is of {left[name]} and of "
                            f"{action['name']}"
                        ),
                        STRUCTURE,
                    )
                left[name] = action["name"]


def _features(pipeline: Declaration) -> Iterator[Complaint]:
    """What only a pipeline of type V2 has."""
    if pipeline.get("pipelineType", "V1") == "V2":
        return
    if pipeline.get("executionMode", "SUPERSEDED") != "SUPERSEDED":
        yield f"Execution mode {pipeline['executionMode']} requires a pipeline of type V2", MODES
    for member in ("triggers", "variables"):
        if pipeline.get(member):
            yield f"{member} require a pipeline of type V2", TYPES
    for stage in pipeline["stages"]:
        for member in ("onFailure", "onSuccess", "beforeEntry"):
            if member in stage:
                yield f"{member} of stage {stage['name']} requires a pipeline of type V2", TYPES


def _failures(pipeline: Declaration) -> Iterator[Complaint]:
    for index, stage in enumerate(pipeline["stages"]):
        if stage.get("onFailure", {}).get("result") != "ROLLBACK":
            continue
        if index == 0:
            yield f"You cannot roll back a source stage: onFailure of {stage['name']}", ROLLBACK
        if pipeline.get("executionMode") == "PARALLEL":
            yield (
                (
                    f"A failure condition with the result ROLLBACK cannot be added to a pipeline in PARALLEL mode: "
                    f"{stage['name']}"
                ),
                MODES,
            )


def _stores(pipeline: Declaration) -> Iterator[Complaint]:
    if ("artifactStore" in pipeline) == ("artifactStores" in pipeline):
        yield "Include either artifactStore or artifactStores in a pipeline, not both", "CodePipeline API reference"


def _names(action: Declaration, member: str) -> list[str]:
    return [artifact["name"] for artifact in action.get(member, [])]


def _twice(names: Iterator[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
