"""AWS::CodePipeline::Pipeline: kept and checked as by the API; none is executed."""

from __future__ import annotations

from typing import Any

from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, physical_name, register
from tritonstack_local.emulator.codepipeline.service import Pipelines
from tritonstack_local.emulator.json_service import JsonService
from tritonstack_local.emulator.refusal import RefusedError

_LONGEST_NAME = 100
_OF_TEMPLATES = ("DisableInboundStageTransitions", "RestartExecutionOnUpdate", "Tags")
_MAPS = ("Configuration",)
"""Members whose keys are the user's, and stay as they are."""


class PipelineResource:
    """Create, update and delete by the service's own operations."""

    def __init__(self, service: JsonService, pipelines: Pipelines) -> None:
        """``pipelines`` are those of ``service``."""
        self._service, self._pipelines = service, pipelines

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        """CreatePipeline, under the given name or a generated one."""
        name = properties.get("Name") or physical_name(stack_name, logical_id, longest=_LONGEST_NAME)
        request: dict[str, Any] = {"pipeline": _declaration({**properties, "Name": name})}
        tags = _tags(properties)
        if tags:
            request["tags"] = tags
        made = self._service.call_from_template("CreatePipeline", request)
        return name, {"Version": str(made["pipeline"]["version"])}

    def update(self, name: str, old: Properties, new: Properties, _stack_name: str) -> Provisioned:
        """UpdatePipeline where the declaration changed, and tags."""
        declared = _declaration({**new, "Name": name})
        if declared != _declaration({**old, "Name": name}):
            self._service.call_from_template("UpdatePipeline", {"pipeline": declared})
        self._tag(name, old, new)
        version = self._service.call("GetPipeline", {"name": name})["pipeline"]["version"]
        return name, {"Version": str(version)}

    def delete(self, name: str, _properties: Properties) -> None:
        """DeletePipeline."""
        self._service.call("DeletePipeline", {"name": name})

    def _tag(self, name: str, old: Properties, new: Properties) -> None:
        arn = self._pipelines.arn(name)
        dropped = {each["key"] for each in _tags(old)} - {each["key"] for each in _tags(new)}
        if dropped:
            self._service.call("UntagResource", {"resourceArn": arn, "tagKeys": sorted(dropped)})
        if _tags(new):
            self._service.call("TagResource", {"resourceArn": arn, "tags": _tags(new)})


def install(service: JsonService, pipelines: Pipelines) -> None:
    """Register the type; another name replaces the pipeline, as its schema says."""
    resource = PipelineResource(service, pipelines)
    register("AWS::CodePipeline::Pipeline", create=resource.create, update=resource.update, delete=resource.delete)


def _declaration(properties: Properties) -> dict[str, Any]:
    """The properties as the API spells them."""
    if properties.get("DisableInboundStageTransitions"):
        raise RefusedError(
            "ValidationException",
            "DisableInboundStageTransitions: not in the local AWS, which executes no pipeline",
            source="tritonstack_local.emulator",
        )
    lowered: dict[str, Any] = _lowered({k: v for k, v in properties.items() if k not in _OF_TEMPLATES})
    if "artifactStores" in lowered:  # a list in templates, a map by region in the API
        lowered["artifactStores"] = {each["region"]: each["artifactStore"] for each in lowered["artifactStores"]}
    for stage in lowered.get("stages", []):
        stage.pop("blockers", None)
    return lowered


def _lowered(value: Any) -> Any:
    if isinstance(value, list):
        return [_lowered(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name[:1].lower() + name[1:]: _texts(each) if name in _MAPS and isinstance(each, dict) else _lowered(each)
        for name, each in value.items()
    }


def _texts(configuration: dict[str, Any]) -> dict[str, str]:
    """An action's configuration: texts, however a template spells truth values and numbers."""
    return {name: str(each).lower() if isinstance(each, bool) else str(each) for name, each in configuration.items()}


def _tags(properties: Properties) -> list[dict[str, str]]:
    return [
        {"key": each["Key"], "value": each["Value"]}
        for each in properties.get("Tags", [])
        if not each["Key"].startswith("aws:")
    ]
