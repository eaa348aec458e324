"""Rules about instance groups, the response cache, and archives on what serves them: instance, release, endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tritonstack.catalogue import InstanceType
from tritonstack.errors import InputError
from tritonstack.lint.python.python_model import environment_file, python_in_archive, python_in_names
from tritonstack.lint.registry import Finding
from tritonstack.lint.tensors import BYTES_OF, elements
from tritonstack.lint.view import RepositoryView, ServingTarget, at_field, at_line
from tritonstack.models.build_target import target_of
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import Node
from tritonstack.models.model_view import ModelView
from tritonstack.models.source import ArchiveSource
from tritonstack.naming import ArchiveName

if TYPE_CHECKING:
    from tritonstack.config import EndpointSettings

# Source: core src/model_config_utils.cc (NormalizeInstanceGroup, ValidateInstanceGroup, SetDefaultInstanceCount).
_KINDS = ("KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL")


def check_instances(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check instance groups."""
    if model.config.node.has("ensemble_scheduling"):
        return
    for group in model.config.node.nodes("instance_group"):
        kind = group.text("kind") or "KIND_AUTO"
        if kind not in _KINDS:
            found, allowed = f"kind: {kind}", "one of " + ", ".join(_KINDS)
            yield at_line(model, group.line_of("kind"), "instance-kind", found, allowed)
        if group.integer("count") < 0:
            yield at_line(model, group.line_of("count"), "instance-count", f"count: {group.integer('count')}")
        negative = [gpu for gpu in group.integers("gpus") if gpu < 0]
        if kind in ("KIND_CPU", "KIND_MODEL") and group.integers("gpus"):
            allowed = "gpus with KIND_GPU or KIND_AUTO only"
            yield at_line(model, group.line_of("gpus"), "instance-gpus", f"gpus with {kind}", allowed)
        elif negative:
            found, allowed = f"gpus: [ {negative[0]} ]", "the numbers of GPUs, from 0; no gpus for all of them"
            yield at_line(model, group.line_of("gpus"), "instance-gpus", found, allowed)
        elif view.target.instance is not None:
            yield from _against_instance(model, group, view.target.instance)
        elif beyond := [gpu for gpu in group.integers("gpus") if gpu != 0]:
            yield at_line(model, group.line_of("gpus"), "instance-second-gpu", f"gpus: [ {beyond[0]} ]")


def _against_instance(model: ModelView, group: Node, instance: InstanceType) -> Iterator[Finding]:
    """GPUs that are not there. Of KIND_AUTO Triton makes a group on the CPU, and then refuses it for its ``gpus``."""
    gone = [gpu for gpu in group.integers("gpus") if not 0 <= gpu < instance.gpu_count]
    if gone:
        allowed = f"0 to {instance.gpu_count - 1}, the GPUs of {instance.name}" if instance.gpu_count > 1 else "0 alone"
        found = f"gpus: [ {gone[0]} ] on {instance.name}"
        yield at_line(model, group.line_of("gpus"), "instance-gpu-missing", found, allowed)


DEFAULT_SHM_BYTES = 16 << 20
"""What the serve script gives each Python instance to begin with: server docker/sagemaker/serve."""

_STUB = "triton_python_backend_stub"
_TEXT_BYTES = 1 << 10
"""What one element of text is taken for, for want of a size."""


