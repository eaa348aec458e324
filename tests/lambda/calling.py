"""A handler called as Lambda calls it, and what CloudFormation hears of it."""

from __future__ import annotations

import importlib
import json
from types import SimpleNamespace
from typing import Any

import pytest

# `lambda` is a word of the language, so the folder of that name cannot stand in an import statement.
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")

IDS = {"StackId": "stack", "RequestId": "request", "LogicalResourceId": "Resource", "ResponseURL": "https://answer"}


def context(*, seconds: float = 900) -> SimpleNamespace:
    """What Lambda tells of a run that has so long."""
    return SimpleNamespace(
        function_name="function",
        log_stream_name="stream",
        get_remaining_time_in_millis=lambda: int(seconds * 1000),
    )


def hear(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Every answer to CloudFormation from now on."""
    heard: list[dict[str, Any]] = []

    def put(_url: str, document: bytes) -> bool:
        heard.append(json.loads(document))
        return True

    monkeypatch.setattr(custom_resource, "put_document", put)
    return heard
