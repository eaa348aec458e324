"""The linter against the real Triton: both give the same verdict on each mutated repository, for the same reason.

The quick tests compare the linter with the server's recorded verdicts in the tables.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.differential.server import Server, ServerResponse, judged, start_single
from tests.differential.tables import ENDED, RUNNING, SINGLE, STUCK, WITH_RESPONSE, Mutation, refusals

SAMPLE = 16
FIXED = "0024"
"""The seed without one: a run of the suite must not depend on luck; the long test compares all."""
SEED = "TRITONSTACK_DIFFERENTIAL_SEED"
"""The environment variable that repeats a sample."""


ALL = [*WITH_RESPONSE, *STUCK]


def test_there_are_many_mutations_of_both_kinds_with_unique_names_and_reasons_for_refusals() -> None:
    assert [name for name, count in Counter(one.name for one in ALL).items() if count > 1] == []
    assert sum(one.accepted for one in WITH_RESPONSE) >= 50
    assert sum(not one.accepted for one in WITH_RESPONSE) >= 100
    assert [one.name for one in (*ALL, *SINGLE) if one.accepted == bool(one.server_says)] == []


@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.name)
def test_the_linter_refuses_what_the_server_does_not_load_and_nothing_else(mutation: Mutation, tmp_path: Path) -> None:
    found = refusals(mutation, tmp_path / "repository")
    assert mutation.rule in found if mutation.rule else found == frozenset()


@pytest.mark.parametrize("mutation", SINGLE, ids=lambda mutation: mutation.name)
def test_the_linter_judges_a_single_models_repository_as_the_server_does(mutation: Mutation, tmp_path: Path) -> None:
    found = refusals(mutation, tmp_path / "repository", multi_model=False)
    assert mutation.rule in found if mutation.rule else found == frozenset()


def _disagreement(mutation: Mutation, response: ServerResponse, found: frozenset[str]) -> str:
    """Both verdicts where they differ, or where the reasons differ; empty where they agree."""
    if response.accepted != mutation.accepted:
        return f"the table says accepted={mutation.accepted}, the server: {response.output[:1500]}"
    if response.accepted and found:
        return f"the server accepts it, the linter finds {sorted(found)}"
    if not response.accepted and mutation.rule not in found:
        return f"the server refuses it, the linter finds {sorted(found)} and not {mutation.rule}"
    if mutation.server_says not in response.output:
        return f"the server's messages lack {mutation.server_says!r}: {response.output[:1500]}"
    return ""


def _compare(mutations: Sequence[Mutation], folder: Path) -> list[str]:
    """Both verdicts on the mutations where they differ."""

    def judge(server: Server, mutation: Mutation) -> tuple[str, bool]:
        found = refusals(mutation, folder / "repositories" / mutation.name)
        try:
            disagreement = _disagreement(mutation, server.load(mutation), found)
        except (TimeoutError, ConnectionError) as error:
            return f"{mutation.name}: the server did not respond: {error!r}", False
        return disagreement and f"{mutation.name}: {disagreement}", True

    verdicts = judged(mutations, judge, folder)
    assert len(verdicts) == len(mutations)
    # What other archives left loaded on a server changes Triton's words: on a server of its own it has none but these.
    doubtful = [mutation for mutation, disagreement in zip(mutations, verdicts, strict=True) if disagreement]
    return [
        disagreement
        for one in doubtful
        for disagreement in judged([one], judge, folder / f"alone-{one.name}")
        if disagreement
    ]


def test_linter_and_triton_agree_on_a_seeded_sample(tmp_path: Path) -> None:
    seed = os.environ.get(SEED, FIXED)
    assert _compare(random.Random(seed).sample(WITH_RESPONSE, SAMPLE), tmp_path) == [], f"again: {SEED}={seed}"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_linter_and_triton_agree_on_every_mutation(tmp_path: Path) -> None:
    assert _compare(WITH_RESPONSE, tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("mutation", SINGLE, ids=lambda mutation: mutation.name)
def test_linter_and_triton_agree_where_the_model_is_named_at_the_start(mutation: Mutation, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    found = refusals(mutation, repository, multi_model=False)
    response = start_single(repository, tmp_path / "container", default_model=mutation.base.model)
    assert _disagreement(mutation, response, found) == ""


@pytest.mark.long
@pytest.mark.parametrize("mutation", STUCK, ids=lambda mutation: mutation.name)
def test_repositories_that_triton_never_responds_for_are_refused_by_the_linter_unloaded(
    mutation: Mutation, tmp_path: Path
) -> None:
    assert mutation.rule in refusals(mutation, tmp_path / "repository")
    with Server.running(tmp_path / "container") as server:
        response = server.load_or_give_up(mutation)
    assert not response.accepted
    assert any(disagreement in response.output for disagreement in (mutation.server_says, *ENDED))


@pytest.mark.long
def test_what_only_running_shows_is_refused_by_triton_alone(tmp_path: Path) -> None:
    assert [one.name for one in RUNNING if refusals(one, tmp_path / one.name)] == []
    with Server.running(tmp_path / "container") as server:
        responses = {one.name: (one.server_says, server.load(one)) for one in RUNNING}
    assert [
        name for name, (says, response) in responses.items() if response.accepted or says not in response.output
    ] == []