def check_size(view: RepositoryView) -> Iterator[Finding]:
    """Check that the models fit onto the instance."""
    instance = view.target.instance
    if instance is None:
        return
    size = archive_bytes(view)
    on_gpu = sum(_bytes_of(model) * gpu_instances(model) for model in view.models.values())
    cache = view.target.response_cache_bytes
    if size > instance.memory_gib * 2**30 - cache:
        found = f"{shown(size)} of files, and {instance.name} has {instance.memory_gib:g} GiB of memory"
        found += f", {shown(cache)} of it for the response cache" if cache else ""
        yield Finding(file=view.root, rule="archive-memory", found=found)
    if on_gpu > instance.gpu_memory_mib * 2**20 * instance.gpu_count:
        total = instance.gpu_memory_mib * instance.gpu_count
        found = f"{shown(on_gpu)} of files for the instances on the GPU, and {instance.name} has {total} MiB there"
        yield Finding(file=view.root, rule="archive-gpu-memory", found=found)
    disk = instance.local_nvme_gb
    # While it is unpacked an archive is there twice; weights hardly shrink.
    if disk and 2 * size > disk * 10**9:
        found = f"{shown(size)} of files, packed and unpacked, on a disk of {disk} GB"
        yield Finding(file=view.root, rule="archive-disk", found=found)
    shared = sum(_instances(model) for model in view.models.values() if model.backend == "python")
    shared *= view.target.shm_bytes or DEFAULT_SHM_BYTES
    if shared > instance.memory_gib * 2**30 / 2:
        found = f"{shown(shared)} of shared memory for Python instances on {instance.name}"
        allowed = f"half of its {instance.memory_gib:g} GiB: fewer instances, or a smaller shm_default_bytes"
        yield Finding(file=view.root, rule="shm-memory", found=found, allowed=allowed)


def archive_bytes(view: RepositoryView) -> int:
    """The size of an archive's content: as it was last built, or the files that are there where those are more."""
    return max(view.target.unpacked_bytes or 0, sum(_bytes_of(model) for model in view.models.values()))


