"""Records, JSON lines and CSV as arrays of a batch, and batches of texts and images."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.cases import cases
from tests.client.tokenizers_for_tests import write_tokenizer
from tritonstack.adapters import Adapters
from tritonstack.client.body import Array
from tritonstack.client.inputs import InputFile, adapted_inputs, read_inputs
from tritonstack.client.manifest import TensorSpec, TensorTable
from tritonstack.errors import InputError


def table(
    *inputs: tuple[str, str, tuple[int, ...]], max_batch_size: int = 8, optional: Sequence[str] = (), **adapters: Any
) -> TensorTable:
    return TensorTable(
        inputs=tuple(TensorSpec(name=name, datatype=datatype, shape=shape) for name, datatype, shape in inputs),
        outputs=(),
        max_batch_size=max_batch_size,
        optional_inputs=frozenset(optional),
        adapters=Adapters.model_validate(adapters),
    )


MODELS = {
    "people": table(("age", "FP32", (-1, 1)), ("city", "BYTES", (-1, 1)), ("new", "BOOL", (-1, 1)), optional=("new",)),
    "pixels": table(("pixels", "FP32", (-1, 4))),
    "walk": table(("steps", "INT64", (-1, -1)), max_batch_size=0),
}


def no_files(_table: TensorTable, names: Sequence[str]) -> dict[str, Path]:
    assert not names
    return {}


def read(data: str, model: TensorTable | None) -> dict[str, Array]:
    return read_inputs([], model, data=[("--data", data.encode())], fetch=no_files)


def plain(arrays: dict[str, Array]) -> dict[str, Any]:
    """Arrays as lists, bytes as text."""
    return {
        name: np.vectorize(bytes.decode, otypes=[object])(array).tolist() if array.dtype == object else array.tolist()
        for name, array in arrays.items()
    }


@cases("data, model, arrays")
def test_records_are_the_rows_of_a_batch(data: str, model: str, arrays: dict[str, Any]) -> None:
    found = read(data, MODELS[model])
    assert plain(found) == arrays
    assert MODELS[model].problems(found) == []


@cases("data, model, said")
def test_each_fault_of_records_names_the_record_the_input_and_what_it_takes(
    data: str, model: str, said: list[list[str]]
) -> None:
    with pytest.raises(InputError) as caught:
        read(data, MODELS[model])
    assert [[problem.field, problem.found] for problem in caught.value.problems] == said
    assert {problem.file for problem in caught.value.problems} == {"--data"}


def test_without_a_manifest_a_kserve_request_is_taken_and_records_are_refused() -> None:
    request = {"inputs": [{"name": "x", "shape": [1], "datatype": "INT8", "data": [1]}]}
    assert plain(read(json.dumps(request), None)) == {"x": [1]}
    with pytest.raises(InputError, match="manifest cannot be read"):
        read('{"x": 1}', None)


@cases("content, model, arrays")
def test_csv_rows_are_records_of_a_column_each_or_of_one_input(
    tmp_path: Path, content: str, model: str, arrays: dict[str, Any]
) -> None:
    (tmp_path / "rows.csv").write_text(content)
    found = read_inputs([InputFile(path=tmp_path / "rows.csv")], MODELS[model], fetch=no_files)
    assert plain(found) == arrays


@cases("content, model, said")
def test_each_fault_of_csv_names_the_row_and_the_column(
    tmp_path: Path, content: str, model: str, said: list[list[str]]
) -> None:
    (tmp_path / "rows.csv").write_text(content)
    with pytest.raises(InputError) as caught:
        read_inputs([InputFile(path=tmp_path / "rows.csv")], MODELS[model], fetch=no_files)
    assert [[problem.field, problem.found] for problem in caught.value.problems] == said


TOKENS = {"encoding": "tokens", "tokenizer": "t.json", "ids": "ids", "mask": "mask"}


def encoder(*, max_batch_size: int = 8, **adapter: Any) -> TensorTable:
    inputs = [(name, "INT64", (-1, -1)) for name in ("ids", "mask") if (TOKENS | adapter).get(name)]
    return table(*inputs, max_batch_size=max_batch_size, text=TOKENS | adapter)


@pytest.fixture
def fetch(tmp_path: Path) -> Any:
    path = write_tokenizer(tmp_path / "t.json")
    return lambda _table, names: dict.fromkeys(names, path)


def test_texts_are_a_batch_padded_to_the_longest(fetch: Any) -> None:
    arrays = adapted_inputs(encoder(), text=["the house", "the house is wonderful"], fetch=fetch)
    assert arrays["ids"].tolist() == [[2, 4, 5, 3, 0, 0], [2, 4, 5, 6, 7, 3]]
    assert arrays["mask"].tolist() == [[1, 1, 1, 1, 0, 0], [1] * 6]
    alone = adapted_inputs(encoder(), text="the house", fetch=fetch)
    assert alone["ids"].tolist() == [[2, 4, 5, 3]]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (encoder(max_batch_size=0), "2 texts, and the model takes no batches"),
        (encoder(mask=None), "texts of 4 and 6 tokens, and adapters.text has no mask"),
    ],
)
def test_several_texts_that_cannot_be_a_batch_are_refused(model: TensorTable, said: str, fetch: Any) -> None:
    with pytest.raises(InputError, match=said):
        adapted_inputs(model, text=["the house", "the house is wonderful"], fetch=fetch)


def test_images_of_files_and_of_options_are_one_batch_in_their_order(tmp_path: Path) -> None:
    model = table(("image", "BYTES", (-1, 1)), image={"input": "image", "encoding": "png-bytes"})
    for side in (1, 2, 3):
        Image.new("RGB", (side, 1)).save(tmp_path / f"{side}.png")
    arrays = read_inputs(
        [InputFile(path=tmp_path / "1.png"), InputFile(path=tmp_path / "2.png")],
        model,
        images=[tmp_path / "3.png"],
        fetch=no_files,
    )
    assert [Image.open(io.BytesIO(each)).width for each in arrays["image"].ravel()] == [1, 2, 3]
    (tmp_path / "3.png").write_bytes(b"none")
    with pytest.raises(InputError, match=r"3\.png"):
        adapted_inputs(model, image=[tmp_path / "1.png", tmp_path / "3.png"], fetch=no_files)


@cases("kind, inputs, present, lines")
def test_a_missing_adapter_prints_the_lines_to_add_to_the_recipe(
    kind: str, inputs: list[Any], present: dict[str, Any], lines: list[str]
) -> None:
    model = table(*((name, datatype, tuple(shape)) for name, datatype, shape in inputs), **present)
    given: dict[str, Any] = {kind: b"content" if kind == "image" else "a text"}
    with pytest.raises(InputError) as caught:
        adapted_inputs(model, **given, fetch=no_files)
    (problem,) = caught.value.problems
    advice, _, printed = problem.advice.partition("\n")
    assert advice == "add these lines to model_repos/<model>/recipe.yaml, deploy, then the same request again:"
    assert printed.splitlines() == lines
    pasted = yaml.safe_load("adapters:\n" * bool(present) + printed)["adapters"]
    assert Adapters.model_validate(pasted).of("image" if kind == "image" else "text") is not None


def test_a_model_without_an_input_for_it_says_what_such_an_input_is() -> None:
    with pytest.raises(InputError) as caught:
        adapted_inputs(MODELS["pixels"], image=b"content", fetch=no_files)
    (problem,) = caught.value.problems
    assert problem.found == "an image, for which the model has no input: pixels FP32 [-1, 4]"
    assert "pixels of a square image" in problem.allowed
    assert problem.advice == ""
