"""The activation function: records moved, restored and tagged, refusals, and its response to CloudFormation."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

# `lambda` is a keyword: an import statement cannot name either folder.
worlds: Any = importlib.import_module("tests.lambda.activation_world")
handler: Any = importlib.import_module("lambda.activation.handler")
calling: Any = importlib.import_module("tests.lambda.calling")
release_set: Any = importlib.import_module("lambda.activation.release_set")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")
STACK = worlds.STACK
ARCHIVES_TYPE, RECORDS_TYPE, RECORDS, PREFIX = worlds.ARCHIVES_TYPE, worlds.RECORDS_TYPE, worlds.RECORDS, worlds.PREFIX
A, B, C = worlds.A, worlds.B, worlds.C
World = worlds.World
OTHER = "endpoints/digits/25.04-t4/"
OURS = {"team": "platform"}
REMOVED = "/tritonstack/local/_removed/digits/"


@pytest.fixture
def world() -> Any:
    return World()


def test_nothing_is_recorded_while_an_archive_is_missing(world: Any) -> None:
    world.publish({"bert": A})
    world.publish({"gpt": B}, prefix=OTHER)  # another platform's does not count
    properties = world.properties({"bert": A, "gpt": B, "resnet": C})
    with pytest.raises(custom_resource.NotDoneError) as caught:
        world.send("Create", properties)
    assert "2 of 3 archives are not in s3://artifacts" in str(caught.value)
    assert f"{PREFIX}gpt.{B}.tar.gz" in str(caught.value)
    assert world.aws.parameter_writes == []


def test_a_new_platform_moves_no_record_but_wants_every_archive_there(world: Any) -> None:
    world.create({"bert": A})
    world.aws.calls.clear()
    old, new = world.properties({"bert": A}), world.properties({"bert": A}, prefix=OTHER)
    with pytest.raises(custom_resource.NotDoneError, match=r"25\.04-t4/bert"):
        world.send("Update", new, old)
    world.publish({"bert": A}, prefix=OTHER)
    world.send("Update", new, old)
    assert world.aws.parameter_writes == []


def test_delete_removes_the_records_of_this_endpoint_alone(world: Any) -> None:
    world.create({f"m{number}": A for number in range(12)})
    world.aws.parameters["/tritonstack/local/digits-large/bert"] = A
    world.aws.parameters["/tritonstack/local/_artifacts/bucket-name"] = "artifacts"
    properties = world.properties({})
    world.aws.buckets.clear()  # it needs neither release set nor archives
    world.send("Delete", properties)
    assert set(world.aws.parameters) == {
        "/tritonstack/local/digits-large/bert",
        "/tritonstack/local/_artifacts/bucket-name",
    }


def test_the_check_before_the_endpoint_touches_no_record(world: Any) -> None:
    world.create({"bert": A})
    world.publish({"bert": B})
    world.aws.calls.clear()
    new = world.properties({"bert": B})
    world.send("Update", new, new, resource_type=ARCHIVES_TYPE)
    world.aws.buckets.clear()
    world.send("Delete", new, resource_type=ARCHIVES_TYPE)
    assert world.records == {"bert": A}
    assert world.aws.parameter_writes == []


@pytest.mark.parametrize("code", ["NoSuchKey", "AccessDenied"])
def test_where_the_old_set_is_gone_the_records_themselves_are_compared(world: Any, code: str) -> None:
    """Staging buckets are cleaned up; without s3:ListBucket, S3 returns AccessDenied for a missing object."""
    world.create({"bert": A, "resnet": A, "gone": A})
    world.publish({"bert": B, "resnet": A})
    old, new = world.properties({"forgotten": A}), world.properties({"bert": B, "resnet": A})
    del world.aws.buckets["staging"][old["ReleaseSetKey"]]
    if code == "AccessDenied":
        world.aws.missing_object = "AccessDenied"
    world.aws.calls.clear()
    world.send("Update", new, old)
    assert world.records == {"bert": B, "resnet": A}
    assert world.aws.parameter_writes == [f"{REMOVED}gone", f"{RECORDS}bert", f"{RECORDS}gone"]


def test_every_missing_property_is_named(world: Any) -> None:
    with pytest.raises(custom_resource.NotDoneError, match="ReleaseSetKey, RecordPath"):
        world.send("Create", {"ReleaseSetBucket": "b", "ArchiveBucket": "a", "ArchivePrefix": "p"})


def test_a_record_that_was_there_before_its_model_joined_comes_back(world: Any) -> None:
    world.create({"bert": A})
    world.aws.put_by_hand(f"{RECORDS}joined", C)
    world.update({"bert": A}, {"bert": A, "joined": B})
    world.undo({"bert": A, "joined": B}, {"bert": A})
    assert world.records == {"bert": A, "joined": C}


def test_failed_updates_that_were_kept_are_undone_together(world: Any) -> None:
    """``cdk deploy --no-rollback`` twice, then ``cdk rollback``."""
    world.create({"bert": A, "resnet": A})
    world.roll_back_by_command("bert", C)
    world.update({"bert": A, "resnet": A}, {"bert": B, "resnet": A})
    world.update({"bert": B, "resnet": A}, {"bert": "d" * 16, "resnet": B})
    world.undo({"bert": "d" * 16, "resnet": B}, {"bert": A, "resnet": A})
    assert world.records == {"bert": C, "resnet": A}


def test_a_rollback_of_a_release_change_is_not_held_up_by_a_missing_archive(world: Any) -> None:
    world.create({"bert": A})
    world.aws.artifacts.pop(f"{PREFIX}bert.{A}.tar.gz")
    old, new = world.properties({"bert": A}), world.properties({"bert": A}, prefix=OTHER)
    world.aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.send("Update", old, new, resource_type=worlds.ARCHIVES_TYPE)
    world.send("Update", old, new)
    assert world.records == {"bert": A}


def test_a_new_platform_waits_for_the_archives_of_moved_records_too(world: Any) -> None:
    world.create({"bert": A, "resnet": A})
    world.roll_back_by_command("bert", C)
    world.roll_back_by_command("resnet", C)
    new = {"bert": A, "resnet": B}
    world.publish(new, prefix=OTHER)
    events = world.properties(new, prefix=OTHER), world.properties({"bert": A, "resnet": A})
    with pytest.raises(custom_resource.NotDoneError, match=f"1 of 3 archives .*{OTHER}bert.{C}.tar.gz"):
        world.send("Update", *events, resource_type=worlds.ARCHIVES_TYPE)
    world.publish({"bert": C}, prefix=OTHER)
    world.send("Update", *events, resource_type=worlds.ARCHIVES_TYPE)


def test_where_a_set_is_gone_the_notes_alone_give_what_to_restore(world: Any) -> None:
    old, new = {"bert": A, "resnet": A}, {"bert": B, "resnet": A, "joined": B}
    world.create(old)
    world.roll_back_by_command("bert", C)
    world.update(old, new)
    events = world.properties(old), world.properties(new)
    world.aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    del world.aws.buckets["staging"][events[0]["ReleaseSetKey"]]
    world.send("Update", *events)
    assert world.records == {"bert": C, "resnet": A}


def test_a_move_in_the_history_is_not_repeated_over_a_move_by_hand(world: Any) -> None:
    old, new = {"bert": A}, {"bert": B}
    world.create(old)
    world.update(old, new)
    world.roll_back_by_command("bert", C)
    world.update(old, new)
    assert world.records == {"bert": C}


def test_an_undo_brings_a_removed_model_back_where_its_set_is_gone(world: Any) -> None:
    """By the value that was kept of its record, which ``tritonstack rollback`` had moved from the set's."""
    old, new = {"bert": A, "gone": A}, {"bert": B}
    world.create(old)
    world.roll_back_by_command("gone", C)
    world.update(old, new)
    assert world.records == new
    events = world.properties(old), world.properties(new)
    world.aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    for properties in events:
        del world.aws.buckets["staging"][properties["ReleaseSetKey"]]
    world.send("Update", *events)
    assert world.records == {"bert": A, "gone": C}


