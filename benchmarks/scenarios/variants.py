"""The scenarios: which claim, and in which ways a model is served to try it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.scenarios.served import LIMITS, Variant
from tritonstack.archives.packing import pack
from tritonstack.archives.places import Places
from tritonstack.archives.unpacking import unpack
from tritonstack.client.body import encode
from tritonstack.errors import WorkFailedError
from tritonstack.local.paths import REPOSITORY, environment_python

MEMORY_BOUND = "memory-bound"
WIDTH = 2048
CONFIG = """name: "memory-bound"
platform: "onnxruntime_onnx"
max_batch_size: 32
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2048 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2048 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""
BATCHING = "dynamic_batching { max_queue_delay_microseconds: 500 }"
TWO = "instance_group [ { count: 2 kind: KIND_CPU } ]"
WARM_UP = """model_warmup [ { name: "first" batch_size: 1
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 2048 ] random_data: true } } } ]"""
CACHE_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One claim. ``variants`` makes what is served, in a folder for its files; the first is what others are held to."""

    title: str
    claim: str
    variants: Callable[[Path], Iterator[Variant]]


def memory_bound(folder: Path) -> Variant:
    """The model that is bound by memory traffic, as it stands."""
    archive = folder / "memory-bound.tar.gz"
    if not archive.is_file():
        repository = folder / "repository"
        version = repository / MEMORY_BOUND / "1"
        version.mkdir(parents=True)
        script = Path(__file__).with_name("memory_bound.py")
        subprocess.run([str(environment_python("exporters")), str(script), str(version / "model.onnx")], check=True)
        (version.parent / "config.pbtxt").write_text(CONFIG)
        pack(repository, archive)
    inputs = {"x": np.random.default_rng(0).standard_normal((1, WIDTH), dtype=np.float32)}
    body = encode(inputs, payload_format="binary")
    return Variant(name="plain", archive=archive, model=MEMORY_BOUND, body=body, users=16)


def batching(folder: Path) -> Iterator[Variant]:
    """The post's four configurations."""
    plain = memory_bound(folder)
    yield plain
    yield replace(plain, name="dynamic batching", fragment=BATCHING)
    yield replace(plain, name="two instances", fragment=TWO)
    yield replace(plain, name="both", fragment=f"{BATCHING}\n{TWO}")


def batching_without_need(folder: Path) -> Iterator[Variant]:
    """The same with one caller, who has nobody to share a batch with."""
    plain = replace(memory_bound(folder), users=1)
    yield plain
    yield replace(plain, name="dynamic batching", fragment=BATCHING)


def warm_up(folder: Path) -> Iterator[Variant]:
    """The first call after a load."""
    plain = replace(memory_bound(folder), users=0)
    yield replace(plain, name="without model_warmup")
    yield replace(plain, name="with model_warmup", fragment=WARM_UP)


def response_cache(folder: Path) -> Iterator[Variant]:
    """The same request again and again."""
    plain = replace(memory_bound(folder), users=4)
    yield replace(plain, name="without")
    yield replace(
        plain,
        name="with response cache",
        fragment="response_cache { enable: true }",
        arguments=f"--cache-config=local,size={CACHE_BYTES}",
    )


def archives(folder: Path) -> Iterator[Variant]:
    """The same model packed in two ways."""
    plain = replace(memory_bound(folder), users=0)
    compressed = folder / "compressed.tar.gz"
    unpacked = folder / "unpacked"
    unpack(plain.archive, unpacked, limits=LIMITS)
    with tarfile.open(compressed, "w:gz", compresslevel=6) as tar:
        for entry in sorted(unpacked.iterdir()):
            tar.add(entry, entry.name)
    for variant in (
        replace(plain, name="compressed, as tar czf"),
        replace(plain, name="stored, as tritonstack pack"),
    ):
        archive = compressed if variant.name.startswith("compressed") else plain.archive
        yield replace(variant, name=f"{variant.name}, {archive.stat().st_size / 1e6:.0f} MB", archive=archive)


def frameworks(_folder: Path) -> Iterator[Variant]:
    """ResNet-50 in PyTorch and in ONNX Runtime, one image a call."""
    for name, model in (("PyTorch", "resnet50-torchscript"), ("ONNX Runtime", "resnet50-onnx")):
        yield replace(resnet(model), name=name)


