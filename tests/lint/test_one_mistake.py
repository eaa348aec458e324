"""A value that Triton's reader refuses is one finding, not one more of each rule that looks for the field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.models.folders import write
from tritonstack.lint.checks import lint_folder

MODEL = """\
name: "m"
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 100 }
model_warmup [ { name: "w" batch_size: 1
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } } ]
"""
ENSEMBLE = """\
name: "all"
platform: "ensemble"  # config
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [ { model_name: "m" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } ] }
"""
PROGRAM = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.Tensor("y", request.inputs()[0].as_numpy()) for request in requests]
        return [pb_utils.InferenceResponse([tensor]) for tensor in tensors]
"""
FRONT_END = {'platform: "ensemble"'}
"""What SageMaker's front end looks for as text: another rule's finding, too."""
WAYS = {
    "text without quotes": (r'(\w+: )"(\w+)"', r"\1\2"),
    "a number in quotes": (r"(\w+: )(-?\d+)", r'\1"\2"'),
    "a number of a list in quotes": (r"(\w+: \[ )(\d+)", r'\1"\2"'),
    "a member in quotes": (r"(\w+: )((?:TYPE|KIND)_\w+)", r'\1"\2"'),
    "a type of another name": (r"(data_type: )TYPE_FP32", r"\1FLOAT"),
    "true in quotes": (r"(\w+: )(true)", r'\1"\2"'),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["m", "all"])
def test_a_value_of_another_type_is_one_finding_with_what_to_write(name: str, way: str, tmp_path: Path) -> None:
    texts, (pattern, instead) = {"m": MODEL, "all": ENSEMBLE}, WAYS[way]
    places = [place for place in re.finditer(pattern, texts[name]) if place[0] not in FRONT_END]
    assert places or name == "all"
    for number, place in enumerate(places):
        changed = texts[name][: place.start()] + place.expand(instead) + texts[name][place.end() :]
        configs = {f"{each}/config.pbtxt": text for each, text in (texts | {name: changed}).items()}
        write(tmp_path / str(number), {**configs, "m/1/model.py": PROGRAM, "all/1/.keep": ""})
        found = lint_folder(tmp_path / str(number))
        assert [each.rule for each in found] == ["config"], f"{place[0]}: {[each.found for each in found]}"
        assert found[0].advice.startswith("write "), found[0]


def test_an_empty_value_is_not_reported_as_absent_too(tmp_path: Path) -> None:
    changed = MODEL[: MODEL.index("model_warmup")].replace("dims: [ 4 ]", 'dims: [ "four" ]')
    write(tmp_path, {"m/config.pbtxt": changed, "m/1/model.py": PROGRAM})
    assert [each.rule for each in lint_folder(tmp_path)] == ["config", "config"]
