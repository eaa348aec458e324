"""The manifest of an archive, and the folders and stores that archives and manifests are in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from tritonstack.adapters import Adapters, Answers, ClosedModel
from tritonstack.catalogue import load_catalogue
from tritonstack.models.model_config import Tensor
from tritonstack.models.recipe import Dependency, Size, Source, Weights
from tritonstack.naming import ArchiveName, Platform
from tritonstack.paths import LocalPaths, project_folder


class TensorEntry(ClosedModel):
    """One input or output."""

    name: str = Field(description="As in config.pbtxt.")
    datatype: str = Field(description="KServe's name of the type: FP32, INT64, BYTES, …")
    shape: tuple[int, ...] = Field(description="With the batch dimension where the model has one; -1 where variable.")
    optional: bool = Field(False, description="Whether a request may leave the input out.")


class ModelEntry(ClosedModel):
    """The Triton model that requests reach."""

    name: str = Field(description="Its directory in the archive.")
    max_batch_size: int = Field(description="0 where the model does not batch.")
    inputs: tuple[TensorEntry, ...] = Field(description="In the order of config.pbtxt.")
    outputs: tuple[TensorEntry, ...] = Field(description="In the order of config.pbtxt.")


class ArchiveEntry(ClosedModel):
    """The archive's file. Two machines may compress differently: the tar inside is what must agree."""

    file: str = Field(description="The archive's name, which is its TargetModel.")
    bytes: int = Field(description="Size of the .tar.gz.")
    sha256: str = Field(description="SHA-256 of the .tar.gz.")
    tar_bytes: int = Field(description="Size of the tar inside: what a container unpacks.")
    tar_sha256: str = Field(description="SHA-256 of the tar inside.")


class SampleEntry(ClosedModel):
    """A request and its expected response. Either ``body``, or ``content`` and ``adapter`` are set."""

    file: str = Field(description="The name of the request's file.")
    body: dict[str, Any] | None = Field(None, description="A request in KServe's JSON form.")
    content: str | None = Field(None, description="In base64: a file for the adapter.")
    adapter: Literal["image", "text"] | None = Field(None, description="Which adapter takes the file.")
    answer: dict[str, Any] = Field(description="The expected response in KServe's JSON form.")
    tolerance: float = Field(description="The largest absolute difference of a floating-point value.")


class ClientFileEntry(ClosedModel):
    """A file that clients need; it is below the manifest's own name (without .json)."""

    sha256: str = Field(description="SHA-256 of the file.")
    bytes: int = Field(description="Its size.")


class EnvironmentEntry(ClosedModel):
    """The packed Python environment in the archive."""

    file: str = Field(description="Its name in the archive.")
    python: str = Field(description="The minor version of Python that it is for.")
    packages: dict[str, str] = Field(description="Package → version.")


ENGINE_FIGURE = "engine_difference"
"""The figure that an engine's proof measured."""


class EngineMeasurement(ClosedModel):
    """What trtexec measured of an engine right after it was built, at the optimal shapes of one profile."""

    model: str = Field(description="The Triton model with the engine.")
    profile: int = Field(ge=0, description="The number of the optimisation profile.")
    batch: int = Field(ge=1, description="The first length of its optimal shapes: the requests of one query.")
    throughput: float = Field(description="Queries a second, each of one batch.")
    latency: dict[str, float] = Field(
        description="Milliseconds of a query, with the transfers of its tensors: min, mean, median, p90, p95, p99, max."
    )
    gpu_compute: dict[str, float] = Field(description="The same without the transfers.")


_MEASURED = "trtexec"
"""The first word of a measurement's figures in a manifest: `trtexec.<model>.<profile>.<figure>`."""


def engine_figures(measurement: EngineMeasurement) -> dict[str, float]:
    """A measurement as a manifest's figures.

    They stand there, and not in a field of their own, because readers from before there were any refuse unknown fields.
    """
    timings = {"latency": measurement.latency, "gpu_compute": measurement.gpu_compute}
    rows: dict[str, float] = {"batch": measurement.batch, "throughput": measurement.throughput}
    rows |= {f"{name}_ms.{rank}": value for name, each in timings.items() for rank, value in each.items()}
    return {f"{_MEASURED}.{measurement.model}.{measurement.profile}.{name}": value for name, value in rows.items()}