def check_python_on_instance(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a Python model against the release and the shared memory."""
    if model.backend != "python":
        return
    yield from _shared_memory(view, model)
    release, file = view.target.release, environment_file(model)
    if release is None or not file or _STUB in model.files:
        return
    path = model.on_disk(file)
    found = python_in_archive(path) if path else python_in_names(model.files, below=file)
    if found is not None and found != release.python:
        entry = model.config.node
        said = f"an execution environment of Python {found}, and release {release.version} has {release.python}"
        allowed = f"Python {release.python}, or a {_STUB} of one's own in the model's directory"
        yield at_field(model, "parameters", "environment-python", said, allowed, entry)


def _shared_memory(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """One full batch, in and out, against what an instance begins with."""
    tensors = (*model.config.inputs, *model.config.outputs)
    batch = max(1, model.config.max_batch_size)
    sizes = ((elements(tensor.dims) or 0) * BYTES_OF.get(tensor.data_type, _TEXT_BYTES) for tensor in tensors)
    needed = batch * sum(sizes)
    given = view.target.shm_bytes or DEFAULT_SHM_BYTES
    if needed > given:
        found = f"{shown(needed)} for one batch of {batch}, in and out, and instances begin with {shown(given)}"
        yield at_field(model, "max_batch_size", "shm-size", found)


def _bytes_of(model: ModelView) -> int:
    paths = (model.on_disk(name) for name in model.files)
    return sum(path.stat().st_size for path in paths if path is not None)


def _instances(model: ModelView, *kinds: str) -> int:
    """How many instances there are, of these kinds alone where some are given."""
    groups = model.config.node.nodes("instance_group")
    counted = (group for group in groups if not kinds or group.text("kind") in kinds)
    return sum(max(1, group.integer("count")) for group in counted) if groups else 1


def gpu_instances(model: ModelView) -> int:
    """Instances that hold the weights on a GPU; a Python model may hold them anywhere, so it counts as none."""
    if model.is_ensemble or model.backend == "python":
        return 0
    return _instances(model, "", "KIND_AUTO", "KIND_GPU")


def shown(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


def target_of_archive(
    source: ArchiveSource, endpoint: EndpointSettings, environment: str, places: Places, *, region: str | None = None
) -> ServingTarget:
    """An endpoint, with the size of an archive that it serves as that was last built, for the endpoint or for here."""
    target = ServingTarget.of_endpoint(endpoint, environment, region=region)
    try:
        name = ArchiveName(model=source.name, digest=model_digest(source))
        targets = {target_of(source, platform): None for platform in (endpoint.platform, None)}
    except InputError:  # a finding of other rules
        return target
    manifests = (places.built(name, target) for target in targets)
    size = next((manifest.archive.tar_bytes for manifest in manifests if manifest is not None), None)
    return replace(target, unpacked_bytes=size)


# Source: triton-inference-server/server docs/user_guide/response_cache.md; core src/model_config_utils.cc
# (ValidateModelConfig); core pull requests 338 and 352 (May 2024: requests to an ensemble itself).
ENSEMBLES_SINCE = "24.05"
"""The first release whose ensembles have responses of their own in the cache."""


def check_response_cache(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a model's ``response_cache``, by itself and on the endpoint."""
    cache, release = _cache_of(model), view.target.release
    if cache is None:
        return
    steps = {step.text("model_name") for ensemble in view.ensembles for step in ensemble.config.steps}
    named = (view.models.get(step.text("model_name")) for step in model.config.steps)
    own = [model, *(each for each in named if each is not None)]
    other = "decoupled" if any(each.config.decoupled for each in own) else ""
    other = "sequence_batching" if model.config.node.has("sequence_batching") else other
    stateful = [each.name for each in own if each.config.node.has("sequence_batching")]
    if other:
        yield at_line(model, cache.line, "response-cache", f"response_cache with {other}")
    elif stateful:
        found = f"response_cache of an ensemble with the sequences of {stateful[0]}"
        allowed = "one of the two: a repeated request gets the earlier response, whatever the state of the sequence"
        yield at_line(model, cache.line, "response-cache-ensemble", found, allowed)
    elif view.target.response_cache is False:
        found = f"response_cache, and the container of {view.target.name} has none"
        yield at_line(model, cache.line, "response-cache-off", found)
    elif model.is_ensemble and release is not None and not release.at_least(ENSEMBLES_SINCE):
        found = f"response_cache of an ensemble, with release {release.version}"
        allowed = f"release {ENSEMBLES_SINCE} or newer, or response_cache in a model of its steps"
        yield at_line(model, cache.line, "response-cache-ensemble", found, allowed)
    elif model.name in steps and gpu_instances(model):
        found = "response_cache of an ensemble's step, with instances on the GPU"
        yield at_line(model, cache.line, "response-cache-step", found)


def _cache_of(model: ModelView) -> Node | None:
    """A model's ``response_cache``, where it is switched on."""
    cache = model.config.node.node("response_cache")
    return cache if cache is not None and cache.flag("enable") else None


UNLIKE = 10
"""Times another archive's size, whose load takes that much longer and evicts so many; also times another's latency."""
LARGE = 0.05
"""Share of the GPU's memory: of a smaller one twenty fit, and its load neither evicts many nor takes long."""


def lint_endpoint(
    archives: Mapping[str, RepositoryView], *, target: ServingTarget, file: Path, line: int = 0
) -> Iterator[Finding]:
    """Findings about an endpoint that serves ``archives``, by their names; at ``line`` of its environment's file."""
    models = [model for view in archives.values() for model in view.models.values()]
    if target.response_cache and not any(_cache_of(model) for model in models):
        found = f"a response cache in {target.name}, which none of its models uses"
        yield Finding(file=file, line=line, rule="response-cache-unused", found=found)
    if not target.multi_model or target.instance is None:
        return
    # Of an archive that is not built only a part of the files may be there.
    sizes = {name: archive_bytes(view) for name, view in archives.items() if view.target.unpacked_bytes is not None}
    if not sizes:
        return
    large, small = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    if sizes[large] > max(UNLIKE * sizes[small], LARGE * target.instance.gpu_memory_mib * 2**20):
        found = f"{large} with {shown(sizes[large])} beside {small} with {shown(sizes[small])} on {target.name}"
        allowed = f"models less than {UNLIKE} times each other's size on one multi-model endpoint"
        advice = f"Give {large} an endpoint of its own, or one with models like it."
        yield Finding(file=file, line=line, rule="mixed-sizes", found=found, allowed=allowed, advice=advice)
