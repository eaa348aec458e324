"""The models that are served: their archives at a real size, made where they are not, and a request for each."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from tritonstack.archives.build import build_models
from tritonstack.archives.packing import pack
from tritonstack.client.body import Body, PayloadFormat, encode
from tritonstack.errors import WorkFailedError
from tritonstack.models.digest import LIBRARY
from tritonstack.models.manifest import Places
from tritonstack.models.recipe import Size
from tritonstack.models.source import BuildChoice
from tritonstack.paths import REPOSITORY, environment_python
from tritonstack.untrusted.unpacking import UnpackLimits, unpack

LIMITS = UnpackLimits(max_bytes=2**33, max_members=10_000)
MEMORY_BOUND = "memory-bound"
WIDTH = 2048
CONFIG = """name: "memory-bound"
platform: "onnxruntime_onnx"
max_batch_size: 32
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2048 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2048 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""
ROBERTA_LARGE, ROBERTA_BASE = "roberta-large-onnx", "roberta-base-onnx"
TOKENS = 512
TO_BASE: Mapping[str, Iterable[tuple[str, str]]] = {
    "recipe.yaml": (
        (ROBERTA_LARGE, ROBERTA_BASE),
        ("hidden_size: 1024", "hidden_size: 768"),
        ("num_hidden_layers: 24", "num_hidden_layers: 12"),
        ("num_attention_heads: 16", "num_attention_heads: 12"),
        ("intermediate_size: 4096", "intermediate_size: 3072"),
        ("sequence, 1024", "sequence, 768"),
        ("[batch, 1024]", "[batch, 768]"),
    ),
    "export.py": ((ROBERTA_LARGE, ROBERTA_BASE),),
    f"{ROBERTA_BASE}/config.pbtxt": (
        (ROBERTA_LARGE, ROBERTA_BASE),
        ("-1, 1024", "-1, 768"),
        ("[ 1024 ]", "[ 768 ]"),
        ("max_batch_size: 32", "max_batch_size: 4"),
        ("preferred_batch_size: [ 5 ]", "preferred_batch_size: [ 4 ]"),
    ),
}
"""RoBERTa base, which the post loads under the name of the large one (https://arxiv.org/abs/1907.11692, table 9)."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """An archive, the model's folder in it, and a request."""

    archive: Path
    name: str
    body: Body


Maker = Callable[[Path], Model]
"""Makes a model, in a folder for its files where it has to."""


@cache
def memory_bound(folder: Path) -> Model:
    """134 MB of weights that every run reads, however many rows it has."""
    repository = folder / "repository"
    version = repository / MEMORY_BOUND / "1"
    version.mkdir(parents=True)
    script = Path(__file__).with_name("memory_bound.py")
    subprocess.run([str(environment_python("exporters")), str(script), str(version / "model.onnx")], check=True)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    archive = folder / "memory-bound.tar.gz"
    pack(repository, archive)
    inputs = {"x": np.random.default_rng(0).standard_normal((1, WIDTH), dtype=np.float32)}
    return Model(archive=archive, name=MEMORY_BOUND, body=encode(inputs, payload_format="binary"))


@cache
def compressed(folder: Path) -> Model:
    """The same in the archive that ``tar czf`` makes of it."""
    stored = memory_bound(folder)
    archive, unpacked = folder / "compressed.tar.gz", folder / "unpacked"
    unpack(stored.archive, unpacked, limits=LIMITS)
    with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
        for entry in sorted(unpacked.iterdir()):
            tar.add(entry, entry.name)
    return replace(stored, archive=archive)


@cache
def resnet(_folder: Path, *, name: str, size: Size = "full", payload_format: PayloadFormat = "binary") -> Model:
    """ResNet-50 with random weights, and one image of 3 by 224 by 224."""
    image = np.random.default_rng(0).random((1, 3, 224, 224), dtype=np.float32)
    inputs = {"input" if name == "resnet50-onnx" else "INPUT__0": image}
    archive = built(name, Places.of_project(), size=size)
    return Model(archive=archive, name=name, body=encode(inputs, payload_format=payload_format))


@cache
def roberta_base(folder: Path) -> Model:
    """RoBERTa base with random weights, and one text of 512 tokens."""
    places = replace(Places.of_project(), repositories=roberta_base_folder(folder).parent)
    ids = np.random.default_rng(0).integers(10, 50_000, (1, TOKENS))
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    body = encode(inputs, outputs=["pooled_output"], payload_format="binary")
    return Model(archive=built(ROBERTA_BASE, places, size="full"), name=ROBERTA_BASE, body=body)


def roberta_base_folder(folder: Path) -> Path:
    """The large model's folder, with the base model's numbers, below ``folder``.

    Raises WorkFailedError: the large model's folder no longer holds what is replaced.
    """
    target = folder / "models" / ROBERTA_BASE
    (folder / "requirements").symlink_to(REPOSITORY / "requirements")  # where the lock files are looked for
    target.parent.mkdir(parents=True)
    (target.parent / LIBRARY).symlink_to(REPOSITORY / "model_repos" / LIBRARY)
    shutil.copytree(REPOSITORY / "model_repos" / ROBERTA_LARGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    (target / ROBERTA_LARGE).rename(target / ROBERTA_BASE)
    for name, changes in TO_BASE.items():
        text = (target / name).read_text()
        for old, new in changes:
            if old not in text:
                raise WorkFailedError(f"{ROBERTA_LARGE}/{name} has no {old!r} to make {new!r} of")
            text = text.replace(old, new)
        (target / name).write_text(text)
    return target


def built(name: str, places: Places, *, size: Size) -> Path:
    """An archive with random weights, built once from the same sources: it lies among the project's."""
    summary = build_models([name], choice=BuildChoice(size=size, weights="random"), places=places)
    [made] = summary.built
    return places.archive(made.name)
