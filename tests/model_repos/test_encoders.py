"""The language encoders: what their recipes and configurations promise each other, and what their exports give."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonstack.adapters import TextAdapter
from tritonstack.catalogue import model_formats
from tritonstack.client.preprocessing import to_arrays
from tritonstack.errors import WorkFailedError
from tritonstack.models.exporting import script_options
from tritonstack.models.lint.onnx_graph import read_graph
from tritonstack.models.model_config import ModelConfig, Node, Tensor, read_config
from tritonstack.models.programs import REPOSITORY, run_script
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of

FOLDERS = {name: REPOSITORY / "model_repos" / name for name in ("bert-large", "bert-tensorrt", "roberta-large-onnx")}
EXPORTS = ("bert-large-pytorch", "bert-large-tensorrt", "bert-tensorrt-0", "roberta-large-onnx")
"""One archive of each export; the others share theirs."""

PROVED_BATCH = 2
"""Instead of the models' 16 to 128, which a build proves: it keeps these tests short."""

needs_torch = pytest.mark.skipif(
    not (REPOSITORY / ".envs/torch/bin/python").exists(),
    reason="exports run in .envs/torch, and it is not there: python3 scripts/setup.py torch",
)

MAKE_HUB_FOLDER = """\
import sys, torch
from pathlib import Path
from transformers import BertConfig, BertForPreTraining, RobertaConfig, RobertaForMaskedLM
from tritonstack.exporters import encoders, tokenizer

architecture, family, folder = sys.argv[1], getattr(encoders, sys.argv[2]), Path(sys.argv[3])
torch.manual_seed(7)
pairs = (BertConfig, BertForPreTraining), (RobertaConfig, RobertaForMaskedLM)
config, model = next(pair for pair in pairs if pair[1].__name__ == architecture)
sizes = dict(num_hidden_layers=1, intermediate_size=64, vocab_size=300, max_position_embeddings=514)
width = dict(hidden_size=int(sys.argv[4]), num_attention_heads=4)
model(config(**sizes, **width)).save_pretrained(folder)
tokenizer.save(tokenizer.byte_level(300, family.specials, template=family.template), folder / "tokenizer.json")
"""

MEANS = """\
import sys
import numpy as np
import onnxruntime
from pathlib import Path

session = onnxruntime.InferenceSession(str(next(Path(sys.argv[1]).rglob("model.onnx"))))
worst = 0.0
for length, kept in ((16, 11), (200, 200)):
    ids = np.arange(2 * length).reshape(2, length) % 500
    mask = np.stack([np.arange(length) < kept, np.ones(length)]).astype(np.int64)
    hidden, pooled = session.run(None, {"input_ids": ids, "attention_mask": mask})
    wanted = np.stack([hidden[0, :kept].mean(0), hidden[1].mean(0)])
    worst = max(worst, float(np.abs(pooled - wanted).max()))
print(worst)
"""


@dataclass(frozen=True, kw_only=True)
class Export:
    """What an export script wrote."""

    folder: Path
    report: dict[str, Any]

    def tensors(self, name: str) -> dict[str, dict[str, Any]]:
        """The tensors of a sample file, by name."""
        content = json.loads((self.folder / "sample" / name).read_text())
        return {tensor["name"]: tensor for tensor in content["inputs" if "request" in name else "outputs"]}


def _sources(choice: BuildChoice | None = None) -> dict[str, ArchiveSource]:
    return {source.name: source for folder in FOLDERS.values() for source in archives_of(folder, choice)}


def _config(source: ArchiveSource) -> ModelConfig:
    """The configuration that the archive will have."""
    return next(read_config(model.config) for model in source.own_models() if model.name == source.model)


def _export(source: ArchiveSource, folder: Path) -> Export:
    (export,) = source.recipe.exports
    options = script_options(source, export) | {"max_batch_size": PROVED_BATCH}
    arguments = [
        str(source.folder / export.script),
        *("--target", str(folder), "--options", json.dumps(options), "--report", str(folder / "report.json")),
    ]
    run_script(
        environment=export.environment,
        arguments=arguments,
        folder=folder,
        what=f"export of {source.name}",
        report=print,
        with_library=True,
    )
    return Export(folder=folder, report=json.loads((folder / "report.json").read_text()))


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Export]:
    """Exports by archive, each made when it is first asked for."""
    sources = _sources(BuildChoice(size="tiny", weights="random"))

    class Made(dict[str, Export]):
        def __missing__(self, name: str) -> Export:
            self[name] = _export(sources[name], tmp_path_factory.mktemp(name))
            return self[name]

    return Made()


def test_eight_variants_and_five_copies_are_archives() -> None:
    variants = [f"{kind}{rest}" for kind in ("pytorch", "tensorrt") for rest in ("", "-db", "-ig", "-db-ig")]
    copies = [f"bert-tensorrt-{number}" for number in range(5)]
    assert list(_sources()) == [*(f"bert-large-{variant}" for variant in variants), *copies, "roberta-large-onnx"]


