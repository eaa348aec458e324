"""The tags of release records: whose records carry which, whatever happened to them."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

# `lambda` is a word of the language, so neither folder of that name can stand in an import statement.
worlds: Any = importlib.import_module("tests.lambda.activation_world")
A, B, C, RECORDS = worlds.A, worlds.B, worlds.C, worlds.RECORDS
OURS = {"team": "platform"}
REMOVED = "/tritonstack/local/_removed/digits/"


@pytest.fixture
def world() -> Any:
    return worlds.World()


def retag(world: Any, models: dict[str, str], tags: dict[str, str] | None) -> None:
    """A deployment that changes nothing but the tags."""
    before, world.tags = world.properties(models), tags
    world.send("Update", world.properties(models), before)


def test_every_new_record_is_tagged(world: Any) -> None:
    world.create({f"m{number}": A for number in range(12)})
    assert world.aws.tags == {f"{RECORDS}m{number}": OURS for number in range(12)}


def test_a_record_that_moves_keeps_tags_made_by_hand(world: Any) -> None:
    world.create({"bert": A})
    world.aws.tags[f"{RECORDS}bert"]["by hand"] = "stays"
    world.update({"bert": A}, {"bert": B})
    world.roll_back_by_command("bert", A)
    assert world.aws.tags == {f"{RECORDS}bert": {**OURS, "by hand": "stays"}}


def test_new_tags_reach_records_that_do_not_move_and_dropped_ones_go(world: Any) -> None:
    models = {"bert": A, "resnet": A}
    world.create(models)
    world.aws.tags[f"{RECORDS}bert"]["by hand"] = "stays"
    world.aws.calls.clear()
    retag(world, models, {"cost": "1"})
    assert world.aws.tags == {f"{RECORDS}bert": {"cost": "1", "by hand": "stays"}, f"{RECORDS}resnet": {"cost": "1"}}
    assert world.aws.writes() == []


def test_a_record_that_somebody_deleted_hinders_no_new_tags(world: Any) -> None:
    models = {"bert": A, "resnet": A}
    world.create(models)
    world.aws.client("ssm").delete_parameters(Names=[f"{RECORDS}bert"])
    retag(world, models, {"cost": "1"})
    assert world.aws.tags == {f"{RECORDS}resnet": {"cost": "1"}}


def test_records_of_a_version_without_tags_are_tagged_and_such_a_version_leaves_them(world: Any) -> None:
    world.tags = None
    world.create({"bert": A})
    assert world.aws.tags == {}
    retag(world, {"bert": A}, OURS)
    assert world.aws.tags == {f"{RECORDS}bert": OURS}
    retag(world, {"bert": A}, None)
    assert world.aws.tags == {f"{RECORDS}bert": OURS}


def test_records_that_stay_cost_no_call_while_the_tags_are_the_same(world: Any) -> None:
    world.create({"bert": A, "resnet": A})
    world.aws.calls.clear()
    world.update({"bert": A, "resnet": A}, {"bert": A, "resnet": B})
    tagged = [given["ResourceId"] for name, given in world.aws.calls if name == "AddTagsToResource"]
    assert tagged == [f"{RECORDS}resnet"]


def test_an_event_that_ended_before_its_tags_makes_up_for_them(world: Any) -> None:
    world.create({"bert": A})
    world.aws.move_by_hand(f"{RECORDS}bert", C)
    world.publish({"resnet": A})
    world.aws.refused["AddTagsToResource"] = "InternalServerError"
    with pytest.raises(Exception, match="InternalServerError"):
        world.update({"bert": A}, {"resnet": A})
    del world.aws.refused["AddTagsToResource"]
    world.update({"bert": A}, {"resnet": A})
    assert world.aws.tags == {f"{RECORDS}resnet": OURS, f"{REMOVED}bert": OURS}


def test_an_undone_deployment_brings_records_and_tags_back(world: Any) -> None:
    old, new = {"bert": A, "resnet": A}, {"resnet": B, "gpt": A}
    world.create(old)
    before, world.tags = world.properties(old), {"cost": "1"}
    after = world.properties(new)
    world.publish(new)
    world.send("Update", after, before)
    assert world.aws.tags == {f"{RECORDS}resnet": {"cost": "1"}, f"{RECORDS}gpt": {"cost": "1"}}
    world.aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.send("Update", before, after)
    assert world.records == old
    assert world.aws.tags == {f"{RECORDS}bert": OURS, f"{RECORDS}resnet": OURS}


def test_an_undone_deployment_under_the_same_tags_tags_what_it_brings_back(world: Any) -> None:
    world.create({"bert": A})
    world.update({"bert": A}, {"resnet": A})
    world.undo({"resnet": A}, {"bert": A})
    assert world.aws.tags == {f"{RECORDS}bert": OURS}
