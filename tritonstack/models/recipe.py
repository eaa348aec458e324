"""``recipe.yaml``: a model folder's archives, next to ``config.pbtxt``: weights, exports, sample, overlays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from tritonstack.adapters import Adapters, Answers, ClosedModel, InsidePath, Name
from tritonstack.config.yaml_loader import load_yaml
from tritonstack.errors import InputError, Problem
from tritonstack.models.runtime_options import Engine, OnnxRuntimeOptions
from tritonstack.naming import NAME_PATTERN
from tritonstack.untrusted.folder_files import unfit, unfit_problem

Size = Literal["full", "tiny"]
Weights = Literal["pretrained", "random"]


class Source(ClosedModel):
    """Pretrained weights: ``hub`` with ``revision``, or ``s3`` with ``sha256``. Both name exactly one content."""

    hub: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$",
        description="A model of the Hugging Face Hub: organisation/name.",
    )
    revision: str | None = Field(
        None, pattern=r"^[0-9a-f]{40}$", description="The commit of that model: 40 hexadecimal digits, no branch."
    )
    s3: str | None = Field(
        None,
        pattern=r"^s3://[a-z0-9.-]+/.+$",
        description="An object in S3, s3://bucket/key: one file, or a .tar.gz, .tgz or .zip of a folder laid out like "
        "a model of the hub.",
    )
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$", description="Of that object: 64 hexadecimal digits.")

    @model_validator(mode="after")
    def _one_kind(self) -> Source:
        given = {name for name in ("hub", "revision", "s3", "sha256") if getattr(self, name) is not None}
        if given not in ({"hub", "revision"}, {"s3", "sha256"}):
            raise ValueError("hub with revision, or s3 with sha256")
        return self

    def plain(self) -> dict[str, str]:
        """The recipe's form, without the fields that are not set."""
        return self.model_dump(exclude_none=True)


class StoredFile(ClosedModel):
    """A file of a model that lies in S3 and not in version control. The hash names its content."""

    s3: str = Field(pattern=r"^s3://[a-z0-9.-]+/.+$", description="The object: s3://bucket/key.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of that object: 64 hexadecimal digits.")


class Sizes(ClosedModel):
    """Size → what differs in the source framework's model configuration. Names, types and widths stay as they are."""

    full: dict[str, Any] = Field(default_factory=dict, description="What differs for the size that is deployed.")
    tiny: dict[str, Any] = Field(
        default_factory=dict, description="What differs for tests: few layers, a small vocabulary."
    )


class Floor(ClosedModel):
    """The least value that a figure may have."""

    at_least: float = Field(description="The build fails below it.")


class Proof(ClosedModel):
    """Conditions for packing an archive."""

    figures: dict[str, Floor] = Field(
        default_factory=dict, description="Figures of the exports' reports, and what each must reach."
    )
    tolerance: float = Field(
        1e-4, ge=0, description="The largest difference between the exported model and the source framework (FP32)."
    )
    largest_batch: int | None = Field(
        None,
        ge=1,
        description="The largest batch that the exports are proved with, besides 1; null: the model's max_batch_size. "
        "For a large model the proof takes most of a build's time, and memory with its batch; a build prints both.",
    )


class Sample(ClosedModel):
    """A request to which the built archive responds as expected; it goes into the manifest."""

    request: InsidePath = Field(
        description="A body in KServe's JSON form (.json), or a file for one of the adapters. Of the folder, or made "
        "by an export."
    )
    answer: InsidePath = Field(
        description="The expected response in KServe's JSON form, without names of model or version. Of the folder, or "
        "made by an export, in which the source framework computes it."
    )
    tolerance: float = Field(
        0.0, ge=0, description="The largest absolute difference of a floating-point value; all else must be equal."
    )


Datatype = Literal[
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES"
]


class GraphTensor(ClosedModel):
    """One input or output that an exported ONNX graph must have."""

    name: str = Field(min_length=1, description="Its name in the graph, which config.pbtxt uses too.")
    dtype: Datatype = Field(description="Its type, as KServe names it: FP32, INT64, …")
    shape: tuple[int | str, ...] = Field(
        description="Its axes, the batch first: a number is a fixed length, a word names a dynamic axis."
    )


class Graph(ClosedModel):
    """Requirements on an exported ONNX graph: the export gives its tensors and axes these names, and checks them."""

    opset: int = Field(ge=7, le=25, description="ONNX operator set.")
    inputs: tuple[GraphTensor, ...] = Field(min_length=1, description="The graph's inputs, all of them.")
    outputs: tuple[GraphTensor, ...] = Field(min_length=1, description="The graph's outputs, all of them.")


