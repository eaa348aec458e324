"""``recipe.yaml``: what a model folder says about its archives, beside the ``config.pbtxt`` files that Triton reads."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from tritonstack.adapters import Adapters, Answers
from tritonstack.archives.engine_recipe import Engine
from tritonstack.archives.export_recipe import Exports
from tritonstack.archives.onnxruntime_options import OnnxRuntimeOptions
from tritonstack.archives.overlay import Dependency, Kind, Overlay
from tritonstack.archives.sample_recipe import Proof, Sample
from tritonstack.archives.source_recipe import Sizes, Source
from tritonstack.errors import InputError, Problem
from tritonstack.recipe_part import InsidePath, Name, RecipePart
from tritonstack.settings.findings import Finding, shown, to_problems
from tritonstack.settings.type_errors import type_findings
from tritonstack.settings.yaml_source import read_yaml

RECIPE = "recipe.yaml"
MOST_COPIES = 1000


class UsedFolder(RecipePart):
    """Models taken from another model folder, as it builds them."""

    folder: Name = Field(description="A folder beside this one; its digest is part of this one's.")
    models: tuple[str, ...] = Field(min_length=1, description="Which of its Triton models are put into this archive.")


class ExecutionEnvironment(RecipePart):
    """The packed Python environment of a Python model."""

    requirements: InsidePath = Field(description="What it holds: a pinned requirements file of the folder.")
    packed_as: InsidePath = Field(
        "env.tar.gz", description="Its file in the addressed model's directory, which EXECUTION_ENV_PATH names."
    )


class Recipe(RecipePart):
    """One model folder's recipe. Its archive serves the Triton model ``model`` under the archive's name."""

    description: str = Field(min_length=1, description="One sentence: what the model answers.")
    kind: Kind = Field(description="What the addressed model is.")
    model: str | None = Field(
        None, description="The Triton model that requests reach; without it, the one called like the folder."
    )
    dependency: Dependency = Field(
        "none",
        description="What the archive's bytes depend on beside this folder: none; the release's Python (python); or "
        "release and GPU (engine).",
    )
    source: Source | None = Field(
        None, description="Where pretrained weights come from; null where the exports make them."
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
        None, description="The packed Python environment that the addressed Python model runs in."
    )
    overlays: dict[Name, Overlay] = Field(
        default_factory=dict,
        description="Variants: the folder's archives are then exactly <folder>-<overlay>, one for each.",
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
    sample: Sample = Field(description="A request and its expected answer.")
    adapters: Adapters = Field(default_factory=Adapters, description="Files that a client may turn into an input.")
    answers: Answers = Field(default_factory=Answers, description="What a client may turn the answer into.")
    client_files: tuple[InsidePath, ...] = Field(
        (),
        description="What a client needs beside the manifest: a tokenizer, labels. Of the folder, or made by an "
        "export; not part of the archive.",
    )

    @field_validator("copies")
    @classmethod
    def _overlays_or_copies(cls, copies: int, info: ValidationInfo) -> int:
        if copies > 1 and info.data.get("overlays"):
            raise ValueError("1 where there are overlays: an archive is a variant or a copy, not both")
        return copies

    @property
    def produced(self) -> frozenset[str]:
        """The files that the exports make, those of the overlays included: none of them is a source."""
        overlaid = [export for overlay in self.overlays.values() for export in overlay.exports or ()]
        return frozenset(name for export in (*self.exports, *overlaid) for name in export.produces)


def read_recipe(folder: Path) -> Recipe:
    """The recipe of a model folder. Raises :class:`InputError` with every problem of the file."""
    path = folder / RECIPE
    if not path.exists():
        raise InputError([_no_recipe(folder)])
    document = read_yaml(path)
    if not isinstance(document.value, dict):
        found = "an empty file" if document.value is None else shown(document.value)
        raise InputError([Problem(file=str(path), found=found, allowed="a mapping of the recipe's fields")])
    findings = [
        Finding(location=location, found=f"{location[-1]} again in line {later}", allowed="each key once in a mapping")
        for location, _, later in document.repeated
    ]
    try:
        recipe = Recipe.model_validate(document.value)
    except ValidationError as error:
        findings += type_findings(errors=error.errors(include_url=False), model=Recipe, document=document)
    if findings:
        raise InputError(to_problems(findings=findings, path=path, document=document))
    return recipe


def _no_recipe(folder: Path) -> Problem:
    if folder.is_dir():
        return Problem(file=str(folder), found="no recipe.yaml", allowed="a model folder with a recipe.yaml")
    beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
    names = ", ".join(sorted(path.name for path in beside if (path / RECIPE).is_file())) or "none"
    return Problem(file=str(folder), found="no such folder", allowed=f"a model folder; there are: {names}")
