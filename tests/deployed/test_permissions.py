"""The policies on the page of ``tritonstack leftovers`` allow what it calls, and its deletions no more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.deployed.account import Account, part
from tests.deployed.test_deletion import RecordedSteps
from tritonstack.aws.read_only import ReadOnlyCalls
from tritonstack.deployed.deletion import Deleter
from tritonstack.deployed.left import deployed_without_file
from tritonstack.deployed.stacks import of_environment
from tritonstack.paths import REPOSITORY

ACTION = re.compile(r'"([a-z]+:[A-Z][A-Za-z]+)"')


def actions(calls: Iterable[tuple[str, object]]) -> set[str]:
    return {name.replace(".", ":") for name, _ in calls}


def test_the_documented_policies_allow_the_list_and_the_deletion() -> None:
    page = (REPOSITORY / "docs/removing.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    listing = set(ACTION.findall((REPOSITORY / "docs/preflight.md").read_text(encoding="utf-8")))
    account = Account(rows=[part("dev", "serving-old"), part("dev", "network")], instances={"dev-old": 1})
    found = deployed_without_file(
        ReadOnlyCalls(account), "dev", region="us-east-1", why="gone", project=Path("/nowhere")
    )
    assert actions(account.calls) <= listing
    account.calls.clear()
    Deleter(account, step=RecordedSteps().step, poll_seconds=0).delete(of_environment(found.stacks, "dev"))
    assert actions(account.calls) - listing == set(ACTION.findall(block))
