"""The files of an ONNX graph: itself, and those that it keeps weights in."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tritonstack.archives.lint.onnx_graph import OnnxError, OnnxGraph, external_files, read_graph
from tritonstack.errors import WorkFailedError


def graph_of(version: Path) -> Path | None:
    """The graph in a version folder that an engine is built from; None where there is none."""
    path = version / "model.onnx"
    if path.is_file():
        return path
    graphs = sorted(version.glob("*.onnx"))
    return graphs[0] if len(graphs) == 1 else None


def read_onnx(path: Path) -> OnnxGraph:
    """What a graph takes and gives. Raises :class:`WorkFailedError` where the file is no graph or says no shapes."""
    try:
        graph = read_graph(path)
    except OnnxError as error:
        raise WorkFailedError(f"{path}: no ONNX graph: {error}") from error
    for tensor in (*graph.inputs, *graph.outputs):
        if not tensor.datatype or tensor.shape is None:
            raise WorkFailedError(f"{path}: the graph does not say the type and the rank of {tensor.name}")
    return graph


def parts_of_graph(path: Path) -> dict[str, Path]:
    """The graph's own file and those with its external weights: name in the graph's folder → path.

    Raises :class:`WorkFailedError` where one is missing or lies elsewhere, or the file is no graph.
    """
    try:
        named = external_files(path)
    except OnnxError as error:
        raise WorkFailedError(f"{path}: no ONNX graph: {error}") from error
    found = {path.name: path}
    for name in named:
        pure = PurePosixPath(name)
        if not name or pure.is_absolute() or ".." in pure.parts or not (path.parent / pure).is_file():
            raise WorkFailedError(f"{path}: weights in {name!r}, which is no file beside the graph")
        found[str(pure)] = path.parent / pure
    return found
