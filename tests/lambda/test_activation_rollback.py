"""Deployments that CloudFormation undoes: every record comes back to what it was, moved by hand or not."""

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

# `lambda` is a word of the language, so neither folder of that name can stand in an import statement.
worlds: Any = importlib.import_module("tests.lambda.activation_world")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")
release_set: Any = importlib.import_module("lambda.activation.release_set")

RECORDS, PREFIX, World = worlds.RECORDS, worlds.PREFIX, worlds.World
A, B, C = worlds.A, worlds.B, worlds.C
OTHER = "endpoints/digits/25.04-t4/"


@pytest.fixture
def world() -> Any:
    return World()


def test_a_record_moved_before_the_deployment_comes_back_to_where_it_was_moved(world: Any) -> None:
    world.create({"bert": A})
    world.roll_back_by_command("bert", C)
    world.update({"bert": A}, {"bert": B})
    assert world.records == {"bert": B}
    world.undo({"bert": B}, {"bert": A})
    assert world.records == {"bert": C}


def test_new_models_lose_their_records_and_removed_ones_get_theirs_back(world: Any) -> None:
    old, new = {"bert": A, "gone": A}, {"bert": B, "joined": B}
    world.create(old)
    world.update(old, new)
    world.undo(new, old)
    assert world.records == old


def test_a_removed_model_comes_back_to_where_its_record_was_moved_and_nothing_is_left_of_it(world: Any) -> None:
    old = {"bert": A, "gone": A}
    world.create(old)
    world.roll_back_by_command("gone", C)
    world.update(old, {"bert": A})
    assert world.records == {"bert": A}
    world.undo({"bert": A}, old)
    assert world.records == {"bert": A, "gone": C}
    world.update(old, {"bert": B, "gone": A})
    assert world.others == {}


def test_what_an_earlier_deployment_kept_of_a_removed_model_is_not_brought_back_by_a_later_one(world: Any) -> None:
    old, new = {"bert": A, "gone": A}, {"bert": A}
    world.create(old)
    world.roll_back_by_command("gone", C)
    world.update(old, new)
    world.undo(new, old)
    world.roll_back_by_command("gone", A)
    world.update(old, new)
    world.undo(new, old)
    assert world.records == {"bert": A, "gone": A}


def test_a_record_that_was_there_before_its_model_joined_comes_back(world: Any) -> None:
    world.create({"bert": A})
    world.aws.move_by_hand(f"{RECORDS}joined", C)
    world.update({"bert": A}, {"bert": A, "joined": B})
    world.undo({"bert": A, "joined": B}, {"bert": A})
    assert world.records == {"bert": A, "joined": C}


def test_a_record_that_was_moved_to_the_new_digest_before_the_deployment_stays_there(world: Any) -> None:
    world.create({"bert": A})
    world.roll_back_by_command("bert", B)
    world.aws.calls.clear()
    world.update({"bert": A}, {"bert": B})
    world.undo({"bert": B}, {"bert": A})
    assert world.records == {"bert": B}
    assert world.aws.writes() == []


def test_a_record_that_is_moved_while_the_deployment_fails_stays_where_it_was_moved(world: Any) -> None:
    world.create({"bert": A, "resnet": A})
    world.update({"bert": A, "resnet": A}, {"bert": B, "resnet": B})
    world.roll_back_by_command("bert", C)
    world.undo({"bert": B, "resnet": B}, {"bert": A, "resnet": A})
    assert world.records == {"bert": C, "resnet": A}


def test_a_value_written_without_a_note_is_not_taken_for_the_deployments(world: Any) -> None:
    """Systems Manager keeps the description of a parameter that is written without one."""
    world.create({"bert": A})
    world.update({"bert": A}, {"bert": B})
    world.aws.move_by_hand(f"{RECORDS}bert", C)
    world.undo({"bert": B}, {"bert": A})
    assert world.records == {"bert": C}


def test_going_back_by_a_deployment_is_no_rollback(world: Any) -> None:
    """The commit is reverted and deployed: the same event, and the stack's status tells them apart."""
    world.create({"bert": A})
    world.roll_back_by_command("bert", C)
    world.update({"bert": A}, {"bert": B})
    world.update({"bert": B}, {"bert": A})
    assert world.records == {"bert": A}


def test_a_second_attempt_of_the_same_deployment_is_undone_too(world: Any) -> None:
    old, new = {"bert": A}, {"bert": B}
    world.create(old)
    for digest in (C, B, A):
        world.roll_back_by_command("bert", digest)
        world.update(old, new)
        assert world.records == new
        world.undo(new, old)
        assert world.records == {"bert": digest}


def test_failed_updates_that_were_kept_are_undone_together(world: Any) -> None:
    """``cdk deploy --no-rollback`` twice, then ``cdk rollback``."""
    world.create({"bert": A, "resnet": A})
    world.roll_back_by_command("bert", C)
    world.update({"bert": A, "resnet": A}, {"bert": B, "resnet": A})
    world.update({"bert": B, "resnet": A}, {"bert": "d" * 16, "resnet": B})
    world.undo({"bert": "d" * 16, "resnet": B}, {"bert": A, "resnet": A})
    assert world.records == {"bert": C, "resnet": A}


