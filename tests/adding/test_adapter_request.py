"""Adapters for images and texts: the recipe's fields follow from the tensors, and a file is the sample request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.client.tokenizers_for_tests import write_tokenizer
from tests.models.folders import places_in
from tritonstack.adding.additions import Addition, AddOptions, TritonModel, config_text, parse_tensors
from tritonstack.adding.input_adapter import with_adapter
from tritonstack.adding.new_folder import write_folder
from tritonstack.errors import InputError
from tritonstack.lint.completion import completed_tensor

PASS_ON = """\
import numpy
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        shapes = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy().shape for request in requests]
        made = [pb_utils.Tensor("y", numpy.array([shape[-1:]], "int64")) for shape in shapes]
        return [pb_utils.InferenceResponse(output_tensors=[each]) for each in made]
"""


def addition(tmp_path: Path, *inputs: str) -> Addition:
    """A Python model that answers with the last length of its input ``x``."""
    (tmp_path / "model.py").write_text(PASS_ON)
    config = config_text(
        head='backend: "python"',
        max_batch_size=8,
        inputs=[completed_tensor(each, 8) for each in parse_tensors("--input", inputs)],
        outputs=[completed_tensor(each, 8) for each in parse_tensors("--output", ["y:INT64:N,1"])],
    )
    model = TritonModel(name="net", config=config, files={"1/model.py": tmp_path / "model.py"})
    return Addition(name="net", model="net", kind="python", description="A net.", models=(model,))


@cases("tensors, pairs, fields")
def test_of_an_encoder_every_input_is_filled_by_its_name(
    tmp_path: Path, tensors: list[str], pairs: bool, fields: dict[str, Any]
) -> None:
    options = AddOptions(
        text=tensors[0].split(":")[0], tokenizer=write_tokenizer(tmp_path / "t.json"), text_pairs=pairs
    )
    adapted = with_adapter(addition(tmp_path, *tensors), options)
    assert dict(adapted.adapters) == {"text": {"encoding": "tokens", "tokenizer": "tokenizer.json", **fields}}
    assert adapted.sample_file is not None
    assert adapted.sample_file[1].count(b"\n") == (2 if pairs else 1)


@cases("tensor, option, fields")
def test_the_adapter_follows_from_the_input(tmp_path: Path, tensor: str, option: str, fields: dict[str, Any]) -> None:
    tokenizer = write_tokenizer(tmp_path / "words.json") if option == "tokens" else None
    options = AddOptions(
        image="x" if option == "image" else None, text=None if option == "image" else "x", tokenizer=tokenizer
    )
    adapted = with_adapter(addition(tmp_path, tensor), options)
    assert dict(adapted.adapters) == {"image" if option == "image" else "text": fields}
    assert any("normalised" in line for line in adapted.unknown) == (fields["encoding"] == "pixels")
    if tensor.startswith(("x:FP16", "x:INT64")):  # one of each kind is run
        added = write_folder(adapted, places=places_in(tmp_path), target=None, report=lambda _: None)
        assert added.failure is None, str(added.failure)
        assert added.recorded is not None
        assert '"data": [3]' in added.recorded.file.read_text() or '"data": [6]' in added.recorded.file.read_text()


@pytest.mark.parametrize(
    ("tensors", "options", "found"),
    [
        (["x:FP32:N,3,8,9"], {"image": "x"}, "a square image"),
        (["x:INT32:N,3"], {"image": "x"}, "x, INT32"),
        (["x:FP32:N,3,8,8"], {"image": "y"}, "an input: x"),
        (["x:BYTES:N,1", "z:FP32:N,1"], {"text": "x"}, "the model needs z too"),
        (["x:INT32:N,6"], {"text": "x"}, "none, and x is INT32"),
        (["x:BYTES:N,1"], {"text": "x", "image": "x"}, "one adapter"),
        (["x:BYTES:N,1"], {"tokenizer": Path("t.json")}, "--text INPUT with it"),
        (["x:INT64:N,1"], {"text_pairs": True}, "--text INPUT with it"),
        (["x:BYTES:N,1"], {"text": "x", "text_pairs": True}, "which takes one text"),
    ],
)
def test_what_no_adapter_can_fill_is_refused(
    tmp_path: Path, tensors: list[str], options: dict[str, Any], found: str
) -> None:
    with pytest.raises(InputError, match=found):
        with_adapter(addition(tmp_path, *tensors), AddOptions(**options))
