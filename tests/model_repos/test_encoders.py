"""The language encoders: what their recipes and configurations promise each other, and what their exports give."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.environments import needs
from tritonstack.adapters import TextAdapter
from tritonstack.archives.exporting import script_options
from tritonstack.archives.programs import run_script
from tritonstack.client.preprocessing import to_arrays
from tritonstack.models.model_config import ModelConfig, Node, Tensor, read_config
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.paths import REPOSITORY

FOLDERS = {name: REPOSITORY / "model_repos" / name for name in ("bert-large", "bert-tensorrt", "roberta-large-onnx")}
EXPORTS = ("bert-large-pytorch", "bert-large-tensorrt", "bert-tensorrt-0", "roberta-large-onnx")
"""One archive of each export; the others share theirs."""

PROVED_BATCH = 2
"""Instead of the models' 16 to 128, which a build proves: it keeps these tests short."""

MAKE_HUB_FOLDER = """\
import sys, torch
from pathlib import Path
from transformers import BertConfig, BertForPreTraining, RobertaConfig, RobertaForMaskedLM
from _exporters import encoders, tokenizer

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
    ids = np.arange(2 * length).reshape(2, length) % 300
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
    return next(read_config(model.config) for model in source.own_models if model.name == source.model)


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
        python_path=REPOSITORY / "model_repos",
        downloads=True,
    )
    return Export(folder=folder, report=json.loads((folder / "report.json").read_text()))


def test_eight_variants_another_of_groups_and_five_copies_are_archives() -> None:
    variants = [f"{kind}{rest}" for kind in ("pytorch", "tensorrt") for rest in ("", "-db", "-ig", "-db-ig")]
    variants.insert(4, "pytorch-gpu-0")
    copies = [f"bert-tensorrt-{number}" for number in range(5)]
    assert list(_sources()) == [*(f"bert-large-{variant}" for variant in variants), *copies, "roberta-large-onnx"]


@pytest.mark.parametrize("name", [name for name in _sources() if name.startswith("bert-large")])
def test_a_variant_of_bert_large_is_what_its_name_says(name: str) -> None:
    config = _config(_sources()[name])
    group, *others = config.node.nodes("instance_group")
    words = name.removeprefix("bert-large-").split("-")
    assert config.backend == words[0]
    assert config.max_batch_size == {"pytorch": 32, "tensorrt": 16}[words[0]]
    batcher = config.node.node("dynamic_batching")
    assert isinstance(batcher, Node) == ("db" in words)
    if batcher is not None:  # the published load test's example
        assert batcher.integers("preferred_batch_size") == (16,)
        assert batcher.integer("max_queue_delay_microseconds") == 100
    assert group.integer("count") == (2 if "ig" in words else 1)
    assert [each.integers("gpus") for each in others] == ([(0,)] if words[1:] == ["gpu", "0"] else [])
    assert [tensor.name for tensor in (*config.inputs, *config.outputs)] == ["token_ids", "attn_mask", "logits"]


def test_variants_and_copies_share_their_exports() -> None:
    told = {
        name: json.dumps([source.recipe.exports[0].script, script_options(source, source.recipe.exports[0])])
        for name, source in _sources().items()
    }
    assert len(set(told.values())) == len(EXPORTS) == len({told[name] for name in EXPORTS})


def _check_sample(source: ArchiveSource, made: Export) -> None:
    """The sample's request is what a client makes of the recipe's text."""
    adapter = source.recipe.adapters.text
    assert isinstance(adapter, TextAdapter)
    inputs = [_Input(tensor, tensor.data_type, tensor.shape(1)) for tensor in _config(source).inputs]
    files = {"tokenizer.json": made.folder / "tokenizer.json"}
    arrays = to_arrays(adapter, source.folder / "sample/text.txt", files, inputs=inputs)
    assert {one: (str(array.dtype), list(array.shape), array.ravel().tolist()) for one, array in arrays.items()} == {
        one: (tensor["datatype"].lower(), tensor["shape"], tensor["data"])
        for one, tensor in made.tensors("request.json").items()
    }
    assert 1 < np.count_nonzero(arrays[str(adapter.mask)]) < int(adapter.length or 0)


@needs("torch")
@pytest.mark.parametrize(
    ("name", "architecture", "family"),
    [
        pytest.param("bert-tensorrt-0", "BertForPreTraining", "BERT", marks=pytest.mark.long),
        pytest.param("bert-large-pytorch", "BertForPreTraining", "BERT", marks=pytest.mark.long),
        ("roberta-large-onnx", "RobertaForMaskedLM", "ROBERTA"),
    ],
)
def test_published_weights_are_read_from_a_folder_laid_out_like_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, architecture: str, family: str
) -> None:
    """Published checkpoints are of the pre-training class: none has a classifier, and RoBERTa's has no pooler."""
    source = _sources()[name]
    hub = source.recipe.source
    assert hub is not None
    width = str(source.recipe.exports[0].options["config"]["hidden_size"])
    folder = tmp_path / "hub" / str(hub.hub) / str(hub.revision)
    target = tmp_path / "target"
    target.mkdir()
    script = ["-c", MAKE_HUB_FOLDER, architecture, family, str(folder), width]
    run_script(
        environment="torch",
        arguments=script,
        folder=tmp_path,
        what="a hub's folder",
        report=print,
        python_path=REPOSITORY / "model_repos",
        downloads=True,
    )
    monkeypatch.setenv("TRITONSTACK_HUB_FOLDER", str(tmp_path / "hub"))
    made = _export(source, target)
    written = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert written == {*source.recipe.exports[0].produces, "report.json"}
    assert made.report["figures"]["largest_difference"] <= 1e-4
    assert made.report["figures"]["largest_proved_batch"] == PROVED_BATCH
    assert set(made.report["inputs"]) == {"config.json", "model.safetensors", "tokenizer.json"}
    assert (target / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()
    _check_sample(source, made)
    (answer,) = made.tensors("answer.json").values()
    last = ("logits", 2) if name.startswith("bert-large") else ("pooled_output", int(width))
    assert (answer["name"], answer["datatype"], answer["shape"]) == (last[0], "FP32", [1, last[1]])
    if family == "ROBERTA":  # published without a pooler: a text's vector is the mean of its tokens, without padding
        python = REPOSITORY / ".envs/torch/bin/python"
        done = subprocess.run([python, "-c", MEANS, target], capture_output=True, text=True, timeout=120, check=True)
        assert float(done.stdout) < 1e-5


@dataclass(frozen=True)
class _Input:
    """An input's description for a client."""

    tensor: Tensor
    datatype: str
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.tensor.name