class Export(ClosedModel):
    """How files are made that are not in the folder."""

    environment: str = Field(
        "exporters",
        pattern=NAME_PATTERN,
        description="The environment under .envs/ that the script runs in; its lock file requirements/<name>.txt is "
        "part of the digest.",
    )
    script: InsidePath = Field(
        "export.py",
        description="Called with --target FOLDER --options JSON --report FILE (and --sample FILE.npz where the sample "
        "request is a file of the folder): writes what `produces` names below FOLDER, and its figures and tool "
        "versions into FILE.",
    )
    produces: tuple[InsidePath, ...] = Field(
        min_length=1,
        description="The files that the script makes: of models, of the sample, and for clients. They are not part of "
        "the digest.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Options of the script alone: splits, thresholds. Part of the digest."
    )
    graph: Graph | None = Field(None, description="What the ONNX graph that the script exports must be; null: none.")


def _produced_once(exports: tuple[Export, ...]) -> tuple[Export, ...]:
    names = [name for export in exports for name in export.produces]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"each file produced once ({', '.join(twice)} is not)")
    return exports


Exports = Annotated[tuple[Export, ...], AfterValidator(_produced_once)]
"""Exports that run one after the other into one folder."""


Dependency = Literal["none", "python", "engine"]
RecipeKind = Literal["onnx", "python", "ensemble", "pytorch", "tensorrt", "dali", "tensorflow", "other"]

KIND_BACKENDS: Mapping[RecipeKind, str] = {
    "onnx": "onnxruntime",
    "python": "python",
    "ensemble": "ensemble",
    "pytorch": "pytorch",
    "tensorrt": "tensorrt",
    "dali": "dali",
    "tensorflow": "tensorflow",
}
"""Kind → its backend, of those that the local Triton has or has a stand-in for; ``other`` is any other backend."""


class Overlay(ClosedModel):
    """What differs from the folder's recipe; every field that is not given is the folder's."""

    config: tuple[InsidePath, ...] = Field(
        (),
        description="Fragments of config.pbtxt, merged over the addressed model's in this order: a scalar replaces, a "
        "repeated field or message replaces the whole field, entries of maps are merged by their key.",
    )
    description: str | None = Field(None, min_length=1, description="One sentence: what the variant is.")
    kind: RecipeKind | None = Field(None, description="What the addressed model is, where it differs.")
    dependency: Dependency | None = Field(None, description="What the archive depends on, where it differs.")
    exports: Exports | None = Field(None, description="The exports, where they differ: all of them.")
    engine: Engine | None = Field(None, description="The engine, where it differs.")
    onnxruntime: OnnxRuntimeOptions | None = Field(
        None, description="The options of ONNX Runtime, where they differ: all of them."
    )
    sample: Sample | None = Field(None, description="The sample, where it differs.")

    def changes(self) -> dict[str, Any]:
        """Field of the recipe → the variant's value; ``engine: null`` is a change too, for every other null is none."""
        given = {name: getattr(self, name) for name in self.model_fields_set - {"config"}}
        return {name: value for name, value in given.items() if value is not None or name == "engine"}


RECIPE = "recipe.yaml"
MOST_COPIES = 1000


class UsedFolder(ClosedModel):
    """Models taken from another model folder, as it builds them."""

    folder: Name = Field(description="A folder next to this one; its digest is part of this one's.")
    models: tuple[str, ...] = Field(min_length=1, description="Which of its Triton models are put into this archive.")


class ExecutionEnvironment(ClosedModel):
    """The packed Python environment of a Python model."""

    requirements: InsidePath = Field(
        description="A requirements file of the folder: every package pinned, with hashes."
    )
    packed_as: InsidePath = Field(
        "env.tar.gz", description="Its file in the model's directory, which EXECUTION_ENV_PATH names."
    )
    model: str | None = Field(
        None, description="The Python model of the archive that it is for; without it, the one that requests reach."
    )

    def file(self, addressed: str) -> str:
        """Its path in the repository; ``addressed``: the model that requests reach."""
        return f"{self.model or addressed}/{self.packed_as}"