def test_a_model_that_left_and_came_again_in_failed_updates_has_its_record_of_before(world: Any) -> None:
    world.create({"bert": A, "resnet": A})
    world.update({"bert": A, "resnet": A}, {"resnet": A})
    world.update({"resnet": A}, {"bert": B, "resnet": A})
    world.undo({"bert": B, "resnet": A}, {"bert": A, "resnet": A})
    assert world.records == {"bert": A, "resnet": A}


def test_the_rollback_of_a_refused_update_writes_nothing(world: Any) -> None:
    world.create({"bert": A})
    world.update({"bert": A}, {"bert": B})
    world.roll_back_by_command("bert", A)
    world.aws.calls.clear()
    with pytest.raises(custom_resource.NotDoneError):
        world.send("Update", world.properties({"bert": C}), world.properties({"bert": B}))
    world.undo({"bert": C}, {"bert": B})
    assert world.aws.writes() == []


def test_a_repeated_rollback_writes_nothing_more(world: Any) -> None:
    old, new = {"bert": A, "gone": A}, {"bert": B, "joined": B}
    world.create(old)
    world.roll_back_by_command("bert", C)
    world.roll_back_by_command("gone", C)
    world.update(old, new)
    world.undo(new, old)
    world.aws.calls.clear()
    world.undo(new, old)
    assert [name for name in world.aws.writes() if name in world.aws.parameters] == []
    assert world.records == {"bert": C, "gone": C}


def test_every_event_writes_a_record_once_at_most(world: Any) -> None:
    old, new = {f"m{n}": A for n in range(12)}, {f"m{n}": B for n in range(4, 16)}
    world.create(old)
    world.roll_back_by_command("m1", C)
    world.roll_back_by_command("m5", C)
    for act, sets in ((world.update, (old, new)), (world.undo, (new, old))):
        world.aws.calls.clear()
        act(*sets)
        written = [name for name in world.aws.writes() if name.startswith(RECORDS)]
        assert len(written) == len(set(written)) == 16


def test_a_rollback_of_a_release_change_is_not_held_up_by_a_missing_archive(world: Any) -> None:
    world.create({"bert": A})
    world.aws.objects.pop(("artifacts", f"{PREFIX}bert.{A}.tar.gz"))
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


def test_where_a_set_is_gone_the_notes_alone_tell_what_to_restore(world: Any) -> None:
    old, new = {"bert": A, "resnet": A}, {"bert": B, "resnet": A, "joined": B}
    world.create(old)
    world.roll_back_by_command("bert", C)
    world.update(old, new)
    events = world.properties(old), world.properties(new)
    world.aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    del world.aws.objects["staging", events[0]["ReleaseSetKey"]]
    world.send("Update", *events)
    assert world.records == {"bert": C, "resnet": A}


def test_a_record_tells_who_wrote_it_over_what_with_which_commit_and_for_which_platform(world: Any) -> None:
    world.publish({"bert": A})
    world.publish({"bert": B})
    first = world.properties({"bert": A}, commits={"bert": "1" * 40})
    second = world.properties({"bert": B}, commits={"bert": "2" * 40})
    world.send("Create", first)
    told = {"writer": "deployment", "platform": "24.09-t4"}
    assert world.note("bert").items() >= {**told, "before": None, "commit": "1" * 40}.items()
    world.send("Update", second, first)
    assert world.note("bert").items() >= {**told, "before": A, "commit": "2" * 40}.items()
    world.aws.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.send("Update", first, second)
    back = {"writer": "restored", "platform": "24.09-t4", "digest": A, "before": B, "commit": "1" * 40}
    assert world.note("bert") == back


def test_delete_removes_what_was_kept_of_removed_models(world: Any) -> None:
    world.create({"bert": A, "gone": A})
    world.roll_back_by_command("gone", C)
    world.update({"bert": A, "gone": A}, {"bert": A})
    assert world.others
    world.send("Delete", world.properties({"bert": A}))
    assert world.aws.parameters == {}


@dataclass
class Design:
    """What the records are to be, said as shortly as the design says it."""

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


@settings(max_examples=150)
@given(first=SETS, steps=st.lists(st.one_of(MOVES, DEPLOYMENTS), max_size=8))
def test_after_any_deployments_rollbacks_and_moves_the_records_are_what_the_design_says(
    first: Mapping[str, str], steps: Sequence[tuple[str, Any, Any]]
) -> None:
    world, design = World(), Design()
    world.create(first)
    design.deploy(first)
    for kind, what, more in steps:
        if kind in ("command", "hand"):
            design.move(what, more)
            if what in world.records:
                world.roll_back_by_command(what, more) if kind == "command" else world.aws.move_by_hand(
                    RECORDS + what, more
                )
        else:
            _deploy(world, design, outcome=kind, new=what, repeated=more)
        assert world.records == design.records, (kind, what, more)


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
