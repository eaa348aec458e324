"""CodeBuild's projects, StartBuild and StopBuild in MiniStack's CodeBuild."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tritonstack_local.emulator import request_validation
from tritonstack_local.emulator.codebuild.worker import Builds, check_service_role
from tritonstack_local.emulator.iam.authorization import enforced
from tritonstack_local.emulator.ministack_adapter import cloudformation, codebuild
from tritonstack_local.emulator.ministack_adapter.core import json_response
from tritonstack_local.emulator.services import as_response

_TYPE = "AWS::CodeBuild::Project"
_ONLY_OF_TEMPLATES = {"Triggers": ({}, None), "Visibility": ("PRIVATE", None), "ResourceAccessRole": ("", None)}
_MADE_BY_MINISTACK = frozenset({"name", "arn", "created", "lastModified", "badge"})


def _keeping_all(call: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """CreateProject or UpdateProject of MiniStack, with every setting of the request kept."""

    def kept(request: dict[str, Any]) -> Any:
        if enforced():
            before = codebuild.projects().get(request["name"], {})
            check_service_role(request.get("serviceRole", before.get("serviceRole", "")))
        answer = call(request)
        if answer[0] != 200:
            return answer
        codebuild.projects()[request["name"]].update(request)
        return json_response({"project": codebuild.project_shape(codebuild.projects()[request["name"]])})

    return kept


def _create(logical_id: str, properties: dict[str, Any], stack: str) -> tuple[str, dict[str, Any]]:
    """Create a template's project; raises ValueError with CreateProject's message."""
    name = properties.get("Name") or cloudformation.physical_name(stack, logical_id, max_len=255)
    return _call(codebuild.create_project, "CreateProject", {**properties, "Name": name})


def _update(physical_id: str, before: dict[str, Any], after: dict[str, Any], stack: str) -> tuple[str, dict[str, Any]]:
    """Update a template's project in place; another name makes another project."""
    if after.get("Name") not in (None, physical_id):
        return _create("", after, stack)
    project = codebuild.projects()[physical_id]
    for name in before.keys() - after.keys():
        project.pop(name[:1].lower() + name[1:], None)
    return _call(codebuild.update_project, "UpdateProject", {**after, "Name": physical_id})


def _call(
    call: Callable[[dict[str, Any]], Any], operation: str, properties: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    refused = [name for name, without in _ONLY_OF_TEMPLATES.items() if properties.get(name) not in without]
    if refused:
        raise ValueError(f"{_TYPE}: {', '.join(refused)}: not in the local AWS")
    own = {name: value for name, value in properties.items() if name not in _ONLY_OF_TEMPLATES}
    request = request_validation.coerce("codebuild", operation, own)
    status, _, body = call(request)
    if status != 200:
        raise ValueError(json.loads(body)["message"])
    return request["name"], {"Arn": codebuild.project_arn(request["name"])}


def install() -> Builds:
    """Put the operations in place, once a process. MiniStack runs them off its event loop, so they may block."""
    builds = Builds()
    codebuild.start_build.replace(_operation("StartBuild", lambda request: json_response(builds.start(request))))
    codebuild.stop_build.replace(_operation("StopBuild", lambda request: json_response(builds.stop(request))))
    codebuild.create_project.replace(_operation("CreateProject", _keeping_all(codebuild.create_project.current)))
    codebuild.update_project.replace(_operation("UpdateProject", _keeping_all(codebuild.update_project.current)))
    handlers = cloudformation.resource_handlers()[_TYPE]
    cloudformation.resource_handlers()[_TYPE] = {**handlers, "create": _create, "update": _update}
    shape = codebuild.project_shape.current

    def whole(project: dict[str, Any]) -> dict[str, Any]:
        return {**shape(project), **{k: v for k, v in project.items() if k not in _MADE_BY_MINISTACK}}

    codebuild.project_shape.replace(whole)
    return builds


def _operation(name: str, work: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """An operation whose requests are validated by botocore's model and whose refusals have AWS's form."""

    def operation(request: dict[str, Any]) -> Any:
        request_validation.validate("codebuild", name, request)
        return work(request)

    return as_response(operation, invalid="InvalidInputException")
