"""Rules about ``backend`` and ``platform``, and about model files against what the release's frameworks read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonstack.catalogue import TritonRelease, load_catalogue, model_formats, release_order
from tritonstack.errors import listing, nearest
from tritonstack.lint.completion import promised_graph
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field, at_line, known_backends
from tritonstack.model_files.onnx_graph import OnnxError, OnnxGraph, read_graph
from tritonstack.models.model_view import ModelView
from tritonstack.untrusted.folder_files import read_inside, unfit

# Source: core src/model_config_utils.cc (AutoCompleteBackendFields, ValidateModelConfig, GetBackendType).


_PAIRED = ("tensorflow", "tensorrt", "onnxruntime", "pytorch")
"""Backends whose platform Triton checks: GetBackendType knows these and no other."""

LIBRARY_PREFIX = "libtriton_"


def check_backend(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check the choice of a backend."""
    config, node = model.config, model.config.node
    if not model.is_readable:
        return
    platform, backend = node.text("platform"), node.text("backend")
    known = view.target.backends
    # Triton looks for the backend's library in the archive first.
    in_archive = any(file.rsplit("/", 1)[-1] == f"{LIBRARY_PREFIX}{model.backend}.so" for file in model.files)
    is_there = known is None or model.backend in known or in_archive
    if not platform and not backend:
        yield from _missing(view, model, is_there=is_there)
    elif platform and not backend and not config.platform_backend:
        allowed = _meant(platform) or (f'backend: "{platform}"' if platform in known_backends() else 'backend: "…"')
        yield at_field(model, "platform", "platform-unknown", f'platform: "{platform}"', f"{allowed} instead")
    elif platform and backend:
        yield from _pair(model, platform, backend)
    is_meant = platform or backend or model.backend in known_backends()  # no part of a name, as v2 of net.v2
    if known is not None and model.backend and is_meant and not config.is_ensemble and not is_there:
        line = node.line_of("backend" if backend else "platform")
        allowed = f"{', '.join(sorted(known))} ({view.target.name or 'of all releases'})"
        meant = "" if model.backend in known_backends() else _meant(model.backend)
        advice = _advice(view, model.backend) or (f"write {meant}" if meant else nearest(model.backend, known, most=1))
        yield at_line(model, line, "backend-not-in-release", f"backend {model.backend}", allowed, advice)
    if config.decoupled and view.target.infers:
        yield at_field(model, "model_transaction_policy", "decoupled", "decoupled: true")
    if node.has("model_repository_agents"):
        yield at_field(model, "model_repository_agents", "repository-agent", "model_repository_agents")


_NAMES = {
    "onnxruntime": ("onnx", "onnxruntime", "onnxruntime_onnx", "onnx_runtime", "ort"),
    "pytorch": ("pytorch", "pytorch_libtorch", "torch", "libtorch", "torchscript"),
    "tensorrt": ("tensorrt", "tensorrt_plan", "trt", "plan"),
    "tensorflow": ("tensorflow", "tf", "savedmodel", "tensorflow_savedmodel", "tensorflow_graphdef"),
    "python": ("python", "py", "python3"),
    "fil": ("fil", "xgboost", "lightgbm", "sklearn", "treelite"),
    "dali": ("dali", "nvidia_dali"),
    "openvino": ("openvino", "openvino_ir"),
}
"""Backend → what people write for it, in lower case."""
_PLATFORMS = {"onnxruntime": "onnxruntime_onnx", "pytorch": "pytorch_libtorch", "tensorrt": "tensorrt_plan"}
"""Backend → its platform, where it has exactly one."""


def _meant(name: str) -> str:
    """The backend, and its platform, that a wrong name in either field probably means; empty where none is like it."""
    backend = next((backend for backend, names in _NAMES.items() if name.lower() in names), "")
    if not backend:
        return ""
    platform = _PLATFORMS.get(backend)
    return f'backend: "{backend}"' + (f' or platform: "{platform}"' if platform else "")


def _advice(view: RepositoryView, backend: str) -> str:
    """Advice on a backend that earlier releases had; empty for any other."""
    catalogue, release = load_catalogue(), view.target.release
    known = catalogue.backends.get(backend)
    if release is None or known is None or known.last is None:
        return ""
    late = release_order(release.version) > release_order(known.last)
    if not late:
        return ""
    instance, region = view.target.instance, view.target.region
    needed = {model.backend for model in view.models.values()} & release.backends
    instances = () if instance is None else (instance,)
    return catalogue.without_backend(
        known, release=release.version, region=region, instances=instances, backends=needed
    )


