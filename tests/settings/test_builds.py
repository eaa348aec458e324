"""``builds``: how an environment's models are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.settings.environment_file import write_environment
from tritonstack.archives import choice_of
from tritonstack.errors import InputError
from tritonstack.settings import load_environment


def test_models_are_full_and_pretrained_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    choice = choice_of(load_environment(write_environment(tmp_path)))
    assert (choice.size, choice.weights) == ("full", "pretrained")


def test_the_file_s_choice_is_taken(tmp_path: Path) -> None:
    path = write_environment(tmp_path, header="builds: {size: tiny, weights: random}")
    choice = choice_of(load_environment(path))
    assert (choice.size, choice.weights) == ("tiny", "random")


@pytest.mark.parametrize(
    ("given", "field"),
    [("{size: small}", "builds.size"), ("{weights: 1}", "builds.weights"), ("{seed: 0}", "builds.seed")],
)
def test_another_choice_is_refused_by_its_field(tmp_path: Path, given: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        load_environment(write_environment(tmp_path, header=f"builds: {given}"))
    assert [problem.field for problem in caught.value.problems] == [field]
