"""Rules about files that are not what they claim: model files, the weights of graphs, and other packed files.

Source of what backends make of them: tensorrt_backend src/loader.cc (LoadPlan), pytorch_backend src/libtorch.cc
(ModelState::LoadModel), tensorflow_backend src/tensorflow.cc (ModelState::LoadModel), openvino_backend
src/openvino.cc (ModelState::ReadModel), onnxruntime core/framework/tensorprotoutils.cc (GetExternalDataInfo).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tritonstack.lint.python.python_model import environment_file
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView
from tritonstack.model_files.file_formats import Mismatch, loaded_format, mismatch, named_format, stand_in
from tritonstack.model_files.marked_plan import is_marked
from tritonstack.model_files.onnx_graph import OnnxError, external_data, external_files, read_graph
from tritonstack.models.model_config import FIL_FILES
from tritonstack.models.model_view import ModelView
from tritonstack.models.source_files import CONFIG
from tritonstack.untrusted.folder_files import unfit

_LARGEST_STAND_IN = 1 << 20
"""Bytes: of larger files beside a model only those are read whose names claim a format."""


def check_content(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Model files, and other packed files, whose content is not the format that is expected there."""
    loaded: set[str] = set()
    for version in model.served_versions:
        for name in _loaded_names(model):
            path = model.directory / version / name
            if path.exists() and not unfit(path, model.root):
                # An OpenVINO network's weights are judged with it.
                loaded |= {f"{version}/{name}", f"{version}/{PurePosixPath(name).with_suffix('.bin')}"}
                yield from _loaded(model, path)
        for graph in _graphs(model, version):
            place = graph.relative_to(model.directory)
            loaded |= {str(place), *(f"{place.parent}/{name}" for name in _weights_of(graph))}
            yield from _graph(model, graph)
    environment = environment_file(model)
    for name in sorted(model.files - {CONFIG}):
        beside, is_loaded = model.on_disk(name), any(name == each or name.startswith(f"{each}/") for each in loaded)
        is_environment = environment is not None and (name == environment or name.startswith(f"{environment}/"))
        if beside is not None and not is_loaded and not is_environment:
            yield from _beside(beside)


def _loaded_names(model: ModelView) -> tuple[str, ...]:
    """The files of a version that the backend loads, those of ``cc_model_filenames`` included, but for ONNX graphs."""
    if model.is_ensemble or model.backend in ("onnxruntime", "python"):  # graphs and programs have rules of their own
        return ()
    by_capability = (str(value) for value in model.config.node.entries("cc_model_filenames").values())
    return tuple(dict.fromkeys(name for name in (model.model_file, *by_capability) if name))


def _loaded(model: ModelView, path: Path) -> Iterator[Finding]:
    """A file that the backend loads, against the format that it reads."""
    if is_marked(path):
        return
    wrong = mismatch(path, _format_read(model, path.name))
    if wrong is None and path.is_file() and not path.stat().st_size:
        wrong = Mismatch(found="an empty file", allowed=f"what backend {model.backend} reads", advice="")
    if wrong is not None:
        yield _finding(path, "model-file-content", wrong)


def _format_read(model: ModelView, name: str) -> str:
    """The format that the backend reads of a file; empty where it may be any.

    PyTorch's backend has other loaders than TorchScript's: a ``runtime`` in Python takes weights alone, and other
    platforms take packages of AOTInductor.
    """
    node = model.config.node
    if model.backend == "fil":  # whatever the file is called
        name = FIL_FILES.get(model.config.forest_type, name)
    is_torchs_own = model.backend != "pytorch" or node.text("platform") in ("", "pytorch_libtorch")
    return loaded_format(model.backend, name) if is_torchs_own and not node.text("runtime").endswith(".py") else ""


def _finding(path: Path, rule: str, wrong: Mismatch) -> Finding:
    found = f"{path.name} is {wrong.found}"
    return Finding(file=path, rule=rule, found=found, allowed=wrong.allowed, advice=wrong.advice)


def _graphs(model: ModelView, version: str) -> Iterator[Path]:
    """The ONNX graphs of a version that a backend loads or an engine is built from: a file, or one in a folder."""
    if model.backend not in ("onnxruntime", "tensorrt"):
        return
    name = model.model_file if model.backend == "onnxruntime" else "model.onnx"
    for place in (f"{version}/{name}", f"{version}/{name}/model.onnx"):
        if path := model.on_disk(place):
            yield path


def _weights_of(graph: Path) -> tuple[str, ...]:
    """The files that a graph keeps weights in; none of a graph that cannot be read."""
    try:
        return external_files(graph)
    except OnnxError:
        return ()


def _graph(model: ModelView, path: Path) -> Iterator[Finding]:
    """An ONNX graph that is none, or whose weights lie elsewhere, are missing or are cut off."""
    if wrong := stand_in(path):
        yield _finding(path, "onnx-unreadable", wrong)
        return
    try:
        read_graph(path)
        needed = external_data(path)
    except OnnxError as error:
        yield Finding(file=path, rule="onnx-unreadable", found=str(error), allowed="an ONNX model")
        return
    for name, size in needed.items():
        if wrong := wrong_weights(path, name, size, root=model.root):
            place = (path.parent / name).relative_to(model.directory) if _is_inside(name) else None
            if place is None or place.as_posix() not in model.files or model.on_disk(place.as_posix()):
                yield Finding(
                    file=path, rule="onnx-external-data", found=wrong.found, allowed=wrong.allowed, advice=wrong.advice
                )


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\\" not in name


def wrong_weights(graph: Path, name: str, needed: int, *, root: Path) -> Mismatch | None:
    """The problem of a file with a graph's weights; None without one.

    ``name``: as the graph states it; ``needed``: the bytes that the graph reads of it; ``root``: nothing outside of it
    is read.
    """
    weights = graph.parent / name
    if not _is_inside(name) or unfit(weights, root):
        # The rule's page has what is allowed, and what to do.
        return Mismatch(found=f"weights in {name!r}, outside of the graph's folder", allowed="", advice="")
    allowed = f"{name} beside {graph.name}, {needed:,} bytes or more"
    if not weights.is_file():
        others = [path.name for path in graph.parent.iterdir() if path != graph and path.is_file()]
        near = [each for each in others if each.startswith(graph.stem) or each.endswith((".data", ".bin", "_data"))]
        renamed = near[0] if len(near) == 1 else ""
        advice = f"rename {renamed} to {name}: the graph names its weights so" if renamed else f"copy {name} there"
        found = f"weights in {name!r}, which is not there" + (f"; {renamed} is" if renamed else "")
        return Mismatch(found=found, allowed=allowed, advice=advice)
    if wrong := stand_in(weights):
        return Mismatch(found=f"weights in {name!r}, which is {wrong.found}", allowed=allowed, advice=wrong.advice)
    size = weights.stat().st_size
    if size < needed:
        advice = "copy or download it again"
        return Mismatch(found=f"weights in {name!r}, of {size:,} bytes", allowed=allowed, advice=advice)
    return None


def _beside(path: Path) -> Iterator[Finding]:
    """A file that no backend loads by itself: a program may, so it is a warning."""
    name = named_format(path.name.lower())
    if not name and path.stat().st_size > _LARGEST_STAND_IN:
        return
    if wrong := mismatch(path, name):
        yield _finding(path, "other-file-content", wrong)
