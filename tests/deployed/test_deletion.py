"""Stacks are deleted kind by kind, followed to their end, and a second run goes on where the first one stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.deployed.account import Account, deployed, part
from tritonstack.deployed.deletion import Deleter, goes_on
from tritonstack.deployed.stacks import of_environment
from tritonstack.errors import WorkFailedError

PARTS = ("network", "serving-a", "observability", "serving-b")


class RecordedSteps:
    """Steps of a deletion, and their lines, as they are shown."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.lines: list[str] = []

    @contextmanager
    def step(self, name: str) -> Iterator[RecordedSteps]:
        self.steps.append(name)
        yield self

    def say(self, text: str) -> None:
        self.lines.append(text)


def delete(account: Account, shown: RecordedSteps | None = None) -> Deleter:
    deleter = Deleter(account, step=(shown or RecordedSteps()).step, poll_seconds=0)
    deleter.delete(of_environment(deployed(*account.rows), "dev"))
    return deleter


def test_each_kind_is_begun_when_the_one_before_it_is_gone_and_endpoints_go_at_once() -> None:
    account, shown = Account(rows=[part("dev", name) for name in PARTS], slow=3), RecordedSteps()
    deleter = delete(account, shown)
    assert account.deleted == ["dev-observability", "dev-serving-a", "dev-serving-b", "dev-network"]
    assert shown.steps == [f"delete {name}" for name in account.deleted]
    assert {each["StackStatus"] for each in account.rows} == {"DELETE_COMPLETE"}
    assert "DELETE_IN_PROGRESS dev-serving-a (AWS::CloudFormation::Stack)" in shown.lines
    assert deleter.running == []


def test_a_failed_deletion_names_its_resource_what_is_done_and_what_was_not_begun() -> None:
    account = Account(
        rows=[part("dev", name) for name in PARTS], failing={"dev-serving-a": "the subnet has dependencies"}
    )
    with pytest.raises(WorkFailedError) as caught:
        delete(account)
    text = str(caught.value)
    assert "AWS::EC2::Subnet subnet-1: the subnet has dependencies" in text
    assert "of old" not in text, "the reason of an earlier operation"
    assert "deleted: dev-observability, dev-serving-b\n" in text
    assert "not begun: dev-network" in text
    account.failing.clear()
    account.polls.clear()
    account.rows = [each for each in account.rows if each["StackStatus"] != "DELETE_COMPLETE"]
    delete(account)
    assert account.deleted[-2:] == ["dev-serving-a", "dev-network"]


def test_a_deletion_that_is_under_way_is_followed_and_one_that_ended_meanwhile_is_done() -> None:
    account = Account(rows=[part("dev", "serving-a", StackStatus="DELETE_IN_PROGRESS")])
    gone = deployed(part("dev", "network"))
    Deleter(account, step=RecordedSteps().step, poll_seconds=0).delete([*deployed(*account.rows), *gone])
    assert account.deleted == []
    assert account.rows[0]["StackStatus"] == "DELETE_COMPLETE"


def test_a_stack_that_is_being_deployed_again_is_not_deleted() -> None:
    account = Account(rows=[part("dev", "serving-a")])
    left = deployed(*account.rows)
    account.rows[0]["StackStatus"] = "UPDATE_IN_PROGRESS"
    with pytest.raises(WorkFailedError, match="UPDATE_IN_PROGRESS by now"):
        Deleter(account, step=RecordedSteps().step, poll_seconds=0).delete(left)
    assert account.deleted == []


def test_an_update_is_waited_for_to_its_end() -> None:
    account, shown = Account(rows=[part("dev", "serving-a", StackStatus="UPDATE_IN_PROGRESS")], slow=2), RecordedSteps()
    [stack] = deployed(*account.rows)
    deleter = Deleter(account, step=shown.step, poll_seconds=0)
    assert deleter.until_idle(stack, shown) == "UPDATE_COMPLETE"
    assert len(shown.lines) == 2
    account.rows.clear()
    assert deleter.until_idle(stack, shown) == "DELETE_COMPLETE"


def test_what_goes_on_after_an_interruption_is_named() -> None:
    account, shown = Account(rows=[part("dev", "serving-a"), part("dev", "network")]), RecordedSteps()
    deleter = Deleter(account, step=shown.step, poll_seconds=0)

    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    shown.say = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        deleter.delete(of_environment(deployed(*account.rows), "dev"))
    assert goes_on(deleter.running, what="deletes").startswith("CloudFormation deletes dev-serving-a")
    assert goes_on([], what="deletes") == ""