def knobs(_folder: Path) -> Iterator[Variant]:
    """ONNX Runtime's options that do something on a CPU."""
    plain = replace(resnet("resnet50-onnx"), fragment=_optimisation(level=0))
    yield replace(plain, name="all graph optimisations (0, the default)")
    yield replace(plain, name="extended (1, the post's)", fragment=_optimisation(level=1))
    yield replace(plain, name="basic (-1)", fragment=_optimisation(level=-1))
    yield replace(plain, name="none (2)", fragment=_optimisation(level=2))
    parallel = 'parameters { key: "execution_mode" value { string_value: "1" } }'
    yield replace(plain, name="extended, parallel execution", fragment=f"{_optimisation(level=1)}\n{parallel}")
    pattern = 'parameters { key: "enable_mem_pattern" value { string_value: "0" } }'
    yield replace(plain, name="extended, no memory pattern", fragment=f"{_optimisation(level=1)}\n{pattern}")


def payloads(_folder: Path) -> Iterator[Variant]:
    """One image of 3 by 224 by 224 in both formats, to a model that does little with it."""
    plain = resnet("resnet50-onnx")
    yield replace(plain, name=f"binary, {len(plain.body.content) / 1e6:.2f} MB", users=4)
    body = encode(_image("resnet50-onnx"), payload_format="json")
    yield replace(plain, name=f"JSON, {len(body.content) / 1e6:.2f} MB", body=body, users=4)


def resnet(model: str) -> Variant:
    """ResNet-50 at its full size with random weights, built where it is not."""
    built = [sys.executable, "-m", "tritonstack", "build", model, "--size", "full", "--weights", "random"]
    done = subprocess.run(built, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    names = [word for word in done.stdout.split() if word.startswith(f"{model}.") and word.endswith(".tar.gz")]
    if done.returncode != 0 or not names:
        raise WorkFailedError(f"{model} could not be built:\n{done.stderr[-2000:]}")
    archive = Places.of_project().archives / names[0]
    return Variant(
        name=model, archive=archive, model=model, body=encode(_image(model), payload_format="binary"), users=2
    )


def _image(model: str) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    name = "input" if model == "resnet50-onnx" else "INPUT__0"
    return {name: np.random.default_rng(0).random((1, 3, 224, 224), dtype=np.float32)}


def _optimisation(*, level: int) -> str:
    return f"optimization {{ graph {{ level: {level} }} }}"


SCENARIOS: dict[str, Scenario] = {
    "batching": Scenario(
        title="Dynamic batching and instances, 16 callers",
        claim="dynamic batching about doubles throughput, a second instance too (BERT large on T4 GPUs).",
        variants=batching,
    ),
    "one-caller": Scenario(
        title="Dynamic batching with one caller",
        claim="batching costs nothing where there is nothing to batch.",
        variants=batching_without_need,
    ),
    "frameworks": Scenario(
        title="PyTorch against ONNX Runtime: ResNet-50, random weights, 2 callers",
        claim="ONNX 168 ms against PyTorch's 176 ms, cold start 4.4 s against 6 s (RoBERTa on a T4).",
        variants=frameworks,
    ),
    "onnxruntime": Scenario(
        title="ONNX Runtime's options: ResNet-50, 2 callers",
        claim="graph optimisation, heuristics and parallel execution: cold start 4.4 s → 1.61 s (RoBERTa on a T4).",
        variants=knobs,
    ),
    "payload": Scenario(
        title="Binary against JSON: an image of 3 by 224 by 224 FP32, 4 callers",
        claim="the posts recommend binary; their figures were taken with JSON.",
        variants=payloads,
    ),
    "archives": Scenario(
        title="Stored against compressed archives at cold start: 134 MB of random weights",
        claim="weights do not compress: an archive that stores them loads faster.",
        variants=archives,
    ),
    "response-cache": Scenario(
        title="Response cache: the same request again and again, 4 callers",
        claim="an answer that is known need not be computed.",
        variants=response_cache,
    ),
    "warm-up": Scenario(
        title="Warm-up",
        claim="`model_warmup` moves the first run's cost from the first caller to the load.",
        variants=warm_up,
    ),
}