def test_a_record_holds_its_writer_predecessor_commit_and_platform(world: Any) -> None:
    world.publish({"bert": A})
    world.publish({"bert": B})
    first = world.properties({"bert": A}, commits={"bert": "1" * 40})
    second = world.properties({"bert": B}, commits={"bert": "2" * 40})
    world.send("Create", first)
    expected = {"writer": "deployment", "platform": "24.09-t4"}
    assert world.note("bert").items() >= {**expected, "before": None, "commit": "1" * 40}.items()
    world.send("Update", second, first)
    assert world.note("bert").items() >= {**expected, "before": A, "commit": "2" * 40}.items()
    world.aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.send("Update", first, second)
    back = {"writer": "restored", "platform": "24.09-t4", "digest": A, "before": B, "commit": "1" * 40}
    assert {name: value for name, value in world.note("bert").items() if name != "write"} == back


def test_delete_removes_what_was_kept_of_removed_models(world: Any) -> None:
    world.create({"bert": A, "gone": A})
    world.roll_back_by_command("gone", C)
    world.update({"bert": A, "gone": A}, {"bert": A})
    assert world.others
    world.update({"bert": A}, {"bert": B})
    assert world.others == {}, "nothing rolls back to it any more"
    world.roll_back_by_command("bert", C)
    world.update({"bert": B}, {"resnet": A})
    assert world.others
    world.send("Delete", world.properties({"resnet": A}))
    assert world.aws.parameters == {}


