"""CodePipeline: its operations, stages and actions, and its CloudFormation type."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, physical_name, register
from tritonstack_local.emulator.iam.authorization import role_principal
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import refusal_of
from tritonstack_local.emulator.ministack_adapter import iam
from tritonstack_local.emulator.ministack_adapter.core import account_region_table, get_account_id, get_region
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import JsonService

Declaration = dict[str, Any]

API = "CodePipeline API reference"
STRUCTURE = "CodePipeline user guide, Pipeline structure reference"
MOST_STAGES, MOST_ACTIONS_OF_STAGE = 50, 50


def _stage_problems(pipeline: Declaration) -> Iterator[str]:
    """The pipeline's type, numbers and names of stages and actions, and where source actions are."""
    stages = pipeline["stages"]
    if "pipelineType" not in pipeline:
        yield "pipelineType V1, the default, is not in the local AWS; it has V2"
    if "artifactStore" not in pipeline:
        yield "artifactStore is missing"
    if not 2 <= len(stages) <= MOST_STAGES:
        yield f"Pipeline has {len(stages)} stage(s). There should be a minimum of 2 stages, at most {MOST_STAGES}"
    for name in _repeated(stages):
        yield f"Stage names must be unique within a pipeline: {name}"
    for index, stage in enumerate(stages):
        name, actions = stage["name"], stage["actions"]
        if not 1 <= len(actions) <= MOST_ACTIONS_OF_STAGE:
            yield f"Stage {name} has {len(actions)} actions, 1 to {MOST_ACTIONS_OF_STAGE} are allowed"
        for repeated in _repeated(actions):
            yield f"Action names must be unique within a stage: {repeated} in {name}"
        for action in actions:
            if (action["actionTypeId"]["category"] == "Source") != (index == 0):
                yield f"The first stage contains source actions, and only source actions: {action['name']} of {name}"
        if index == 0 and "onFailure" in stage:
            yield f"You cannot roll back a source stage: onFailure of {name}"


def _artifact_problems(stages: list[Declaration]) -> Iterator[str]:
    """Problems of artifacts: each input must be an earlier action's output, and each output has one action."""
    left: dict[str, str] = {}
    for stage in stages:
        order = sorted(stage["actions"], key=_run_order)
        for _, together in groupby(order, key=_run_order):
            actions = list(together)
            for action in actions:
                for name in _names(action, "inputArtifacts"):
                    if name not in left:
                        where = f"{name} of action {action['name']} in {stage['name']}"
                        yield f"Input artifact {where} is not declared as output of any preceding action"
            for action in actions:
                for name in _names(action, "outputArtifacts"):
                    if name in left:
                        both = f"{name} is of {left[name]} and of {action['name']}"
                        yield f"Output artifact names must be unique within a pipeline: {both}"
                    left[name] = action["name"]


def _run_order(action: Declaration) -> int:
    return int(action.get("runOrder", 1))


def _names(action: Declaration, member: str) -> list[str]:
    return [artifact["name"] for artifact in action.get(member, [])]


def _repeated(named: list[Declaration]) -> list[str]:
    return [name for name, count in Counter(one["name"] for one in named).items() if count > 1]


Request = dict[str, Any]


