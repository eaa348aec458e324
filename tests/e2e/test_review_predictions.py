"""Every change of the corpus is deployed on the local AWS: what a review says of each resource is what happens.

The change is taken back after that, and what a review says of that must be what happens, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.e2e.predictions import Account
from tests.review.corpus.case import case, cases
from tests.review.corpus.made import Made
from tests.tritonstack_local.emulator.running import Emulator

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PLAIN = ("initial count",)
"""In ``make test``: a configuration that is replaced, and an endpoint that changes in place."""


class Accounts:
    """An account for each base, made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._of: dict[str, Account] = {}
        self.made = Made(folder / "made")

    def of(self, base: str) -> Account:
        """The account in which a base is deployed; another one where something was left behind in it."""
        if base in self._of and self._of[base].left_behind:
            self._of.pop(base).aws.stop()
        if base not in self._of:
            folder = Path(mkdtemp(dir=self._folder))
            self._of[base] = Account(Emulator(folder, TRITONSTACK_FLEETS="none").wait_ready(), self.made)
        return self._of[base]

    def stop(self) -> None:
        """End every emulator."""
        for each in self._of.values():
            each.aws.stop()


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    accounts = Accounts(tmp_path_factory.mktemp("accounts"))
    yield accounts
    accounts.stop()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each.name, marks=[] if each.name in PLAIN else [pytest.mark.long])
        for each in sorted(cases(), key=lambda each: each.base)
        if each.not_deployed is None
    ],
)
def test_what_a_review_says_is_what_happens_there_and_back(accounts: Accounts, name: str) -> None:
    each = case(name)
    account = accounts.of(each.base)
    before, after = accounts.made.before(each), accounts.made.after(each)
    assert account.move(before) == []
    assert account.move(after) == []
    if each.not_back is None:
        assert account.move(before) == []
