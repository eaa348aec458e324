"""Adapters and answers in a recipe: what fits together, and the messages where it does not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.cases import cases
from tritonstack.adapters import Adapters, Answers, ClassesAnswer, ImageAdapter, TextAdapter

PIXELS = {"input": "x", "encoding": "pixels", "crop": 224}
TOKENS = {"encoding": "tokens", "tokenizer": "tokenizer.json", "ids": "input_ids"}


@cases("fields, said")
def test_an_image_adapter_whose_fields_do_not_fit_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ImageAdapter.model_validate(fields)


@cases("fields, said")
def test_a_text_adapter_whose_fields_do_not_fit_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TextAdapter.model_validate(fields)


def test_answers_mean_one_thing() -> None:
    with pytest.raises(ValidationError, match="at most one of classes, text and embedding"):
        Answers.model_validate({"classes": {"output": "a"}, "embedding": {"output": "b"}})
    assert Answers.model_validate({"classes": {"output": "a"}}).kind == ClassesAnswer(output="a")
    assert Answers().kind is None


def test_an_adapter_names_the_inputs_and_files_that_it_needs() -> None:
    tokens = TextAdapter.model_validate(TOKENS | {"mask": "attention_mask"})
    assert (tokens.inputs, tokens.files) == (("input_ids", "attention_mask"), ("tokenizer.json",))
    both = Adapters.model_validate({"image": PIXELS, "text": TOKENS})
    assert {kind: (one.inputs, one.files) for kind, one in both.present.items()} == {
        "image": (("x",), ()),
        "text": (("input_ids",), ("tokenizer.json",)),
    }
    assert Adapters().present == {}
