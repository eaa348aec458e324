"""The function that makes or adopts an endpoint's log group."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

# `lambda` is a word of the language, so the folder of that name cannot stand in an import statement.
calling: Any = importlib.import_module("tests.lambda.calling")
clients: Any = importlib.import_module("lambda.shared.clients")
handler: Any = importlib.import_module("lambda.endpoint_log.handler")

NAME = "/aws/sagemaker/Endpoints/dev-digits"
PROPERTIES = {
    "LogGroupName": NAME,
    "LogGroupArn": f"arn:{NAME}",
    "RetentionInDays": "90",
    "KmsKeyId": "arn:key",
    "Retain": "true",
    "Tags": '{"team": "platform"}',
}


class Logs:
    """CloudWatch Logs with the groups that are there: name → retention and key."""

    class exceptions:  # noqa: N801 - as boto3 spells it
        class ResourceAlreadyExistsException(Exception):  # noqa: N818 - as boto3 spells it
            """The group is there."""

        class ResourceNotFoundException(Exception):  # noqa: N818 - as boto3 spells it
            """The group is not there."""

    def __init__(self, *names: str) -> None:
        self.groups: dict[str, dict[str, Any]] = {name: {} for name in names}

    def create_log_group(self, *, logGroupName: str, tags: dict[str, str]) -> None:
        if logGroupName in self.groups:
            raise self.exceptions.ResourceAlreadyExistsException
        self.groups[logGroupName] = {"tags": dict(tags)} if tags else {}

    def tag_resource(self, *, resourceArn: str, tags: dict[str, str]) -> None:
        self._group(resourceArn.removeprefix("arn:")).setdefault("tags", {}).update(tags)

    def untag_resource(self, *, resourceArn: str, tagKeys: list[str]) -> None:
        for key in tagKeys:
            del self._group(resourceArn.removeprefix("arn:"))["tags"][key]

    def put_retention_policy(self, *, logGroupName: str, retentionInDays: int) -> None:
        self._group(logGroupName)["days"] = retentionInDays

    def associate_kms_key(self, *, logGroupName: str, kmsKeyId: str) -> None:
        self._group(logGroupName)["key"] = kmsKeyId

    def delete_log_group(self, *, logGroupName: str) -> None:
        self._group(logGroupName)
        del self.groups[logGroupName]

    def _group(self, name: str) -> dict[str, Any]:
        if name not in self.groups:
            raise self.exceptions.ResourceNotFoundException(name)
        return self.groups[name]


@pytest.mark.parametrize(("there", "done"), [((), "made"), ((NAME,), "adopted")])
@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_a_group_has_retention_and_key_whoever_made_it(there: tuple[str, ...], done: str, request_type: str) -> None:
    logs = Logs("/another", *there)
    assert handler.apply(logs, request_type, PROPERTIES) == done
    assert logs.groups == {"/another": {}, NAME: {"days": 90, "key": "arn:key", "tags": {"team": "platform"}}}


def test_tags_follow_the_settings_and_those_of_others_stay() -> None:
    logs = Logs()
    handler.apply(logs, "Create", PROPERTIES | {"Tags": '{"team": "platform", "cost": "1"}'})
    logs.groups[NAME]["tags"]["by hand"] = "stays"
    handler.apply(logs, "Update", PROPERTIES, PROPERTIES | {"Tags": '{"team": "x", "cost": "1"}'})
    assert logs.groups[NAME]["tags"] == {"team": "platform", "by hand": "stays"}


def test_properties_of_a_version_without_tags_are_taken() -> None:
    before = {name: value for name, value in PROPERTIES.items() if name not in ("Tags", "LogGroupArn")}
    logs = Logs(NAME)
    handler.apply(logs, "Update", PROPERTIES, before)
    handler.apply(logs, "Update", before, PROPERTIES)
    assert logs.groups[NAME]["days"] == 90


@pytest.mark.parametrize(("retain", "left"), [("true", {NAME}), ("false", set())])
def test_a_retained_group_outlives_the_stack_and_another_does_not(retain: str, left: set[str]) -> None:
    logs = Logs(NAME)
    handler.apply(logs, "Delete", {**PROPERTIES, "Retain": retain})
    assert set(logs.groups) == left


def test_a_group_that_is_gone_is_deleted() -> None:
    assert handler.apply(Logs(), "Delete", {**PROPERTIES, "Retain": "false"}) == "deleted"


def test_a_refusal_is_told_to_cloudformation(monkeypatch: pytest.MonkeyPatch) -> None:
    told = calling.hear(monkeypatch)
    logs = Logs()

    def refuse(**_request: Any) -> None:
        raise PermissionError("the key's policy does not let CloudWatch Logs in")

    monkeypatch.setattr(logs, "associate_kms_key", refuse)
    monkeypatch.setattr(clients, "connect", lambda _service: logs)
    event = {"RequestType": "Create", "ResourceProperties": PROPERTIES, **calling.IDS}
    handler.handler(event, calling.context())
    assert (told[0]["Status"], told[0]["PhysicalResourceId"]) == ("FAILED", NAME)
    assert "key's policy" in told[0]["Reason"]