class Pipelines:
    """Stored pipelines: declarations with their versions. No operation here returns tags."""

    def __init__(self) -> None:
        self._kept = account_region_table()

    def create_pipeline(self, request: Request) -> Request:
        declared = request["pipeline"]
        if declared["name"] in self._kept:
            message = f"A pipeline with the name '{declared['name']}' already exists"
            raise RefusedError("PipelineNameInUseException", message, source=f"{API}, CreatePipeline")
        self._check(declared)
        now = clock.now()
        kept = {"pipeline": {**copy.deepcopy(declared), "version": 1}, "created": now, "updated": now}
        self._kept[declared["name"]] = kept
        return {"pipeline": kept["pipeline"], "tags": request.get("tags", [])}

    def update_pipeline(self, request: Request) -> Request:
        """UpdatePipeline: the whole declaration anew, one version on."""
        declared = request["pipeline"]
        kept = self._of(declared["name"])
        self._check(declared)
        kept["pipeline"] = {**copy.deepcopy(declared), "version": kept["pipeline"]["version"] + 1}
        kept["updated"] = clock.now()
        return {"pipeline": kept["pipeline"]}

    def get_pipeline(self, request: Request) -> Request:
        """GetPipeline; the local AWS has the latest version alone."""
        kept = self._of(request["name"])
        metadata = {
            "pipelineArn": f"arn:aws:codepipeline:{get_region()}:{get_account_id()}:{request['name']}",
            "created": kept["created"],
            "updated": kept["updated"],
        }
        return {"pipeline": kept["pipeline"], "metadata": metadata}

    def delete_pipeline(self, request: Request) -> None:
        """DeletePipeline: of one that is not there, too."""
        self._kept.pop(request["name"], None)

    def _of(self, name: str) -> Request:
        kept: Request | None = self._kept.get(name)
        if kept is None:
            message = f"Account '{get_account_id()}' does not have a pipeline with name '{name}'"
            raise RefusedError("PipelineNotFoundException", message, source=f"{API}, GetPipeline")
        return kept

    def _check(self, declared: Request) -> None:
        for message in (*_stage_problems(declared), *_artifact_problems(declared["stages"])):
            raise RefusedError("InvalidStructureException", message, source=STRUCTURE)  # the first: AWS names one too
        arn = declared["roleArn"]
        if arn.split(":")[4] == get_account_id() and arn.rpartition("/")[2] not in iam.roles():
            raise RefusedError(
                "InvalidStructureException",
                f"CodePipeline is not authorized to perform AssumeRole on role {arn}",
                source="CodePipeline user guide, Troubleshooting",
            )
        self._check_connections(declared)

    def _check_connections(self, declared: Request) -> None:
        """Refuse a source whose role may not use its connection: at AWS its execution fails, and here none runs.

        The action is of the service that the connection's ARN names (console guide, "AWS CodeConnections rename").
        """
        for action in declared["stages"][0]["actions"]:
            connection = action.get("configuration", {}).get("ConnectionArn")
            if connection is None:
                continue
            role = role_principal(action.get("roleArn", declared["roleArn"]), declared["name"])
            need = Need(action=f"{connection.split(':')[2]}:UseConnection", resource=connection)
            refused = refusal_of(role, [need], by=f"codepipeline: source {action['name']} of {declared['name']}")
            if refused is not None:
                sentence = f"Unable to use Connection: {connection}. {refused.sentence}"
                raise RefusedError("InvalidStructureException", sentence, source="CodePipeline user guide")


def install() -> None:
    """Install the service and its resource type; operations that execute a pipeline are refused by name."""
    service = JsonService(Pipelines(), service="codepipeline", target_prefix="CodePipeline_20150709")
    service.install()
    register("AWS::CodePipeline::Pipeline", PipelineResource(service))


_LONGEST_NAME = 100
_OF_TEMPLATES = ("RestartExecutionOnUpdate", "Tags")


class PipelineResource:
    """Create, update and delete by the service's own operations; another name replaces the pipeline, by its schema."""

    def __init__(self, service: JsonService) -> None:
        self._service = service

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        """CreatePipeline, under the given name or a generated one."""
        name = properties.get("Name") or physical_name(stack_name, logical_id, longest=_LONGEST_NAME)
        request = {"pipeline": _declaration({**properties, "Name": name})}
        made = self._service.call_from_template("CreatePipeline", request)
        return name, {"Version": str(made["pipeline"]["version"])}

    def update(self, name: str, old: Properties, new: Properties, _stack_name: str) -> Provisioned:
        """UpdatePipeline where the declaration changed."""
        declared = _declaration({**new, "Name": name})
        if declared != _declaration({**old, "Name": name}):
            self._service.call_from_template("UpdatePipeline", {"pipeline": declared})
        version = self._service.call("GetPipeline", {"name": name})["pipeline"]["version"]
        return name, {"Version": str(version)}

    def delete(self, name: str, _properties: Properties) -> None:
        self._service.call("DeletePipeline", {"name": name})


def _declaration(properties: Properties) -> dict[str, Any]:
    """The properties that are the pipeline's own."""
    return {name: value for name, value in properties.items() if name not in _OF_TEMPLATES}