@pytest.mark.parametrize("name", _sources())
def test_a_configuration_is_of_the_archives_name_and_free_of_complaints(name: str) -> None:
    source = _sources()[name]
    config = _config(source)
    assert config.complaints == ()
    assert config.name == source.model
    assert source.model == (name if source.copy is not None else source.folder.name)


@pytest.mark.parametrize("name", _sources())
def test_tensors_are_those_of_the_exported_graph(name: str) -> None:
    source = _sources()[name]
    graph = source.recipe.exports[0].graph
    if graph is None:
        assert source.recipe.kind == "pytorch"  # TorchScript has neither names nor shapes
        return
    config = _config(source)
    for wanted, tensors in ((graph.inputs, config.inputs), (graph.outputs, config.outputs)):
        assert [(one.name, one.dtype) for one in wanted] == [(one.name, one.data_type) for one in tensors]
        for one, tensor in zip(wanted, tensors, strict=True):
            fixed = [(axis, length) for axis, length in zip(one.shape[1:], tensor.dims, strict=True)]
            assert all(axis == length for axis, length in fixed if isinstance(axis, int))


@pytest.mark.parametrize("name", _sources())
def test_outputs_are_as_wide_as_the_model(name: str) -> None:
    source = _sources()[name]
    graph, options = source.recipe.exports[0].graph, source.recipe.exports[0].options
    width, length = options["config"]["hidden_size"], options["length"]
    if graph is not None and isinstance(graph.outputs[0].shape[1], str):
        length = -1  # the backend refuses an output that is narrower than the graph's
    hidden, pooled = _config(source).outputs
    assert (hidden.dims, pooled.dims, pooled.name) == ((length, width), (width,), "pooled_output")
    assert width == (768 if name.startswith("bert-tensorrt") else 1024)


@pytest.mark.parametrize("name", [name for name, source in _sources().items() if source.recipe.kind == "tensorrt"])
def test_an_engines_shapes_are_what_the_configuration_asks_for(name: str) -> None:
    source = _sources()[name]
    config, engine = _config(source), source.recipe.engine
    assert engine is not None
    assert set(engine.shapes) == {tensor.name for tensor in config.inputs}
    for tensor in config.inputs:
        shapes = engine.shapes[tensor.name]
        assert shapes.max == (config.max_batch_size, *tensor.dims)
        assert shapes.min == (1, *tensor.dims)
        assert shapes.opt == (16, *tensor.dims)
        assert tensor.data_type == "INT32"
    assert source.recipe.dependency == "engine"


@pytest.mark.parametrize("name", [name for name, source in _sources().items() if source.recipe.kind == "tensorrt"])
def test_an_engine_is_of_operators_that_every_releases_tensorrt_reads(name: str) -> None:
    graph = _sources()[name].recipe.exports[0].graph
    assert graph is not None
    assert graph.opset <= 17  # above it a reduction's axes are an input, which TensorRT before 10 takes for all axes


@needs_torch
@pytest.mark.parametrize("name", [name for name in EXPORTS if not name.startswith("bert-large-pytorch")])
def test_an_exported_graph_is_of_the_recipes_operator_set(exports: dict[str, Export], name: str) -> None:
    graph = _sources()[name].recipe.exports[0].graph
    (file,) = exports[name].folder.rglob("model.onnx")
    assert graph is not None
    assert read_graph(file).opset == graph.opset


@pytest.mark.parametrize("name", [name for name in _sources() if name.startswith("bert-large")])
def test_a_variant_of_bert_large_is_what_its_name_says(name: str) -> None:
    config = _config(_sources()[name])
    (group,) = config.node.nodes("instance_group")
    words = name.removeprefix("bert-large-").split("-")
    assert config.backend == words[0]
    assert config.max_batch_size == {"pytorch": 32, "tensorrt": 16}[words[0]]
    assert isinstance(config.node.node("dynamic_batching"), Node) == ("db" in words)
    assert group.integer("count") == (2 if "ig" in words else 1)
    assert [tensor.name for tensor in (*config.inputs, *config.outputs)] == [
        *("token_ids", "attn_mask", "output", "pooled_output")
    ]


def test_variants_and_copies_share_their_exports() -> None:
    told = {
        name: json.dumps([source.recipe.exports[0].script, script_options(source, source.recipe.exports[0])])
        for name, source in _sources().items()
    }
    assert len(set(told.values())) == len(EXPORTS) == len({told[name] for name in EXPORTS})


@needs_torch
@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_gives_what_its_recipe_promises(exports: dict[str, Export], name: str) -> None:
    source, made = _sources()[name], exports[name]
    written = {str(path.relative_to(made.folder)) for path in made.folder.rglob("*") if path.is_file()}
    assert written == {*source.recipe.exports[0].produces, "report.json"}
    assert 0 <= made.report["figures"]["largest_difference"] <= 1e-4
    assert made.report["figures"]["largest_proved_batch"] == PROVED_BATCH
    assert made.report["inputs"] == {}


