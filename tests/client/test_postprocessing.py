"""Output tensors to classes, texts and vectors."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.client.tokenizers_for_tests import write_tokenizer
from tritonstack.adapters import ClassesAnswer, EmbeddingAnswer, TextAnswer
from tritonstack.client.body import Array
from tritonstack.client.postprocessing import Classes, Text, meanings
from tritonstack.errors import WorkFailedError

LABELS = ("cat", "dog", "cow")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n")
    return {"labels.txt": tmp_path / "labels.txt", "tokenizer.json": write_tokenizer(tmp_path / "tokenizer.json")}


def classes(array: Array, kind: ClassesAnswer, files: dict[str, Path], *, batched: bool = True) -> list[Classes]:
    """The meanings of output ``y``."""
    found = meanings(kind, {"y": array}, files, batched=batched)
    assert all(isinstance(one, Classes) for one in found)
    return [one for one in found if isinstance(one, Classes)]


def test_the_best_classes_come_first_with_their_names(files: dict[str, Path]) -> None:
    kind = ClassesAnswer(output="y", labels="labels.txt", top=2)
    found = classes(np.array([[0.25, 0.5, 0.125], [9, 1, 5]], np.float32), kind, files)
    assert [[(one.index, one.name, one.score) for one in row.best] for row in found] == [
        [(1, "dog", 0.5), (0, "cat", 0.25)],
        [(0, "cat", 9.0), (2, "cow", 5.0)],
    ]


def test_logits_become_probabilities_where_the_recipe_asks_for_it(files: dict[str, Path]) -> None:
    kind = ClassesAnswer(output="y", labels="labels.txt", softmax=True)
    (found,) = classes(np.log(np.array([[2, 1, 1]], np.float32)), kind, files)
    assert [one.name for one in found.best] == ["cat", "dog", "cow"]
    assert [one.score for one in found.best] == pytest.approx([0.5, 0.25, 0.25])


@pytest.mark.parametrize("count", [2, 4])
def test_more_or_fewer_names_than_scores_name_nothing(files: dict[str, Path], count: int) -> None:
    with pytest.raises(WorkFailedError, match=rf"labels\.txt names 3 classes, output y has {count}"):
        classes(np.zeros((1, count), np.float32), ClassesAnswer(output="y", labels="labels.txt"), files)


@pytest.mark.parametrize("kind", [ClassesAnswer(output="y", softmax=True), EmbeddingAnswer(output="y")])
def test_a_response_of_nan_has_no_meaning(kind: ClassesAnswer | EmbeddingAnswer) -> None:
    with pytest.raises(WorkFailedError, match="output y holds values that are not numbers"):
        meanings(kind, {"y": np.array([[1, math.nan]], np.float32)}, {}, batched=True)


def test_token_numbers_become_a_text_without_padding(files: dict[str, Path]) -> None:
    kind = TextAnswer(output="y", tokenizer="tokenizer.json")
    found = meanings(kind, {"y": np.array([[2, 4, 5, 3, 0, 0], [7, 3, 0, 0, 0, 0]], np.int32)}, files, batched=True)
    assert found == (Text(text="the house"), Text(text="wonderful"))
