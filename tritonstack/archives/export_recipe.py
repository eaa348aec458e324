"""The exports of a recipe: scripts that make the files that are not in the folder, and the graph they must give."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from tritonstack.naming import NAME_PATTERN
from tritonstack.recipe_part import InsidePath, RecipePart

Datatype = Literal[
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES"
]


class GraphTensor(RecipePart):
    """One input or output that an exported ONNX graph must have."""

    name: str = Field(min_length=1, description="Its name in the graph, which config.pbtxt uses too.")
    dtype: Datatype = Field(description="Its type, as KServe names it: FP32, INT64, …")
    shape: tuple[int | str, ...] = Field(
        description="Its axes, the batch first: a number is a fixed length, a word names a dynamic axis."
    )


class Graph(RecipePart):
    """What an exported ONNX graph must be. The export names its tensors and axes so, and checks it."""

    opset: int = Field(ge=7, le=25, description="ONNX operator set.")
    inputs: tuple[GraphTensor, ...] = Field(min_length=1, description="The graph's inputs, all of them.")
    outputs: tuple[GraphTensor, ...] = Field(min_length=1, description="The graph's outputs, all of them.")


class Export(RecipePart):
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
        default_factory=dict, description="What the script alone is told: splits, thresholds. Part of the digest."
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
