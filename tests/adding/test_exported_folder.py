"""Folders as Hugging Face's optimum exports them: one argument, and nothing else to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.client.tokenizers_for_tests import write_tokenizer
from tests.lint.onnx_files import node, write_graph
from tests.models.folders import places_in, write
from tritonstack.adding.additions import Addition, AddOptions
from tritonstack.adding.new_folder import write_folder
from tritonstack.adding.sources import read_source
from tritonstack.errors import InputError
from tritonstack.models.recipe import read_recipe

THREE = ("input_ids", "attention_mask", "token_type_ids")


def write_encoder(
    folder: Path,
    *,
    about: dict[str, Any],
    inputs: tuple[str, ...] = THREE,
    labels: int = 2,
    operator: str = "ReduceMax",
) -> Path:
    """An encoder whose logits are the largest values of its inputs, with its tokenizer and its configuration."""
    names = [{"name": name, "dtype": "INT64", "shape": ["batch", "length"]} for name in inputs]
    graph = {
        "inputs": names,
        "outputs": [{"name": "logits", "dtype": "INT64", "shape": ["batch", labels]}],
        "nodes": [
            *[node(operator, [each], [f"top_{each}"], axes=[1], keepdims=1) for each in inputs],
            node("Concat", [f"top_{each}" for each in inputs][:labels], ["logits"], axis=1),
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_graph(folder / "model.onnx", graph)
    write_tokenizer(folder / "tokenizer.json")
    (folder / "config.json").write_text(json.dumps(about))
    return folder


def added(folder: Path, root: Path, options: AddOptions | None = None) -> Addition:
    with read_source(folder, options or AddOptions(), places=places_in(root), report=lambda _: None) as (found,):
        return found


@cases("about, inputs, pairs, longest, answers")
def test_tokenizer_inputs_and_answers_are_taken_by_themselves(  # noqa: PLR0917  (a row of the table)
    tmp_path: Path, about: dict[str, Any], inputs: list[str], pairs: bool, longest: int | None, answers: dict[str, Any]
) -> None:
    folder = write_encoder(tmp_path / "My Encoder", about=about, inputs=tuple(inputs))
    addition = added(folder, tmp_path)
    assert addition.name == "my-encoder"
    text = dict(addition.adapters["text"])
    assert (text["ids"], text.get("mask"), text.get("types")) == (*inputs, *[None] * (3 - len(inputs)))
    assert (text.get("pair", False), text.get("longest")) == (pairs, longest)
    assert dict(addition.answers) == answers
    assert any("whether texts come in pairs" in line for line in addition.unknown)


def test_a_folder_is_added_with_its_labels_and_answers_its_sample(tmp_path: Path) -> None:
    about = {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "bad", "1": "good"}}
    folder = write_encoder(tmp_path / "mood", about=about)
    places = places_in(tmp_path)
    with read_source(folder, AddOptions(), places=places, report=lambda _: None) as (addition,):
        written = write_folder(addition, places=places, target=None, report=lambda _: None)
    assert written.failure is None, str(written.failure)
    assert (written.folder / "labels.txt").read_text() == "bad\ngood\n"
    recipe = read_recipe(written.folder)
    assert recipe.adapters.text is not None
    assert recipe.adapters.text.inputs == THREE
    assert recipe.client_files == ("labels.txt", "tokenizer.json")
    answer = json.loads((written.folder / "sample/answer.json").read_text())
    assert answer["outputs"][0]["data"][1] == 1  # of the mask


def test_of_several_graphs_the_whole_command_for_one_is_printed(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "mood", about={"model_type": "bert"})
    (folder / "onnx").mkdir()
    (folder / "onnx/model_quantized.onnx").write_bytes((folder / "model.onnx").read_bytes())
    with pytest.raises(InputError) as caught:
        added(folder, tmp_path)
    assert "2 ONNX files: model.onnx, onnx/model_quantized.onnx" in str(caught.value)
    line = f"tritonstack add {folder}/model.onnx --name mood --text input_ids --tokenizer {folder}/tokenizer.json"
    assert line in str(caught.value)


def test_parts_that_call_each_other_are_no_model_of_one_graph(tmp_path: Path) -> None:
    write(tmp_path / "t5", {"encoder_model.onnx": "", "decoder_model.onnx": "", "config.json": "{}"})
    with pytest.raises(InputError, match=r"a model in 2 parts: decoder_model\.onnx, encoder_model\.onnx"):
        added(tmp_path / "t5", tmp_path)


def test_without_a_tokenizer_the_folder_is_added_and_what_is_lacking_is_said(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "mood", about={"model_type": "bert"})
    (folder / "tokenizer.json").unlink()
    addition = added(folder, tmp_path)
    assert dict(addition.adapters) == {}
    assert any("no tokenizer.json beside the graph" in line for line in addition.unknown)


PROCESSOR = {
    "image_processor_type": "ViTImageProcessor", "size": {"height": 8, "width": 8}, "resample": 2,
    "rescale_factor": 1 / 255, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
}  # fmt: skip


def test_a_folder_of_an_image_classifier_takes_files_and_names_its_classes(tmp_path: Path) -> None:
    """Its graph leaves every size free, as optimum exports it."""
    folder = tmp_path / "birds"
    folder.mkdir()
    graph = {
        "inputs": [{"name": "pixel_values", "dtype": "FP32", "shape": ["batch", "channels", "height", "width"]}],
        "outputs": [{"name": "logits", "dtype": "FP32", "shape": ["batch", 3]}],
        "nodes": [node("ReduceMean", ["pixel_values"], ["logits"], axes=[2, 3], keepdims=0)],
    }
    write_graph(folder / "model.onnx", graph)
    about = {
        "architectures": ["ResNetForImageClassification"], "id2label": {"0": "gull", "1": "heron", "2": "wren"},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(about))
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    places = places_in(tmp_path)
    with read_source(folder, AddOptions(), places=places, report=lambda _: None) as (addition,):
        written = write_folder(addition, places=places, target=None, report=lambda _: None)
    assert written.failure is None, str(written.failure)
    assert '"pixel_values" data_type: TYPE_FP32 dims: [ 3, -1, -1 ]' in addition.addressed.config
    recipe = read_recipe(written.folder)
    assert recipe.adapters.image is not None
    assert (recipe.adapters.image.input, recipe.adapters.image.crop) == ("pixel_values", 8)
    assert recipe.sample.request == "sample/image.png"
    assert (written.folder / "labels.txt").read_text().split() == ["gull", "heron", "wren"]
    answer = json.loads((written.folder / "sample/answer.json").read_text())
    assert answer["outputs"][0]["shape"] == [1, 3]
