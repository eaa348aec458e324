"""``recipe.yaml``: what a model folder says about its archive, beside the ``config.pbtxt`` files that Triton reads."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tritonstack.errors import InputError, Problem
from tritonstack.naming import NAME_PATTERN
from tritonstack.settings.findings import Finding, shown, to_problems
from tritonstack.settings.type_errors import type_findings
from tritonstack.settings.yaml_source import read_yaml

RECIPE = "recipe.yaml"

Dependency = Literal["none", "python", "engine"]
Encoding = Literal["png-bytes", "file-bytes", "utf8"]


def _inside(path: str) -> str:
    """A path below the model folder, with forward slashes."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or str(pure) in ("", "."):
        raise ValueError("a path inside the model folder, with forward slashes and without '..'")
    return str(pure)


InsidePath = Annotated[str, AfterValidator(_inside)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Export(_Part):
    """How the files that are not in the folder are made."""

    environment: str = Field(
        "exporters",
        pattern=NAME_PATTERN,
        description="The environment under .envs/ that the script runs in; its lock file requirements/<name>.txt is "
        "part of the digest.",
    )
    script: InsidePath = Field(
        "export.py",
        description="Called with --target FOLDER --options JSON --report FILE: writes what `produces` names below "
        "FOLDER, and its figures and tool versions into FILE.",
    )
    produces: tuple[InsidePath, ...] = Field(
        min_length=1, description="The files that the script makes; they are not part of the digest."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="What the script is told: seeds, splits, precision. Part of the digest."
    )


class UsedFolder(_Part):
    """Models taken from another model folder, as it builds them."""

    folder: Name = Field(description="A folder beside this one; its digest is part of this one's.")
    models: tuple[str, ...] = Field(min_length=1, description="Which of its Triton models are put into this archive.")


class Floor(_Part):
    """The least value that a figure may have."""

    at_least: float = Field(description="The build fails below it.")


class Proof(_Part):
    """What has to hold before an archive is packed."""

    figures: dict[str, Floor] = Field(
        default_factory=dict, description="Figures of the export's report, and what each must reach."
    )


class Sample(_Part):
    """A request that the built archive answers as expected; it goes into the manifest."""

    request: InsidePath = Field(
        description="A body in KServe's JSON form (.json), or a file for one of the adapters: what `tritonstack invoke "
        "--input` takes."
    )
    answer: InsidePath = Field(
        description="The expected answer in KServe's JSON form, without names of model or version."
    )
    tolerance: float = Field(
        0.0, ge=0, description="The largest absolute difference of a floating-point value; all else must be equal."
    )


class Adapter(_Part):
    """How a client turns a file that is no tensor into one input."""

    input: str = Field(min_length=1, description="The input that the file becomes.")
    encoding: Encoding = Field(
        description="png-bytes: an image of any format, sent as the bytes of a PNG; file-bytes: the file as it is; "
        "utf8: text. Each becomes one BYTES element of batch size 1."
    )


class Adapters(_Part):
    """The kinds of file that a client may be given beside JSON and NumPy files."""

    image: Adapter | None = Field(None, description="For image files.")
    text: Adapter | None = Field(None, description="For text files.")


class Recipe(_Part):
    """One model folder's recipe. Its archive serves the Triton model ``model`` under the archive's name."""

    description: str = Field(min_length=1, description="One sentence: what the model answers.")
    kind: Literal["onnx", "python", "ensemble"] = Field(description="What the addressed model is.")
    model: str | None = Field(
        None, description="The Triton model that requests reach; without it, the one called like the folder."
    )
    dependency: Dependency = Field(
        "none",
        description="What the archive's bytes depend on beside this folder: none; the release's Python (python); or "
        "release and GPU (engine).",
    )
    export: Export | None = Field(None, description="How files are made that are not in the folder.")
    uses: tuple[UsedFolder, ...] = Field((), description="Models of other folders that this archive contains.")
    proof: Proof = Field(default_factory=Proof, description="What has to hold before an archive is packed.")
    sample: Sample = Field(description="A request and its expected answer.")
    adapters: Adapters = Field(default_factory=Adapters, description="Files that a client may turn into an input.")


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