@dataclass
class Design:
    """Expected records, in the short form of the design."""

    deployed: Mapping[str, str] = field(default_factory=dict)
    records: dict[str, str] = field(default_factory=dict)

    def deploy(self, new: Mapping[str, str]) -> None:
        """Changed models move, the others stay, those that left are gone."""
        moved = {model: digest for model, digest in new.items() if self.deployed.get(model) != digest}
        stayed = {model: digest for model, digest in self.records.items() if model in new}
        self.deployed, self.records = new, {**stayed, **moved}

    def move(self, model: str, digest: str) -> None:
        """``tritonstack rollback``, or a hand: a model that there is."""
        if model in self.records:
            self.records[model] = digest


MODELS = ("bert", "bert-large", "resnet", "t5")
DIGESTS = st.sampled_from([A, B, C])
SETS = st.dictionaries(st.sampled_from(MODELS), DIGESTS, min_size=1)
MOVES = st.tuples(st.sampled_from(["command", "hand"]), st.sampled_from(MODELS), DIGESTS)
DEPLOYMENTS = st.tuples(st.sampled_from(["completes", "undone", "refused", "breaks off"]), SETS, st.integers(0, 3))


def _deploy(world: Any, design: Design, *, outcome: str, new: Mapping[str, str], repeated: int) -> None:
    """One deployment with every event delivered ``1 + repeated`` times; "breaks off" after as many writes."""
    old = design.deployed
    if old == new:
        return  # CloudFormation sends no event where nothing changed
    for _ in range(1 + repeated):
        if outcome == "refused":  # it fails before anything is written
            world.aws.refused["ListObjectsV2"] = "SlowDown"
            with pytest.raises(ClientError, match="SlowDown"):
                world.update(old, new)
            world.aws.refused.clear()
        elif outcome == "breaks off":
            world.aws.puts_left = repeated
            with contextlib.suppress(ClientError):
                world.update(old, new)
            world.aws.puts_left = None
        else:
            world.update(old, new)
    if outcome == "completes":
        design.deploy(new)
        return
    for _ in range(1 + repeated):
        world.undo(new, old)


def retag(world: Any, models: dict[str, str], tags: dict[str, str] | None) -> None:
    """A deployment that changes nothing but the tags."""
    before, world.tags = world.properties(models), tags
    world.send("Update", world.properties(models), before)


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
    assert world.aws.parameter_writes == []


def test_records_of_a_version_without_tags_are_tagged_and_such_a_version_leaves_them(world: Any) -> None:
    world.tags = None
    world.create({"bert": A})
    assert world.aws.tags == {}
    retag(world, {"bert": A}, OURS)
    assert world.aws.tags == {f"{RECORDS}bert": OURS}
    retag(world, {"bert": A}, None)
    assert world.aws.tags == {f"{RECORDS}bert": OURS}


def test_an_event_that_ended_before_its_tags_makes_up_for_them(world: Any) -> None:
    world.create({"bert": A})
    world.aws.put_by_hand(f"{RECORDS}bert", C)
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
    moved = [f"{RECORDS}resnet", f"{RECORDS}gpt", f"{REMOVED}bert"]
    assert world.aws.tags == {name: {"cost": "1"} for name in moved}
    world.aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.send("Update", before, after)
    assert world.records == old
    assert {name: tags for name, tags in world.aws.tags.items() if name.startswith(RECORDS)} == {
        f"{RECORDS}bert": OURS,
        f"{RECORDS}resnet": OURS,
    }


