"""The mutations themselves, and the linter on each of them against what the tables say of the server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.differential.linter import refusals
from tests.differential.repository import Mutation
from tests.differential.tables import ALL, ANSWERED
from tests.differential.tables.single import SINGLE


def _named(mutations: tuple[Mutation, ...]) -> list[object]:
    return [pytest.param(mutation, id=mutation.name) for mutation in mutations]


def test_there_are_many_mutations_of_both_kinds_each_with_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(one.name for one in ALL).items() if count > 1] == []
    assert sum(one.accepted for one in ANSWERED) >= 50
    assert sum(not one.accepted for one in ANSWERED) >= 100


def test_every_refused_mutation_says_by_which_rule_and_what_the_server_says() -> None:
    assert [one.name for one in ALL if not one.accepted and not one.server_says] == []
    assert [one.name for one in ALL if one.accepted and one.server_says] == []
    assert [one.name for one in SINGLE if one.accepted == bool(one.server_says)] == []


@pytest.mark.parametrize("mutation", _named(ALL))
def test_the_linter_refuses_what_the_server_does_not_load_and_nothing_else(mutation: Mutation, tmp_path: Path) -> None:
    found = refusals(mutation, tmp_path / "repository")
    assert mutation.rule in found if mutation.rule else found == frozenset()


@pytest.mark.parametrize("mutation", _named(SINGLE))
def test_the_linter_judges_a_single_models_repository_as_the_server_does(mutation: Mutation, tmp_path: Path) -> None:
    found = refusals(mutation, tmp_path / "repository", single_model=True)
    assert mutation.rule in found if mutation.rule else found == frozenset()
