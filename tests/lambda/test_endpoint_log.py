"""The function that makes or adopts an endpoint's log group."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

HANDLER = Path(__file__).resolve().parents[2] / "lambda/endpoint_log/handler.py"
NAME = "/aws/sagemaker/Endpoints/dev-digits"
PROPERTIES = {"LogGroupName": NAME, "RetentionInDays": "90", "KmsKeyId": "arn:key", "Retain": "true"}


class Logs:
    """CloudWatch Logs with the groups that are there: name → retention and key."""

    class exceptions:  # noqa: N801 - as boto3 spells it
        class ResourceAlreadyExistsException(Exception):  # noqa: N818 - as boto3 spells it
            """The group is there."""

        class ResourceNotFoundException(Exception):  # noqa: N818 - as boto3 spells it
            """The group is not there."""

    def __init__(self, *names: str) -> None:
        self.groups: dict[str, dict[str, Any]] = {name: {} for name in names}

    def create_log_group(self, *, logGroupName: str) -> None:  # noqa: N803 - as boto3 spells it
        if logGroupName in self.groups:
            raise self.exceptions.ResourceAlreadyExistsException
        self.groups[logGroupName] = {}

    def put_retention_policy(self, *, logGroupName: str, retentionInDays: int) -> None:  # noqa: N803
        self._group(logGroupName)["days"] = retentionInDays

    def associate_kms_key(self, *, logGroupName: str, kmsKeyId: str) -> None:  # noqa: N803
        self._group(logGroupName)["key"] = kmsKeyId

    def delete_log_group(self, *, logGroupName: str) -> None:  # noqa: N803
        self._group(logGroupName)
        del self.groups[logGroupName]

    def _group(self, name: str) -> dict[str, Any]:
        if name not in self.groups:
            raise self.exceptions.ResourceNotFoundException(name)
        return self.groups[name]


@pytest.fixture(scope="module")
def handler() -> ModuleType:
    spec = importlib.util.spec_from_file_location("endpoint_log_handler", HANDLER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("there", "done"), [((), "made"), ((NAME,), "adopted")])
@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_a_group_has_retention_and_key_whoever_made_it(
    handler: ModuleType, there: tuple[str, ...], done: str, request_type: str
) -> None:
    logs = Logs("/another", *there)
    assert handler.apply(logs, request_type, PROPERTIES) == done
    assert logs.groups == {"/another": {}, NAME: {"days": 90, "key": "arn:key"}}


def test_a_repeated_event_changes_nothing(handler: ModuleType) -> None:
    logs = Logs()
    handler.apply(logs, "Create", PROPERTIES)
    before = {name: dict(each) for name, each in logs.groups.items()}
    handler.apply(logs, "Create", PROPERTIES)
    assert logs.groups == before


@pytest.mark.parametrize(("retain", "left"), [("true", {NAME}), ("false", set())])
def test_a_retained_group_outlives_the_stack_and_another_does_not(
    handler: ModuleType, retain: str, left: set[str]
) -> None:
    logs = Logs(NAME)
    handler.apply(logs, "Delete", {**PROPERTIES, "Retain": retain})
    assert set(logs.groups) == left


def test_a_group_that_is_gone_is_deleted(handler: ModuleType) -> None:
    assert handler.apply(Logs(), "Delete", {**PROPERTIES, "Retain": "false"}) == "deleted"


def test_a_refusal_is_told_to_cloudformation(handler: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    logs = Logs()

    def refuse(**_request: Any) -> None:
        raise PermissionError("the key's policy does not let CloudWatch Logs in")

    monkeypatch.setattr(logs, "associate_kms_key", refuse)
    monkeypatch.setattr(handler, "answer", lambda _event, **given: told.append(given))
    monkeypatch.setattr(handler.boto3, "client", lambda _service, **_given: logs)
    event = {"RequestType": "Create", "ResourceProperties": PROPERTIES}
    handler.handler(event, SimpleNamespace(log_stream_name="stream"))
    assert told[0]["status"] == "FAILED"
    assert "key's policy" in told[0]["reason"]
