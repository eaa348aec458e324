"""Notes: the activation function and the commands understand what the other wrote."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from tritonstack.naming import Platform
from tritonstack.releases.records import DeployedSet, Record, read_record, write_record
from tritonstack.releases.report import difference

# `lambda` is a keyword: an import statement cannot name such a folder.
worlds: Any = importlib.import_module("tests.lambda.activation_world")
records: Any = importlib.import_module("lambda.activation.records")
A, B, C = worlds.A, worlds.B, worlds.C


class Session:
    """A world's clients."""

    def __init__(self, world: Any) -> None:
        self.world = world

    def client(self, service_name: str, *, config: Any = None) -> Any:
        """The client of the world's account."""
        return getattr(self.world.clients, service_name)


def deployed_with(models: dict[str, str], *, status: str = "UPDATE_COMPLETE") -> DeployedSet:
    return DeployedSet(
        endpoint="digits",
        stack="local-serving-digits",
        status=status,
        platform=Platform(release="24.09", gpu="t4"),
        multi_model=True,
        models=models,
    )


def _record(world: Any) -> Record:
    return read_record(Session(world), environment="local", endpoint="digits", model="bert")


def test_what_a_deployment_noted_is_read() -> None:
    world = worlds.World()
    world.publish({"bert": A})
    world.send("Create", world.properties({"bert": A}, commits={"bert": "1" * 40}))
    [version] = _record(world).versions
    assert (version.writer, version.digest, version.platform, version.commit) == ("deployment", A, "24.09-t4", "1" * 40)


def test_what_rollback_noted_is_understood_by_the_function_and_keeps_its_commit() -> None:
    world = worlds.World()
    world.publish({"bert": A})
    first = world.properties({"bert": A}, commits={"bert": "1" * 40})
    world.send("Create", first)
    world.update({"bert": A}, {"bert": B})
    write_record(Session(world), _record(world), A, environment="local", platform="24.09-t4")
    newest = _record(world).versions[0]
    assert (newest.writer, newest.digest, newest.commit) == ("rollback", A, "1" * 40)
    note = next(records.notes_of(world.clients.ssm, f"{worlds.RECORDS}bert"))
    assert (note["writer"], note["before"]) == ("rollback", B)
    assert world.note("bert") == dict(note)


def test_what_local_dev_moved_is_reported_with_the_deployment_that_follows() -> None:
    world = worlds.World()
    world.publish({"bert": A})
    world.send("Create", world.properties({"bert": A}))
    write_record(Session(world), _record(world), B, environment="local", platform="24.09-t4", writer="dev")
    found = difference("local", _record(world), deployed=deployed_with({"bert": A}))
    assert found is not None
    assert found[0].startswith("moved by tritonstack local dev")
    assert found[1].startswith("tritonstack local deploy -e local, or go back: ")


def test_a_value_written_without_a_note_has_an_unknown_writer() -> None:
    world = worlds.World()
    world.create({"bert": A})
    world.aws.put_by_hand(f"{worlds.RECORDS}bert", B)
    assert [version.writer for version in _record(world).versions] == ["unknown", "deployment"]


@pytest.mark.parametrize("text", ["", "by hand", "{", "null", "[1]", '{"digest": "another"}', "[" * 1024])
def test_any_description_is_read_as_a_note_or_as_none(text: str) -> None:
    world = worlds.World()
    world.aws._PutParameter(Name=f"{worlds.RECORDS}bert", Value=A, Type="String", Description=text)
    assert _record(world).versions[0].writer == "unknown"
    assert list(records.notes_of(world.clients.ssm, f"{worlds.RECORDS}bert")) == [{}]


def test_a_note_with_wrong_types_is_read_as_far_as_it_goes() -> None:
    world = worlds.World()
    note = {"writer": ["deployment"], "digest": A, "before": None, "platform": 7, "commit": {}}
    world.aws._PutParameter(Name=f"{worlds.RECORDS}bert", Value=A, Type="String", Description=json.dumps(note))
    [version] = _record(world).versions
    assert (version.writer, version.platform, version.commit) == ("unknown", None, "unknown")


@pytest.mark.parametrize(
    ("models", "status", "expected"),
    [
        ({"bert": A}, "UPDATE_COMPLETE", None),
        ({"bert": B}, "UPDATE_COMPLETE", "moved outside of a deployment"),
        ({"bert": B}, "UPDATE_IN_PROGRESS", "a deployment is under way"),
        ({}, "UPDATE_COMPLETE", "the deployed set has no such model"),
        (None, "", "the endpoint is not deployed"),
    ],
)
def test_a_difference_is_reported_by_what_is_deployed(
    models: dict[str, str] | None, status: str, expected: str | None
) -> None:
    world = worlds.World()
    world.create({"bert": A})
    deployed = None
    if models is not None:
        deployed = deployed_with(models, status=status)
    found = difference("local", _record(world), deployed=deployed)
    assert (found is None) if expected is None else (found is not None and expected in found[0] and found[1])