@needs_torch
@pytest.mark.parametrize("name", EXPORTS)
def test_the_sample_is_what_a_client_makes_of_the_text(exports: dict[str, Export], name: str) -> None:
    source, made = _sources()[name], exports[name]
    adapter = source.recipe.adapters.text
    assert isinstance(adapter, TextAdapter)
    inputs = [_Input(tensor, tensor.data_type, tensor.shape(1)) for tensor in _config(source).inputs]
    files = {"tokenizer.json": made.folder / "tokenizer.json"}
    arrays = to_arrays(adapter, source.folder / "sample/text.txt", files, inputs=inputs)
    request = made.tensors("request.json")
    assert {one: (str(array.dtype), list(array.shape)) for one, array in arrays.items()} == {
        one: (tensor["datatype"].lower(), tensor["shape"]) for one, tensor in request.items()
    }
    assert {one: array.ravel().tolist() for one, array in arrays.items()} == {
        one: tensor["data"] for one, tensor in request.items()
    }
    assert 1 < np.count_nonzero(arrays[str(adapter.mask)]) < int(adapter.length or 0)


@needs_torch
@pytest.mark.parametrize("name", EXPORTS)
def test_the_answer_is_the_pooled_output_alone(exports: dict[str, Export], name: str) -> None:
    made = exports[name]
    (answer,) = made.tensors("answer.json").values()
    width = 768 if name.startswith("bert-tensorrt") else 1024
    assert (answer["name"], answer["datatype"], answer["shape"]) == ("pooled_output", "FP32", [1, width])
    values = np.array(answer["data"])
    assert np.isfinite(values).all()
    assert np.abs(values).max() <= 1 or name.startswith("roberta")  # the others have a pooler, which ends in tanh
    assert values.std() > 0.1
    assert (made.folder / "sample/answer.json").stat().st_size < 32 * 1024


@needs_torch
def test_the_oldest_release_s_pytorch_has_all_that_an_exported_trace_needs(exports: dict[str, Export]) -> None:
    path = exports["bert-large-pytorch"].folder / "bert-large/1/model.pt"
    assert model_formats.torchscript_version(path) <= model_formats.newest_torchscript()
    assert model_formats.beyond_torch(path) == ()


@needs_torch
def test_both_formats_of_bert_large_are_of_one_model(exports: dict[str, Export]) -> None:
    pytorch, tensorrt = exports["bert-large-pytorch"], exports["bert-large-tensorrt"]
    for name in ("sample/request.json", "sample/answer.json", "tokenizer.json"):
        assert (pytorch.folder / name).read_bytes() == (tensorrt.folder / name).read_bytes()


@needs_torch
@pytest.mark.parametrize(
    ("name", "architecture", "family"),
    [("bert-tensorrt-0", "BertForPreTraining", "BERT"), ("roberta-large-onnx", "RobertaForMaskedLM", "ROBERTA")],
)
def test_published_weights_are_read_from_a_folder_laid_out_like_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, architecture: str, family: str
) -> None:
    """Published checkpoints are of the pre-training class; RoBERTa's has no pooler."""
    source = _sources()[name]
    hub = source.recipe.source
    assert hub is not None
    width = str(source.recipe.exports[0].options["config"]["hidden_size"])
    folder = tmp_path / "hub" / str(hub.hub) / str(hub.revision)
    target = tmp_path / "target"
    target.mkdir()
    script = ["-c", MAKE_HUB_FOLDER, architecture, family, str(folder), width]
    run_script(
        environment="torch", arguments=script, folder=tmp_path, what="a hub's folder", report=print, with_library=True
    )
    monkeypatch.setenv("TRITONSTACK_HUB_FOLDER", str(tmp_path / "hub"))
    made = _export(source, target)
    assert made.report["figures"]["largest_difference"] <= 1e-4
    assert set(made.report["inputs"]) == {"config.json", "model.safetensors", "tokenizer.json"}
    assert (target / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()


@needs_torch
def test_where_a_model_was_published_without_a_pooler_a_texts_vector_is_the_mean_of_its_tokens(
    exports: dict[str, Export],
) -> None:
    """The graph's own answers, for requests of two lengths: 5 of 16 tokens are padding, 0 of 200."""
    done = subprocess.run(
        [REPOSITORY / ".envs/torch/bin/python", "-c", MEANS, exports["roberta-large-onnx"].folder],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1e-5


@needs_torch
def test_published_weights_of_another_width_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = _sources()["bert-tensorrt-0"]
    hub = source.recipe.source
    assert hub is not None
    folder = tmp_path / "hub" / str(hub.hub) / str(hub.revision)
    script = ["-c", MAKE_HUB_FOLDER, "BertForPreTraining", "BERT", str(folder), "128"]
    run_script(
        environment="torch", arguments=script, folder=tmp_path, what="a hub's folder", report=print, with_library=True
    )
    monkeypatch.setenv("TRITONSTACK_HUB_FOLDER", str(tmp_path / "hub"))
    with pytest.raises(WorkFailedError, match=r"hidden_size is 128, the graph's is 768"):
        _export(source, tmp_path)


@dataclass(frozen=True)
class _Input:
    """What a client knows of an input."""

    tensor: Tensor
    datatype: str
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.tensor.name
