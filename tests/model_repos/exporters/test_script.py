"""The command line of export scripts, their report, and the sample's response."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from _exporters import cases, script, tokenizer
from _exporters.script import ExportError

OPTIONS = {
    "size": {"layers": 1},
    "weights": "random",
    "seed": 7,
    "source": None,
    "graph": {
        "opset": 18,
        "inputs": [{"name": "ids", "dtype": "INT64", "shape": ["batch", "length"]}],
        "outputs": [{"name": "y", "dtype": "FP32", "shape": ["batch", 4]}],
    },
    "engine": None,
    "max_batch_size": 8,
    "tolerance": 1e-4,
    "options": {"largest": 2},
    "archive": "model-a",
}


def parsed(folder: Path, options: object, *more: str) -> script.Arguments:
    words = ["--target", str(folder), "--options", json.dumps(options), "--report", str(folder / "r.json"), *more]
    return script.parse(words)


@pytest.mark.parametrize(
    ("largest", "most", "proved"), [(None, 8, (1, 8)), (2, 8, (1, 2)), (16, 8, (1, 8)), (1, 8, (1,)), (None, 0, (1,))]
)
def test_a_recipe_bounds_the_batches_that_are_proved(
    tmp_path: Path, largest: int | None, most: int, proved: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    options = parsed(tmp_path, {**OPTIONS, "max_batch_size": most, "largest_batch": largest}).options
    assert cases.batches(options) == proved
    bounded = proved[-1] < most
    assert ("proved up to batch" in capsys.readouterr().out) is bounded


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weights": "trained"}, "allowed: pretrained, random"),
        ({"max_batch_size": None}, "TypeError"),
        ({"graph": {"opset": 18, "inputs": [{"name": "x", "dtype": "FP31", "shape": [1]}], "outputs": []}}, "FP31"),
    ],
)
def test_options_that_are_not_as_agreed_are_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ExportError, match=said):
        parsed(tmp_path, {**OPTIONS, **changed})


@given(values=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_answers_give_every_float_back_exactly(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    path = tmp_path_factory.mktemp("answer") / "sample" / "answer.json"
    array = np.array([values], np.float32)
    script.write_answer(path, {"y": array, "n": np.array([[3]], np.int64)})
    wide, number = json.loads(path.read_text())["outputs"]
    assert np.array_equal(np.array(wide["data"], np.float32).reshape(wide["shape"]), array)
    assert number == {"name": "n", "datatype": "INT64", "shape": [1, 1], "data": [3]}


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_answer_without_numbers_is_refused_by_name(tmp_path: Path, value: float) -> None:
    with pytest.raises(ExportError, match="tensor y: the source framework returns NaN or infinity for the sample"):
        script.write_answer(tmp_path / "answer.json", {"y": np.array([value], np.float32)})
    assert list(tmp_path.iterdir()) == []


SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


@given(text=st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: "[" not in text))
def test_any_text_comes_back(text: str) -> None:
    made = tokenizer.byte_level(300, SPECIALS, template="[CLS] $A [SEP]")
    ids = made.encode(text).ids
    assert (ids[0], ids[-1], len(ids)) == (2, 3, len(text.encode()) + 2)
    assert max(ids) < 260
    assert made.decode(ids) == text


def test_a_vocabulary_without_room_for_every_byte_is_refused() -> None:
    with pytest.raises(ExportError, match="vocab_size is 259; bytes and special tokens need 260"):
        tokenizer.byte_level(259, SPECIALS)


def test_the_file_is_the_same_every_time_and_loads(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tokenizer.save(tokenizer.byte_level(300, SPECIALS), tmp_path / name / "tokenizer.json")
    content = (tmp_path / "a/tokenizer.json").read_bytes()
    assert content == (tmp_path / "b/tokenizer.json").read_bytes()
    assert tokenizers.Tokenizer.from_file(str(tmp_path / "a/tokenizer.json")).token_to_id("[SEP]") == 3
