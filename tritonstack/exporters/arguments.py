"""What a build gives an export script: ``--target FOLDER --options JSON --report FILE [--sample FILE.npz]``."""

from __future__ import annotations

import argparse
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.graph import Graph, read_graph

Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the recipe and the build's choice say.

    Attributes:
        size: changes of the source framework's model configuration; empty for the full size of most recipes.
        weights: ``pretrained`` or ``random``.
        seed: of random weights and of the proof's random inputs.
        source: where pretrained weights come from (``{"hub": …, "revision": …}``, or ``{"s3": …}`` with the ``file``
            that it was downloaded to and a ``folder`` to unpack it into); None where there are none.
        graph: what the exported graph must be; None where the script exports no ONNX.
        engine: the recipe's engine as it stands there, or None.
        max_batch_size: the addressed model's, of its ``config.pbtxt``.
        largest_batch: the largest batch to prove; None: ``max_batch_size``.
        tolerance: the largest difference between the exported model and the source framework.
        options: the script's own.
        archive: the archive's name.
    """

    size: Mapping[str, Any]
    weights: str
    seed: int
    source: Mapping[str, str] | None
    graph: Graph | None
    engine: Mapping[str, Any] | None
    max_batch_size: int
    largest_batch: int | None
    tolerance: float
    options: Mapping[str, Any]
    archive: str

    @property
    def the_graph(self) -> Graph:
        """The graph, for a script that needs one. Raises :class:`WorkFailedError` where the recipe has none."""
        if self.graph is None:
            raise WorkFailedError("this export needs `graph` in the recipe: names, types and axes of its tensors")
        return self.graph


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """An export script's task.

    Attributes:
        target: the folder to write into, laid out as the recipe's ``produces``.
        options: see there.
        report: the JSON file to write at the end.
        sample: the sample request's inputs by name, batch size 1; None where the script makes the sample itself.
    """

    target: Path
    options: Options
    report: Path
    sample: Arrays | None

    @property
    def the_sample(self) -> Arrays:
        """The sample, for a script that needs one. Raises :class:`WorkFailedError` where none is given."""
        if self.sample is None:
            raise WorkFailedError("this export needs the sample's inputs: --sample FILE.npz")
        return self.sample


def parse(arguments: Sequence[str] | None = None) -> Arguments:
    """Read the command line. Raises :class:`WorkFailedError` where it is not as agreed."""
    parser = argparse.ArgumentParser(description="Export a model. `tritonstack build` runs this.")
    parser.add_argument("--target", type=Path, required=True, help="the folder to write into")
    parser.add_argument("--options", required=True, help="what the recipe and the build's choice say, as JSON")
    parser.add_argument("--report", type=Path, required=True, help="the JSON file that figures and tools go to")
    parser.add_argument("--sample", type=Path, help="the sample request's arrays, as an .npz file")
    given = parser.parse_args(arguments)
    try:
        options = _options(json.loads(given.options))
    except (ValueError, KeyError, TypeError) as error:
        raise WorkFailedError(f"--options is not as agreed: {error!r}") from error
    return Arguments(
        target=given.target,
        options=options,
        report=given.report,
        sample=_read_sample(given.sample) if given.sample else None,
    )


def _options(content: Mapping[str, Any]) -> Options:
    graph, largest_batch = content.get("graph"), content.get("largest_batch")
    if content["weights"] not in ("pretrained", "random"):
        raise ValueError(f"weights {content['weights']!r}, but there are pretrained and random")
    return Options(
        size=dict(content.get("size") or {}),
        weights=content["weights"],
        seed=int(content.get("seed", 0)),
        source=content.get("source"),
        graph=read_graph(graph) if graph else None,
        engine=content.get("engine"),
        max_batch_size=int(content["max_batch_size"]),
        largest_batch=None if largest_batch is None else int(largest_batch),
        tolerance=float(content["tolerance"]),
        options=dict(content.get("options") or {}),
        archive=str(content.get("archive", "")),
    )


def _read_sample(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise WorkFailedError(f"{path} is no file of arrays: {error}") from error