class Recipe(ClosedModel):
    """One model folder's recipe. Its archive serves the Triton model ``model`` under the archive's name."""

    description: str = Field(min_length=1, description="One sentence: what the model returns.")
    kind: RecipeKind = Field(
        description="What the addressed model is; other: a backend that the local Triton lacks (FIL, vLLM, a custom "
        "one), named in config.pbtxt. Its archive is built without a proof."
    )
    model: str | None = Field(
        None, description="The Triton model that requests reach; without it, the one called like the folder."
    )
    dependency: Dependency = Field(
        "none",
        description="What the archive's bytes depend on besides this folder: none; the release's Python (python); or "
        "release and GPU (engine).",
    )
    source: Source | None = Field(
        None, description="Where pretrained weights come from; null where the exports make them."
    )
    files: dict[InsidePath, StoredFile] = Field(
        default_factory=dict,
        description="Files of models that lie in S3 (`<model>/1/model.onnx`). A build takes the one in the folder, "
        "which must have that hash, and downloads it where there is none. Their hashes are part of the digest.",
    )
    seed: int = Field(0, ge=0, description="Of random weights.")
    sizes: Sizes = Field(
        default_factory=Sizes, description="What each size changes in the source framework's model configuration."
    )
    exports: Exports = Field(
        (), description="How files are made that are not in the folder: one after the other, into one folder."
    )
    engine: Engine | None = Field(None, description="The TensorRT engine that is built from the exported graph.")
    onnxruntime: OnnxRuntimeOptions | None = Field(
        None, description="Options of ONNX Runtime that config.pbtxt must carry in the form that has effect."
    )
    execution_environment: ExecutionEnvironment | None = Field(
        None, description="The packed Python environment of the one Python model that needs one."
    )
    execution_environments: tuple[ExecutionEnvironment, ...] = Field(
        (), description="The same where several Python models of an archive need one: one entry for each."
    )
    overlays: dict[Name, Overlay] = Field(
        default_factory=dict,
        description="Variants: the folder's archives are then <folder>-<overlay>, one for each.",
    )
    base_archive: bool = Field(
        False,
        description="With overlays: whether the folder without one is an archive, too, called like the folder. An "
        "endpoint's `models` then mean that one by the folder's name; false: all of the variants.",
    )
    copies: int = Field(
        1,
        ge=1,
        le=MOST_COPIES,
        description="How many archives of the same content there are: with two or more they are exactly <folder>-0, "
        "<folder>-1, …, and the addressed model's directory is called like each.",
    )
    uses: tuple[UsedFolder, ...] = Field((), description="Models of other folders that this archive contains.")
    proof: Proof = Field(default_factory=Proof, description="What has to hold before an archive is packed.")
    sample: Sample = Field(description="A request and its expected response.")
    adapters: Adapters = Field(default_factory=Adapters, description="Files that a client may turn into an input.")
    answers: Answers = Field(default_factory=Answers, description="What a client may turn the response into.")
    client_files: tuple[InsidePath, ...] = Field(
        (),
        description="What a client needs besides the manifest: a tokenizer, labels. Of the folder, or made by an "
        "export; not part of the archive.",
    )

    @field_validator("copies")
    @classmethod
    def _overlays_or_copies(cls, copies: int, info: ValidationInfo) -> int:
        if copies > 1 and info.data.get("overlays"):
            raise ValueError("1 where there are overlays: an archive is a variant or a copy, not both")
        return copies

    @model_validator(mode="after")
    def _made_or_stored(self) -> Recipe:
        exports = [*self.exports, *(one for overlay in self.overlays.values() for one in overlay.exports or ())]
        if both := sorted(self.files.keys() & {name for export in exports for name in export.produces}):
            raise ValueError(f"files that no export makes ({', '.join(both)} is in exports[].produces, too)")
        return self

    @field_validator("execution_environments")
    @classmethod
    def _one_for_each_model(
        cls, parts: tuple[ExecutionEnvironment, ...], info: ValidationInfo
    ) -> tuple[ExecutionEnvironment, ...]:
        if parts and info.data.get("execution_environment") is not None:
            raise ValueError("empty where there is execution_environment: every entry in one of both")
        addressed = info.data.get("model")
        models = [part.model or addressed for part in parts]
        if len(models) != len(set(models)):
            raise ValueError("a model's environment once: each entry names another `model`")
        return parts

    @property
    def environments(self) -> tuple[ExecutionEnvironment, ...]:
        """The execution environments that a build makes."""
        one = self.execution_environment
        return self.execution_environments if one is None else (one,)

    def environment_of(self, model: str, *, addressed: str) -> ExecutionEnvironment | None:
        """The one of a Python model; ``addressed``: the model that requests reach."""
        return next((each for each in self.environments if (each.model or addressed) == model), None)

    @property
    def produced(self) -> frozenset[str]:
        """The files that a build makes or downloads, those of the overlays' exports included: none is a source."""
        overlaid = [export for overlay in self.overlays.values() for export in overlay.exports or ()]
        made = (name for export in (*self.exports, *overlaid) for name in export.produces)
        return frozenset((*made, *self.files))


def read_recipe(folder: Path) -> Recipe:
    """The recipe of a model folder. Raises :class:`InputError` with every problem of the file."""
    path = folder / RECIPE
    if not path.exists():
        raise InputError([_no_recipe(folder)])
    if found := unfit(path, folder):
        raise InputError([unfit_problem(path, folder, found)])
    return load_yaml(path, Recipe)


def _no_recipe(folder: Path) -> Problem:
    if folder.is_dir():
        return Problem(file=str(folder), found="no recipe.yaml", allowed="a model folder with a recipe.yaml")
    beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
    names = ", ".join(sorted(path.name for path in beside if (path / RECIPE).is_file())) or "none"
    return Problem(file=str(folder), found="no such folder", allowed=f"a model folder; there are: {names}")
