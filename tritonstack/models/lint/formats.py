"""Rules about model files against what the release's frameworks read: ONNX Runtime, PyTorch and DALI.

Source: onnxruntime core/graph/model_load_utils.h (ValidateOpsetForDomain) and model.cc; pytorch
caffe2/serialize/inline_container.cc; NVIDIA/DALI dali/pipeline/operator/op_schema.cc (SchemaRegistry::GetSchema).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonstack.catalogue import TritonRelease, model_formats
from tritonstack.models.lint.completion import promised_graph
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.onnx_graph import OnnxError, OnnxGraph, read_graph
from tritonstack.models.lint.view import ModelView, RepositoryView

NO_AUTOSERIALIZE_FROM = "24.04"
"""The first release whose image lacks the Python environment that ``dali.py`` needs."""

_SHOWN = 4


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What of a model's files the release's framework does not read, or may not."""
    release = view.target.release
    if release is None:
        return
    backend = model.backend
    for version in model.served_versions:
        folder = model.directory / version
        if backend == "onnxruntime":
            yield from _onnx(view, model, folder / model.model_file, release)
        elif backend == "pytorch":
            yield from _torchscript(folder / model.model_file, release)
        elif backend == "dali":
            yield from _dali(folder / model.model_file, release)


def _onnx(view: RepositoryView, model: ModelView, path: Path, release: TritonRelease) -> Iterator[Finding]:
    limits = model_formats.onnx_limits(release)
    graph, where = _graph(view, model, path)
    if graph is None or limits is None:
        return
    reads = (
        f"{'' if limits.is_exact else 'at most '}ONNX Runtime {limits.onnxruntime} of release {release.version} reads"
    )
    if graph.opset > limits.opset:
        found = f"operator set {graph.opset}"
        allowed = f"operator set {limits.opset} or older, which {reads}"
        advice = "export.graph.opset in recipe.yaml, or onnx.version_converter"
        yield Finding(file=where, rule="onnx-version", found=found, allowed=allowed, advice=advice)
    if graph.ir_version > limits.ir_version:
        found = f"ir_version {graph.ir_version}"
        allowed = f"ir_version {limits.ir_version} or older, which {reads}"
        advice = "set the model's ir_version to onnx.helper.find_min_ir_version_for(model.opset_import)"
        yield Finding(file=where, rule="onnx-version", found=found, allowed=allowed, advice=advice)


def _graph(view: RepositoryView, model: ModelView, path: Path) -> tuple[OnnxGraph | None, Path]:
    """The file's graph, or, until an export makes it, the recipe's; and the file to name."""
    if path.is_file():
        try:
            return read_graph(path), path
        except OnnxError:  # onnx-unreadable says it
            return None, path
    return promised_graph(view, model), view.root / "recipe.yaml"


def _torchscript(path: Path, release: TritonRelease) -> Iterator[Finding]:
    if not path.is_file() or not _is_zip(path):
        return
    try:
        version, newest = model_formats.torchscript_version(path), model_formats.newest_torchscript()
        lacking = model_formats.beyond_torch(path)
    except model_formats.FormatError as error:
        yield Finding(file=path, rule="torchscript-version", found=str(error), allowed="what torch.jit.save writes")
        return
    if version > newest:
        found, allowed = f"version {version} of TorchScript's format", f"{newest} or older"
        yield Finding(file=path, rule="torchscript-version", found=found, allowed=allowed)
    torch = model_formats.torch_of(release)
    held = f"release {release.version} holds {f'PyTorch {torch}' if torch else 'a PyTorch that is UNVERIFIED'}"
    missing = [each for each in lacking if not _is_there(each, torch)]
    if missing:
        found = f"{_listed(missing)}, which {model_formats.OLDEST_TORCH} lacks; {held}"
        yield Finding(file=path, rule="torchscript-operator", found=found, allowed="what the release's PyTorch has")


def _is_there(operator: str, torch: str | None) -> bool:
    """Whether a release's PyTorch surely has what 1.13.1 lacks."""
    since = model_formats.torch_with(operator)
    return torch is not None and since is not None and not model_formats.is_older(torch, since)


def _is_zip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"PK\x03\x04"


def _dali(path: Path, release: TritonRelease) -> Iterator[Finding]:
    script = path.with_name("dali.py")
    if not path.is_file():
        if script.is_file() and release.at_least(NO_AUTOSERIALIZE_FROM):
            found = f"a pipeline as Python source, and release {release.version}"
            allowed = f"{path.name}, the pipeline serialised"
            yield Finding(file=script, rule="dali-autoserialize", found=found, allowed=allowed)
        return
    try:
        lacking = model_formats.beyond_dali(path.read_bytes())
    except model_formats.FormatError:
        return
    if lacking:
        dali = model_formats.dali_of(release)
        held = f"release {release.version} holds {f'DALI {dali}' if dali else 'a DALI that is UNVERIFIED'}"
        found = f"{_listed(lacking)}, which {model_formats.OLDEST_DALI} lacks; {held}"
        allowed = "operators and arguments that the release's DALI has"
        yield Finding(file=path, rule="dali-operator", found=found, allowed=allowed)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
