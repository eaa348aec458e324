"""The frame of an export script: its command line, the lines that it prints, its report, the sample's response.

    python export.py --target FOLDER --options JSON --report FILE [--sample FILE.npz]

Standard library and NumPy: every export environment imports it.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray[Any, Any]]
TOOLS = ("numpy", "onnx", "onnxruntime", "onnxscript", "torch", "transformers")
BATCH = "batch"
"""The dynamic axis that Triton batches over, where it is the first."""
DTYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
}
"""KServe's datatypes of numbers, and NumPy's."""
_DATATYPES = {dtype: name for name, dtype in DTYPES.items()}
_DIGITS = {np.dtype(np.float16): 5, np.dtype(np.float32): 9, np.dtype(np.float64): 17}
"""Significant decimal digits that represent each value exactly."""


class ExportError(Exception):
    """An export fails: the message names what is wrong, and the build shows it."""


# The exported graph, as a recipe describes it.


@dataclass(frozen=True)
class Tensor:
    """An input or output. In ``shape`` a word is a dynamic axis and a number is fixed."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    @property
    def numpy(self) -> np.dtype[Any]:
        """Its NumPy type."""
        return DTYPES[self.dtype]

    def sized(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Its shape with every dynamic axis at the size of ``sizes``."""
        return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in self.shape)


@dataclass(frozen=True)
class Graph:
    """Names, types and axes of a graph's inputs and outputs, in the order of the model's arguments and results."""

    opset: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        """The dynamic axes of the inputs except the batch's, each once, in order."""
        words = (axis for tensor in self.inputs for axis in tensor.shape if isinstance(axis, str) and axis != BATCH)
        return tuple(dict.fromkeys(words))


def read_graph(content: Mapping[str, Any]) -> Graph:
    """A graph of a recipe. Raises KeyError, TypeError or ValueError where it is invalid."""
    return Graph(
        opset=int(content["opset"]),
        inputs=tuple(_tensor(one) for one in content["inputs"]),
        outputs=tuple(_tensor(one) for one in content["outputs"]),
    )


def _tensor(content: Mapping[str, Any]) -> Tensor:
    if content["dtype"] not in DTYPES:
        raise ValueError(f"tensor {content['name']}: dtype {content['dtype']}; allowed: {', '.join(DTYPES)}")
    return Tensor(name=content["name"], dtype=content["dtype"], shape=tuple(content["shape"]))


# The command line.


@dataclass(frozen=True, kw_only=True)
class Options:
    """The recipe's settings and the build's choices.

    Attributes:
        size: changes of the source framework's model configuration; empty for the full size of most recipes.
        weights: ``pretrained`` or ``random``.
        seed: of random weights and of the proof's random inputs.
        source: where pretrained weights come from (``{"hub": …, "revision": …}``, or ``{"s3": …}`` with the ``file``
            that it was downloaded to and a ``folder`` to unpack it into); None where there are none.
        graph: what the exported graph must be; None where the script exports no ONNX.
        engine: the recipe's ``engine``, or None.
        max_batch_size: the addressed model's, of its ``config.pbtxt``.
        largest_batch: the largest batch to prove; None: ``max_batch_size``.
        tolerance: the largest allowed difference between the exported model and the source framework.
        options: the recipe's ``options`` of this script.
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
        """The graph, for a script that needs one. Raises :class:`ExportError` where the recipe has none."""
        if self.graph is None:
            raise ExportError("this export needs `graph` in the recipe: names, types and axes of its tensors")
        return self.graph


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """An export script's task.

    Attributes:
        target: the folder to write into, laid out as the recipe's ``produces``.
        options: the recipe's settings and the build's choices.
        report: the JSON file to write at the end.
        sample: the sample request's inputs by name, batch size 1; None where the script makes the sample.
    """

    target: Path
    options: Options
    report: Path
    sample: Arrays | None

    @property
    def the_sample(self) -> Arrays:
        """The sample, for a script that needs one. Raises :class:`ExportError` where none is given."""
        if self.sample is None:
            raise ExportError("this export needs the sample's inputs: --sample FILE.npz")
        return self.sample


def parse(arguments: Sequence[str] | None = None) -> Arguments:
    """Read the command line. Raises :class:`ExportError` where it is invalid."""
    parser = argparse.ArgumentParser(description="Export a model. `tritonstack build` runs this.")
    parser.add_argument("--target", type=Path, required=True, help="the folder to write into")
    parser.add_argument("--options", required=True, help="the recipe's settings and the build's choices, as JSON")
    parser.add_argument("--report", type=Path, required=True, help="the JSON file for figures and tools")
    parser.add_argument("--sample", type=Path, help="the sample request's arrays, as an .npz file")
    given = parser.parse_args(arguments)
    try:
        options = _options(json.loads(given.options))
    except (ValueError, KeyError, TypeError) as error:
        raise ExportError(f"--options is invalid: {error!r}") from error
    return Arguments(
        target=given.target,
        options=options,
        report=given.report,
        sample=_read_sample(given.sample) if given.sample else None,
    )


def _options(content: Mapping[str, Any]) -> Options:
    graph, largest_batch = content.get("graph"), content.get("largest_batch")
    if content["weights"] not in ("pretrained", "random"):
        raise ValueError(f"weights {content['weights']!r}; allowed: pretrained, random")
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
        raise ExportError(f"{path} is no .npz file: {error}") from error


# Lines for the person who builds.


def run(work: Callable[[Arguments], None]) -> int:
    """Run an export. Returns the exit code: 1 after a failure, whose message goes to stderr."""
    quiet()
    try:
        work(parse())
    except ExportError as error:
        print(f"export: {error}", file=sys.stderr, flush=True)  # noqa: T201  the build shows it as the reason
        return 1
    return 0


def say(text: str) -> None:
    """Print one line of progress: a build shows it with the elapsed time."""
    print(text, flush=True)  # noqa: T201  the build shows it


def quiet() -> None:
    """Silence warnings of PyTorch and transformers for their own developers.

    A trace's warnings are among them: the proof shows whether a trace generalises.
    """
    warnings.simplefilter("ignore")
    for name in ("torch.fx", "torch.onnx", "transformers"):
        logging.getLogger(name).setLevel(logging.ERROR)


# Files.


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary file that becomes ``path`` at the end of the block, and is removed where that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.partial")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def versions(distributions: Iterable[str] = TOOLS) -> dict[str, str]:
    """Distribution → version in this environment."""
    return {name: metadata.version(name) for name in distributions}


def write_report(
    arguments: Arguments,
    figures: Mapping[str, float],
    tools: Mapping[str, str] | None = None,
    *,
    inputs: Mapping[str, str] | None = None,
) -> None:
    """Write ``--report``.

    Args:
        arguments: the script's.
        figures: name → number, such as the proof's largest difference.
        tools: name → version; without it, those of :data:`TOOLS`.
        inputs: file of the source → its SHA-256.
    """
    content = {"figures": dict(figures), "tools": dict(tools or versions()), "inputs": dict(inputs or {})}
    write_text(arguments.report, json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_answer(path: Path, outputs: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write ``sample/answer.json``. Raises :class:`ExportError` naming a tensor with NaN or infinity."""
    _write(path, "outputs", outputs)


def write_request(path: Path, inputs: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write ``sample/request.json``. Raises :class:`ExportError` as :func:`write_answer`."""
    _write(path, "inputs", inputs)


def _write(path: Path, key: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    lines = ",\n".join(f"    {json.dumps(_kserve(name, array))}" for name, array in arrays.items())
    write_text(path, f'{{\n  "{key}": [\n{lines}\n  ]\n}}\n')


def _kserve(name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.dtype not in _DATATYPES:
        raise ExportError(f"tensor {name}: {array.dtype} cannot be written as JSON")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ExportError(f"tensor {name}: the source framework returns NaN or infinity for the sample")
    digits = _DIGITS.get(array.dtype)
    values = array.ravel().tolist()
    data = [float(f"{value:.{digits}g}") for value in values] if digits else values
    return {"name": name, "datatype": _DATATYPES[array.dtype], "shape": list(array.shape), "data": data}
