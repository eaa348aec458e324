"""Every refusal of a configuration in Triton's core has a row that the real server refuses for it, or a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, TypeAdapter

from tests.differential.tables import SINGLE, STUCK, WITH_RESPONSE
from tritonstack.lint.registry import rule_ids

VALUE = "…"


class Refusal(BaseModel, extra="forbid", frozen=True):
    """One refusal: its words in the source, and the rows that show it with the rules that find it."""

    says: str
    rows: tuple[str, ...] = ()
    reason: str = ""  # why no row shows it
    rule: str = ""  # of a refusal that no row shows: the rule that finds it, if one does

    def matches(self, response: str) -> bool:
        """Whether a part of the server's response has these words, with any values, or is between two of them."""
        pieces = self.says.split(VALUE)
        is_whole = re.search(".*".join(re.escape(piece) for piece in pieces), response) is not None
        return is_whole or any(response in piece for piece in pieces)


_FILES = yaml.safe_load(Path(__file__).with_name("core_refusals.yaml").read_text(encoding="utf-8"))
REFUSALS = [
    pytest.param(refusal, id=f"{function}-{number}")
    for functions in TypeAdapter(dict[str, dict[str, list[Refusal]]]).validate_python(_FILES).values()
    for function, refusals in functions.items()
    for number, refusal in enumerate(refusals)
]
ROWS = {row.name: row for row in (*WITH_RESPONSE, *STUCK, *SINGLE)}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_of_the_core_is_shown_by_rows_that_a_rule_finds_or_has_a_reason(refusal: Refusal) -> None:
    assert bool(refusal.rows) != bool(refusal.reason)
    assert not refusal.rule or refusal.rule in rule_ids()
    for name in refusal.rows:
        row = ROWS[name]
        assert row.rule in rule_ids()
        assert refusal.matches(row.server_says), f"{name}: {row.server_says}"
