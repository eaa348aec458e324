"""The tokenizer of models with random weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.errors import WorkFailedError
from tritonstack.exporters import tokenizer

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


@given(text=st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: "[" not in text))
def test_any_text_comes_back(text: str) -> None:
    made = tokenizer.byte_level(300, SPECIALS, template="[CLS] $A [SEP]")
    ids = made.encode(text).ids
    assert (ids[0], ids[-1], len(ids)) == (2, 3, len(text.encode()) + 2)
    assert max(ids) < 260
    assert made.decode(ids) == text


def test_a_vocabulary_without_room_for_every_byte_is_refused() -> None:
    with pytest.raises(WorkFailedError, match="vocab_size is 259; bytes and special tokens need 260"):
        tokenizer.byte_level(259, SPECIALS)


def test_the_file_is_the_same_every_time_and_loads(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tokenizer.save(tokenizer.byte_level(300, SPECIALS), tmp_path / name / "tokenizer.json")
    content = (tmp_path / "a/tokenizer.json").read_bytes()
    assert content == (tmp_path / "b/tokenizer.json").read_bytes()
    assert tokenizers.Tokenizer.from_file(str(tmp_path / "a/tokenizer.json")).token_to_id("[SEP]") == 3