def measurements_of(figures: Mapping[str, float]) -> tuple[EngineMeasurement, ...]:
    """The measurements among a manifest's figures, by model and profile; others and incomplete ones are left out."""
    pattern = re.compile(rf"{_MEASURED}\.(.+)\.(\d+)\.(batch|throughput|(latency|gpu_compute)_ms\.(\w+))")
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for name, value in figures.items():
        if match := pattern.fullmatch(name):
            row = found.setdefault((match[1], int(match[2])), {"latency": {}, "gpu_compute": {}})
            if match[4]:
                row[match[4]][match[5]] = value
            else:
                row[match[3]] = int(value) if match[3] == "batch" else value
    return tuple(
        EngineMeasurement(model=model, profile=profile, **row)
        for (model, profile), row in sorted(found.items())
        if {"batch", "throughput"} <= row.keys()
    )


def is_engine_figure(name: str) -> bool:
    """Whether a figure is of one build's engines, and so of no other build with equal inputs."""
    return name == ENGINE_FIGURE or name.startswith(f"{_MEASURED}.")


class EngineTensor(ClosedModel):
    """One input or output of an engine."""

    name: str = Field(description="As in the ONNX graph.")
    datatype: str = Field(description="KServe's name of the engine's own type: FP32, INT32, …")
    min: tuple[int, ...] = Field(
        description="The smallest shape, the batch first where there is one; of an output -1 where the length is free."
    )
    max: tuple[int, ...] = Field(description="The largest shape.")


class EngineEntry(ClosedModel):
    """One TensorRT plan of the archive: what built it, from what, and its accuracy in the proof.

    Its durations are measured: they and the plan's bytes differ between two builds of equal inputs.
    """

    plan: str = Field(description="The plan's name in the archive.")
    bytes: int = Field(description="Its size.")
    sha256: str = Field(description="Its SHA-256.")
    stand_in: bool = Field(
        description="Whether trtexec-stand-in wrote it: then it is no engine, but an ONNX graph with a mark, and only "
        "the local Triton serves it."
    )
    release: str = Field(description="The Triton release in whose image it was built.")
    tensorrt: str = Field(description="The version of TensorRT that built it.")
    cuda: str | None = Field(None, description="The version of CUDA in the image, where the image says it.")
    driver: str = Field(description="The version of the GPU's driver.")
    gpu: str = Field(description="The GPU's name, as its driver says it.")
    compute_capability: str = Field(description="The GPU's compute capability.")
    options: tuple[str, ...] = Field(description="trtexec's options, but those that name files.")
    inputs: tuple[EngineTensor, ...] = Field(description="What it takes.")
    outputs: tuple[EngineTensor, ...] = Field(description="What it gives.")
    durations: dict[str, float] = Field(description="Step → seconds.")
    difference: float = Field(
        description="The largest difference between its outputs for the proof's inputs and ONNX Runtime's."
    )
    tolerance: float = Field(description="The largest difference that the recipe allows.")
    proof: Literal["sample", "random"] = Field(
        description="The proof's inputs: the sample request, or random numbers within the engine's shapes."
    )


def engine_manifest_name(plan: str) -> str:
    """The name of the file next to a plan that holds its :class:`EngineEntry`."""
    return f"{plan}.json"