def _missing(view: RepositoryView, model: ModelView, *, is_there: bool) -> Iterator[Finding]:
    """Neither ``backend`` nor ``platform``: what Triton takes, and where it takes nothing that there is."""
    derived, line = model.derived, model.config.node.line
    found = "neither backend nor platform"
    of_archive = derived.from_name and model.name == view.served
    if not derived.backend:
        yield at_line(model, line, "backend-missing", found)
    elif derived.from_name and not is_there and derived.backend not in known_backends():
        found += f"; Triton takes {derived.backend} from the directory's name, which is no backend"
        yield at_line(model, line, "backend-missing", found)
    elif derived.from_name and derived.backend in _PAIRED:  # from a name Triton completes no platform
        found += f"; Triton takes {derived.backend} from the directory's name and refuses it without its platform"
        yield at_line(model, line, "backend-missing", found, f'backend: "{derived.backend}"')
    elif of_archive and view.target.multi_model:
        found += f"; a multi-model endpoint loads {model.name} under the archive's name, not the directory's"
        yield at_line(model, line, "backend-missing", found, f'backend: "{derived.backend}"')
    else:
        what = "the directory's name" if derived.from_name else "the files"
        found += f"; Triton derives {derived.backend} from {what}"
        advice = "on a multi-model endpoint the archive's name counts, and the load fails" if of_archive else ""
        yield at_line(model, line, "backend-guessed", found, f'backend: "{derived.backend}"', advice)


def _pair(model: ModelView, platform: str, backend: str) -> Iterator[Finding]:
    """``platform`` and ``backend`` together."""
    stands_for = model.config.platform_backend
    found = f'platform: "{platform}" with backend: "{backend}"'
    if stands_for == "ensemble":
        yield at_field(model, "platform", "backend-platform-pair", found, "no backend with an ensemble")
    elif backend in _PAIRED and stands_for != backend:
        yield at_field(model, "platform", "backend-platform-pair", found, f"no platform, or the one of {backend}")
    elif stands_for != backend:
        yield at_field(model, "platform", "platform-ignored", found, f'backend: "{backend}" alone')


# Source: onnxruntime core/graph/model_load_utils.h (ValidateOpsetForDomain) and model.cc; pytorch
# caffe2/serialize/inline_container.cc; NVIDIA/DALI dali/pipeline/operator/op_schema.cc (SchemaRegistry::GetSchema).


NO_AUTOSERIALIZE_FROM = "24.04"
"""The first release whose image lacks the Python environment that ``dali.py`` needs."""

MINIMAL_IR = "set the model's ir_version to onnx.helper.find_min_ir_version_for(model.opset_import)"


def check_formats(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check that the release's framework reads a model's files."""
    release = view.target.release
    if release is None:
        return
    backend = model.backend
    for version in model.served_versions:
        path = model.directory / version / model.model_file
        if unfit(path, model.root):
            continue  # another rule's matter
        if backend == "onnxruntime":
            yield from _onnx(view, model, path, release)
        elif backend == "pytorch":
            yield from _torchscript(path, release)
        elif backend == "dali":
            yield from _dali(path, model.root, release)


def _onnx(view: RepositoryView, model: ModelView, path: Path, release: TritonRelease) -> Iterator[Finding]:
    limits = model_formats.onnx_limits(release)
    graph, where = _graph(view, model, path)
    if graph is None or limits is None:
        return
    reads = (
        f"{'' if limits.is_exact else 'at most '}ONNX Runtime {limits.onnxruntime} of release {release.version} reads"
    )
    for what, number, limit, advice in (
        ("operator set", graph.opset, limits.opset, "export.graph.opset in recipe.yaml, or onnx.version_converter"),
        ("ir_version", graph.ir_version, limits.ir_version, MINIMAL_IR),
    ):
        if number > limit:
            found, allowed = f"{what} {number}", f"{what} {limit} or older, which {reads}"
            yield Finding(file=where, rule="onnx-version", found=found, allowed=allowed, advice=advice)


def _graph(view: RepositoryView, model: ModelView, path: Path) -> tuple[OnnxGraph | None, Path]:
    """The file's graph, or, until an export makes it, the recipe's; and the file to name."""
    if path.is_file():
        try:
            return read_graph(path), path
        except OnnxError:  # reported by onnx-unreadable
            return None, path
    return promised_graph(view, model), view.root / "recipe.yaml"


def _torchscript(path: Path, release: TritonRelease) -> Iterator[Finding]:
    if not path.is_file():
        return
    with path.open("rb") as stream:
        if stream.read(4) != b"PK\x03\x04":
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
    missing = [each for each in lacking if not model_formats.torch_has(torch, each)]
    if missing:
        found = f"{listing(missing)}, which {model_formats.OLDEST_TORCH} lacks; {held}"
        yield Finding(file=path, rule="torchscript-operator", found=found, allowed="what the release's PyTorch has")


def _dali(path: Path, root: Path, release: TritonRelease) -> Iterator[Finding]:
    script = path.with_name("dali.py")
    if not path.is_file():
        if script.is_file() and release.at_least(NO_AUTOSERIALIZE_FROM):
            found = f"a pipeline as Python source, and release {release.version}"
            allowed = f"{path.name}, the pipeline serialised"
            yield Finding(file=script, rule="dali-autoserialize", found=found, allowed=allowed)
        return
    try:
        lacking = model_formats.beyond_dali(read_inside(path, root))
    except model_formats.FormatError:
        return
    if lacking:
        dali = model_formats.dali_of(release)
        held = f"release {release.version} holds {f'DALI {dali}' if dali else 'a DALI that is UNVERIFIED'}"
        found = f"{listing(lacking)}, which {model_formats.OLDEST_DALI} lacks; {held}"
        allowed = "operators and arguments that the release's DALI has"
        yield Finding(file=path, rule="dali-operator", found=found, allowed=allowed)
