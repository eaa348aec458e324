"""StartBuild, StopBuild and BatchDeleteBuilds in MiniStack's CodeBuild; its other operations stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core.responses import error_response_json, json_response
from ministack.services import codebuild

from tritonstack_local.emulator import request_validation
from tritonstack_local.emulator.codebuild.project import install_projects
from tritonstack_local.emulator.codebuild.worker import Builds
from tritonstack_local.emulator.refusal import RefusedError

Answer = tuple[int, dict[str, str], bytes]


def install() -> Builds:
    """Put the operations in place, once a process. MiniStack runs them off its event loop, so they may block."""
    builds = Builds()
    codebuild._start_build = _operation("StartBuild", builds.start)
    codebuild._stop_build = _operation("StopBuild", builds.stop)
    codebuild._batch_delete_builds = _operation("BatchDeleteBuilds", builds.delete)
    install_projects()
    forget = codebuild.reset

    def reset() -> None:
        builds.forget()
        forget()

    codebuild.reset = reset
    return builds


def _operation(name: str, work: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], Any]:
    """An operation with its request checked against botocore's model and refusals answered as AWS does."""

    def operation(request: dict[str, Any]) -> Any:
        try:
            request_validation.validate("codebuild", name, request)
            return json_response(work(request))
        except RefusedError as refusal:
            code = "InvalidInputException" if refusal.code == "ValidationException" else refusal.code
            return error_response_json(code, str(refusal), refusal.status)

    return operation
