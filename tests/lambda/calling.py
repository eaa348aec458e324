"""A handler invoked as Lambda invokes it, and its responses to CloudFormation."""

from __future__ import annotations

import importlib
import json
from types import SimpleNamespace
from typing import Any

import pytest

# `lambda` is a keyword: an import statement cannot name the folder.
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")

IDS = {"StackId": "stack", "RequestId": "request", "LogicalResourceId": "Resource", "ResponseURL": "https://answer"}


def context(*, seconds: float = 900) -> SimpleNamespace:
    """Lambda's context of a run that has so many seconds."""
    return SimpleNamespace(
        function_name="function",
        log_stream_name="stream",
        get_remaining_time_in_millis=lambda: int(seconds * 1000),
    )


def record_responses(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Record every response to CloudFormation from now on."""
    responses: list[dict[str, Any]] = []

    def put(_url: str, document: bytes) -> bool:
        responses.append(json.loads(document))
        return True

    monkeypatch.setattr(custom_resource, "put_document", put)
    return responses