SCENARIOS: dict[str, tuple[dict[str, str], list[tuple[str, Any, Any]]]] = {
    "an update moves what changed, adds and removes": (
        {"bert": A, "resnet": A, "gone": A},
        [("hand", "bert", C), ("completes", {"bert": A, "resnet": B, "joined": B}, 0)],
    ),
    "undone to where a record was moved": ({"bert": A}, [("command", "bert", C), ("undone", {"bert": B}, 0)]),
    "undone to joined and removed models": ({"bert": A, "gone": A}, [("undone", {"bert": B, "joined": B}, 0)]),
    "a removed model comes back to where it was moved": (
        {"bert": A, "gone": A},
        [("command", "gone", C), ("undone", {"bert": A}, 0), ("completes", {"bert": B, "gone": A}, 0)],
    ),
    "what an earlier rollback brought back is not brought back again": (
        {"bert": A, "gone": A},
        [("command", "gone", C), ("undone", {"bert": A}, 0), ("command", "gone", A), ("undone", {"bert": A}, 0)],
    ),
    "moved to the new digest before": ({"bert": A}, [("command", "bert", B), ("undone", {"bert": B}, 0)]),
    "a reverted commit is no rollback": (
        {"bert": A},
        [("command", "bert", C), ("completes", {"bert": B}, 0), ("completes", {"bert": A}, 0)],
    ),
    "a second attempt is undone too": (
        {"bert": A},
        [step for digest in (C, B, A) for step in (("command", "bert", digest), ("undone", {"bert": B}, 0))],
    ),
    "events delivered twice": (
        {"bert": A, "gone": A},
        [("command", "bert", C), ("command", "gone", C), ("undone", {"bert": B, "joined": B}, 1)],
    ),
}


def play(first: Mapping[str, str], steps: Sequence[tuple[str, Any, Any]]) -> None:
    """Compare the records with the design after every step, a move or a deployment."""
    world, design = World(), Design()
    world.create(first)
    design.deploy(first)
    for kind, what, more in steps:
        if kind in ("command", "hand"):
            design.move(what, more)
            if what in world.records:
                world.roll_back_by_command(what, more) if kind == "command" else world.aws.put_by_hand(
                    RECORDS + what, more
                )
        else:
            _deploy(world, design, outcome=kind, new=what, repeated=more)
        assert world.records == design.records, (kind, what, more)


@pytest.mark.parametrize(("first", "steps"), SCENARIOS.values(), ids=SCENARIOS)
def test_records_after_deployments_rollbacks_and_moves(first: Any, steps: Any) -> None:
    play(first, steps)


@settings(max_examples=60)
@given(first=SETS, steps=st.lists(st.one_of(MOVES, DEPLOYMENTS), max_size=8))
def test_records_after_any_deployments_rollbacks_and_moves(first: Any, steps: Any) -> None:
    play(first, steps)


@pytest.mark.parametrize("how", ["command", "hand"])
def test_a_record_moved_while_the_deployment_fails_stays_where_it_was_moved(world: Any, how: str) -> None:
    """Systems Manager keeps the description of a parameter that is written without one."""
    old, new = {"bert": A, "resnet": A}, {"bert": B, "resnet": B}
    world.create(old)
    world.update(old, new)
    world.roll_back_by_command("bert", C) if how == "command" else world.aws.put_by_hand(f"{RECORDS}bert", C)
    world.undo(new, old)
    assert world.records == {"bert": C, "resnet": A}


def test_each_event_gets_one_response_with_an_id_that_never_changes(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CloudFormation deletes what it failed to create, so a Delete may come with properties missing."""
    monkeypatch.setattr(worlds.clients, "connect", world.aws.client)
    responses = calling.record_responses(monkeypatch)
    world.publish({"bert": A})
    properties = world.properties({"bert": A})
    events = [
        ("Create", world.properties({"bert": B})),
        ("Create", properties),
        ("Update", properties),
        ("Delete", {**properties, "ReleaseSetKey": ""}),
    ]
    for request, given_properties in events:
        both = {"ResourceProperties": given_properties, "OldResourceProperties": properties}
        event = {"RequestType": request, "ResourceType": RECORDS_TYPE, **calling.IDS, "StackId": STACK, **both}
        world.begin(event)
        handler.handler(event, calling.context())
    assert {each["PhysicalResourceId"] for each in responses} == {f"Custom::ReleaseRecords:{RECORDS}"}
    assert [each["Status"] for each in responses] == ["FAILED", "SUCCESS", "SUCCESS", "SUCCESS"]
    assert "Build and publish the environment" in responses[0]["Reason"]
    assert responses[1]["Data"] == {"Written": "bert", "Deleted": ""}