class Manifest(ClosedModel):
    """All facts of one archive. It holds no point in time and no machine's name.

    Equal inputs give an equal manifest, but for what an engine's build measures: its plan and its durations.
    """

    format: Literal[1] = Field(1, description="Of the manifest itself.")
    name: str = Field(description="The model's name, as environments and clients use it.")
    digest: str = Field(description="Of the inputs; part of the archive's name.")
    description: str = Field(description="One sentence: what the model returns.")
    dependency: Dependency = Field(description="What the archive depends on besides its inputs: none, python, engine.")
    folder: str = Field("", description="The model folder that it was built from.")
    overlay: str | None = Field(None, description="The variant of the folder that it is.")
    copy_number: int | None = Field(None, description="Which copy of the folder's model it is.")
    target: str | None = Field(
        None,
        description="What it was built for where it depends on it: local, a platform (24.09-t4), or python-3.10; null: "
        "it serves everywhere.",
    )
    source: Source | None = Field(None, description="Where pretrained weights come from.")
    size: Size = Field("full", description="full; tiny: the same architecture with few layers.")
    weights: Weights = Field("pretrained", description="pretrained: the source's; random: of the seed.")
    seed: int = Field(0, description="Of random weights.")
    plan: bool | None = Field(
        None,
        description="Of an archive that needs a TensorRT engine: whether it holds the plan. false: it holds the ONNX "
        "graph that a plan is built from, in the plan's place with a mark or next to it, and only the local Triton "
        "serves it. null: it needs none.",
    )
    engines: dict[str, EngineEntry] = Field(
        default_factory=dict, description="Model → its TensorRT plan, of those that the build made."
    )
    archive: ArchiveEntry = Field(description="The archive's file.")
    model: ModelEntry = Field(description="The model that requests reach.")
    backends: tuple[str, ...] = Field(description="Triton backends that the archive needs.")
    configs: dict[str, str] = Field(description="Directory → the text of its config.pbtxt.")
    adapters: Adapters = Field(description="Files that a client may turn into an input.")
    answers: Answers = Field(default_factory=Answers, description="What a client makes of an output.")
    sample: SampleEntry = Field(description="A request to which the archive responds as expected.")
    figures: dict[str, float] = Field(
        description="What export, proof and trtexec measured: accuracy, differences, an engine's speed."
    )
    tools: dict[str, str] = Field(description="Tool → version, of export and proof.")
    inputs: dict[str, str] = Field(
        default_factory=dict, description="What the build started from: file → SHA-256, fetched weights included."
    )
    client_files: dict[str, ClientFileEntry] = Field(
        default_factory=dict, description="Files that clients need: tokenizers, labels."
    )
    environment: EnvironmentEntry | None = Field(None, description="The packed Python environment, where there is one.")
    more_environments: tuple[EnvironmentEntry, ...] = Field(
        (), description="The others, where several Python models have one. Left out where there is none."
    )
    stand_ins: tuple[str, ...] = Field(
        (), description="What stood in, during the proof, for what serves in the cloud, in its own words."
    )
    proof_skipped: str | None = Field(
        None, description="Why the sample was not sent before the archive was packed. Left out where it was proven."
    )

    def to_json(self) -> str:
        """The manifest as a file has it: sorted, so that equal manifests are equal bytes."""
        late = {"proof_skipped": self.proof_skipped, "more_environments": self.more_environments}
        left_out = {name for name, value in late.items() if not value}  # as before there were such fields
        content = self.model_dump(mode="json", exclude=left_out)
        return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def read_manifest(path: Path) -> Manifest:
    """A manifest that ``tritonstack build`` wrote. Raises OSError and pydantic's ValidationError (a ValueError)."""
    return Manifest.model_validate_json(path.read_bytes())


def tensor_entry(tensor: Tensor, max_batch_size: int) -> TensorEntry:
    """A configuration's tensor with the shape that requests have."""
    return TensorEntry(
        name=tensor.name,
        datatype=tensor.data_type,
        shape=tensor.shape(max_batch_size),
        optional=tensor.optional,
    )


@dataclass(frozen=True, kw_only=True)
class Places:
    """The folders that a build works with.

    ``target``: what an archive was built for where its bytes depend on it (see ``target_of``); such archives are in a
    folder of their own, since their names are the same for every target. None for all others.
    """

    repositories: Path
    archives: Path
    exports: Path

    @classmethod
    def of_project(cls) -> Places:
        """``model_repos/`` of the project; archives and exports below ``.local/``."""
        local = LocalPaths.from_environment()
        return cls(
            repositories=project_folder() / "model_repos", archives=local.archives, exports=local.root / "exports"
        )

    @property
    def sources(self) -> Path:
        """The folder of downloaded weights, each by its SHA-256: next to the exports, which read them."""
        return self.exports.with_name("sources")

    def folder(self, model: str) -> Path:
        return self.repositories / model

    def archive(self, name: ArchiveName, target: str | None = None) -> Path:
        return self.archives_for(target) / str(name)

    def manifest(self, name: ArchiveName, target: str | None = None) -> Path:
        return self.archives_for(target) / f"{name.model}.{name.digest}.json"

    def client_files(self, name: ArchiveName, target: str | None = None) -> Path:
        """The folder of a built archive's client files; there is none where it has none."""
        return self.archives_for(target) / f"{name.model}.{name.digest}.files"

    def archives_for(self, target: str | None) -> Path:
        return self.archives / target if target else self.archives

    def built(self, name: ArchiveName, target: str | None = None) -> Manifest | None:
        """The manifest of an archive that is built whole, with its client files, or None."""
        try:
            manifest = read_manifest(self.manifest(name, target))
            sizes = {self.archive(name, target): manifest.archive.bytes}
            for file, entry in manifest.client_files.items():
                sizes[self.client_files(name, target) / file] = entry.bytes
            return manifest if all(path.stat().st_size == size for path, size in sizes.items()) else None
        except (OSError, ValueError):
            return None


def python_target(platform: Platform) -> str | None:
    """The build target of archives with Python environments on a platform; None for unknown releases."""
    release = load_catalogue().release(platform.release)
    return None if release is None else f"python-{release.python}"
