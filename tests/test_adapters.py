"""Adapters and answers in a recipe: what fits together, and what is said of what does not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tritonstack.adapters import Adapters, Answers, ClassesAnswer, ImageAdapter, TextAdapter

PIXELS = {"input": "x", "encoding": "pixels", "crop": 224}
TOKENS = {"encoding": "tokens", "tokenizer": "tokenizer.json", "ids": "input_ids"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"input": "x", "encoding": "pixels"}, "encoding pixels with `crop`"),
        (PIXELS | {"resize": 200}, r"resize of at least crop \(224\); 200"),
        (PIXELS | {"std": [1, 0, 1]}, "std of three numbers above 0"),
        (PIXELS | {"std": [1, float("nan"), 1]}, "finite number"),
        (PIXELS | {"mean": [0.5]}, "mean"),
        (PIXELS | {"rescale": 0}, "greater than 0"),
        (PIXELS | {"layout": "chwn"}, "'nchw' or 'nhwc'"),
        ({"input": "x", "encoding": "png-bytes", "crop": 9}, "encoding png-bytes without `crop`, which only pixels"),
        ({"input": "x", "encoding": "file-bytes", "layout": "nhwc", "resize": 3}, "without `resize`, `layout`"),
        ({"encoding": "png-bytes"}, "input"),
        ({"input": "x", "encoding": "jpeg"}, "'png-bytes', 'file-bytes' or 'pixels'"),
    ],
)
def test_an_image_adapter_whose_fields_do_not_fit_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ImageAdapter.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"encoding": "utf8"}, "encoding utf8 with `input`"),
        (
            {"encoding": "utf8", "input": "x", "prefix": "a", "length": 3},
            "without `length`, `prefix`, which only tokens",
        ),
        ({"encoding": "tokens"}, "encoding tokens with `tokenizer`, `ids`"),
        (TOKENS | {"input": "x"}, "without `input`, which only utf8 has"),
        (TOKENS | {"mask": "input_ids"}, "different inputs for `ids` and `mask`"),
        (TOKENS | {"pad": "<pad>"}, "`pad` only with `length`"),
        (TOKENS | {"length": 0}, "greater than or equal to 1"),
        (TOKENS | {"tokenizer": "../tokenizer.json"}, "a path inside the model folder"),
    ],
)
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
