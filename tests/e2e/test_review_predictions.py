"""Changes of the corpus deployed on the local AWS in chains: what a review predicts of each resource happens.

Each change is deployed over the one before it, so that every step also takes the last one back; changes whose
resources end alike stand for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.e2e.predictions import Account
from tests.review.corpus.case import Edit, Side, case
from tests.review.corpus.made import Made
from tests.tritonstack_local.emulator.running import Emulator

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]
CHAINS = {
    "single": (
        "single-model becomes multi-model",
        "endpoint added",
        "name of the endpoint",
        "key brought",
        "builds on",
        "guardrail at work",
        "model with a name of the template's choice",
    ),
    "scaled": (
        "instance type",
        "role path",
        "scaling maximum",
        "scaling off",
        "alarms off",
    ),
    "walled": (
        "network on",
        "VPC joined in place of the one that is made",
        "zone added",
        "range of the VPC",
        "retention of buckets off",
        "VPC switched at once",
    ),
}


class Accounts:
    """An account for each base, made when it is first used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._of: dict[str, Account] = {}
        self.made = Made(folder / "made")

    def of(self, base: str) -> Account:
        """The account of a base; a new one has the base deployed."""
        if base not in self._of:
            folder = Path(mkdtemp(dir=self._folder))
            self._of[base] = Account(
                Emulator(folder, TRITONSTACK_FLEETS="none", TRITONSTACK_IAM="on").wait_ready(), self.made
            )
            assert self._of[base].move(self.made.assembly(Side(base=base, edit=Edit()))) == []
        return self._of[base]

    def stop(self) -> None:
        for each in self._of.values():
            each.aws.stop()


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    accounts = Accounts(tmp_path_factory.mktemp("accounts"))
    yield accounts
    accounts.stop()


@pytest.mark.parametrize("name", [name for chain in CHAINS.values() for name in chain])
def test_what_a_review_predicts_is_what_happens(accounts: Accounts, name: str) -> None:
    each = case(name)
    account = accounts.of(each.after.base)
    if each.before.edit != Edit():
        assert account.move(accounts.made.assembly(each.before)) == []
    assert account.move(accounts.made.assembly(each.after)) == []
