"""Texts to tokens and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.tokenizers_for_tests import WORDS, write_tokenizer
from tritonstack.adapters import TextAdapter
from tritonstack.client.preprocessing import text_from, tokens
from tritonstack.errors import InputError, WorkFailedError


def adapter(**fields: Any) -> TextAdapter:
    """An adapter with ids and mask."""
    return TextAdapter.model_validate(
        {"encoding": "tokens", "tokenizer": "t.json", "ids": "ids", "mask": "mask", **fields}
    )


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer's file."""
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer") / "tokenizer.json")


def columns(text: str, one: TextAdapter, tokenizer: Path) -> dict[str, list[int]]:
    """The inputs as lists."""
    return {name: array.tolist() for name, array in tokens(text, one, tokenizer).items()}


def test_a_text_gets_as_many_tokens_as_it_has_whatever_the_tokenizer_s_file_says(tokenizer: Path) -> None:
    assert columns("the house is wonderful\n", adapter(), tokenizer) == {
        "ids": [2, 4, 5, 6, 7, 3],
        "mask": [1, 1, 1, 1, 1, 1],
    }


def test_a_short_text_is_padded_and_the_mask_says_so(tokenizer: Path) -> None:
    assert columns("the house", adapter(length=6), tokenizer) == {"ids": [2, 4, 5, 3, 0, 0], "mask": [1, 1, 1, 1, 0, 0]}


def test_a_long_text_is_cut_and_still_ends_as_the_model_expects(tokenizer: Path) -> None:
    assert columns("the house is wonderful", adapter(length=4), tokenizer)["ids"] == [2, 4, 5, 3]


def test_a_prefix_comes_first_and_a_mask_only_where_the_model_has_one(tokenizer: Path) -> None:
    assert columns("house", adapter(prefix="say: ", mask=None), tokenizer) == {"ids": [2, 8, 9, 5, 3]}


def test_the_pad_token_is_the_recipe_s_else_the_file_s_else_a_usual_one(tmp_path: Path) -> None:
    own = write_tokenizer(tmp_path / "own.json", own_padding="[SEP]")
    assert columns("the", adapter(length=4), own)["ids"] == [2, 4, 3, 3]
    assert columns("the", adapter(length=4, pad="[UNK]"), own)["ids"] == [2, 4, 3, 1]
    assert columns("the", adapter(length=4), write_tokenizer(tmp_path / "t5.json", pad="<pad>"))["ids"] == [2, 4, 3, 0]
    with pytest.raises(WorkFailedError, match=r"no token \[PAD\] or <pad> to pad with"):
        tokens("the", adapter(length=4), write_tokenizer(tmp_path / "none.json", pad="nothing"))
    with pytest.raises(WorkFailedError, match="no token <fill> to pad with"):
        tokens("the", adapter(length=4, pad="<fill>"), own)


@given(words=st.lists(st.sampled_from(WORDS[4:]), max_size=12), length=st.integers(2, 16))
def test_ids_and_mask_have_the_length_that_the_model_takes(tokenizer: Path, words: list[str], length: int) -> None:
    found = tokens(" ".join(words), adapter(length=length), tokenizer)
    assert {name: array.shape for name, array in found.items()} == {"ids": (length,), "mask": (length,)}
    used = int(found["mask"].sum())
    assert used == min(length, len(words) + 2)
    assert not found["ids"][used:].any(), "what is not masked in is padding"


@given(words=st.lists(st.sampled_from(WORDS[4:9]), min_size=1, max_size=12))
def test_tokens_read_back_as_the_text(tokenizer: Path, words: list[str]) -> None:
    text = " ".join(words)
    assert text_from(tokens(text, adapter(length=16), tokenizer)["ids"].tolist(), tokenizer) == text


def test_a_number_that_can_be_no_token_makes_no_text(tokenizer: Path) -> None:
    for number in (-1, 2**40):
        with pytest.raises(WorkFailedError, match=f"numbers from .*{number}.*: they are no tokens"):
            text_from([0, number] if number > 0 else [number, 0], tokenizer)


def test_room_for_tokens_that_the_tokenizer_does_not_make_stands_for_nothing(tokenizer: Path) -> None:
    assert text_from([2, 4, len(WORDS), 999, 5, 3], tokenizer) == "the house"


def test_an_empty_text_without_special_tokens_has_nothing_to_send(tmp_path: Path) -> None:
    path = tmp_path / "bare.json"
    text = write_tokenizer(path).read_text()
    start, end = text.index('"post_processor"'), text.index('"decoder"')
    path.write_text(text[:start] + '"post_processor": null, ' + text[end:])
    for one in (adapter(), adapter(length=4)):
        with pytest.raises(InputError, match="an empty text"):
            tokens("\n", one, path)


def test_a_tokenizer_s_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(WorkFailedError, match=r"t\.json: no tokenizer that can be read"):
        tokens("the", adapter(), tmp_path / "t.json")


def test_a_tokenizer_that_has_changed_is_read_again(tmp_path: Path) -> None:
    path = write_tokenizer(tmp_path / "t.json")
    assert columns("the", adapter(length=4), path)["ids"] == [2, 4, 3, 0]
    write_tokenizer(path, own_padding="[SEP]")
    assert columns("the", adapter(length=4), path)["ids"] == [2, 4, 3, 3]
