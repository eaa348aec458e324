"""Rules about an archive against the instance that shall serve it: memory, disk, shared memory and Python."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.lint.datatypes import BYTES_OF
from tritonstack.models.lint.execution import environment_file
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field, at_line
from tritonstack.models.lint.python_minor import python_in_archive, python_in_names
from tritonstack.models.lint.tensors import elements
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Tensor

DEFAULT_SHM_BYTES = 16 << 20
"""What the serve script gives each Python instance to begin with: server docker/sagemaker/serve."""

_STUB = "triton_python_backend_stub"
_TEXT_BYTES = 1 << 10
"""What one element of text is taken for, for want of a size."""


def check_archive(view: RepositoryView) -> Iterator[Finding]:
    """What does not fit onto the instance."""
    instance = view.target.instance
    if instance is None:
        return
    size = max(view.target.unpacked_bytes or 0, sum(_bytes_of(model) for model in view.models.values()))
    on_gpu = sum(_bytes_of(model) * _gpu_instances(model) for model in view.models.values())
    if size > instance.memory_gib * 2**30:
        found = f"{_shown(size)} of files, and {instance.name} has {instance.memory_gib:g} GiB of memory"
        yield Finding(file=view.root, rule="archive-memory", found=found, allowed="a larger instance type")
    if on_gpu > instance.gpu_memory_mib * 2**20 * instance.gpu_count:
        total = instance.gpu_memory_mib * instance.gpu_count
        found = f"{_shown(on_gpu)} of files for the instances on the GPU, and {instance.name} has {total} MiB there"
        allowed = "fewer instances, or an instance type with more GPU memory"
        yield Finding(file=view.root, rule="archive-gpu-memory", found=found, allowed=allowed)
    disk = instance.local_nvme_gb or view.target.volume_gb
    # While it is unpacked an archive is there twice; weights hardly shrink.
    if disk and 2 * size > disk * 10**9:
        found = f"{_shown(size)} of files, packed and unpacked, on a disk of {disk} GB"
        yield Finding(
            file=view.root, rule="archive-disk", found=found, allowed="a larger disk: volume_size_gb, or type"
        )
    shared = sum(_instances(model) for model in view.models.values() if model.backend == "python")
    shared *= view.target.shm_bytes or DEFAULT_SHM_BYTES
    if shared > instance.memory_gib * 2**30 / 2:
        found = f"{_shown(shared)} of shared memory for Python instances on {instance.name}"
        allowed = f"half of its {instance.memory_gib:g} GiB: fewer instances, or a smaller shm_default_bytes"
        yield Finding(file=view.root, rule="shm-memory", found=found, allowed=allowed)


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What of a Python model does not fit to the release, or to the shared memory."""
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
    needed = batch * sum(_tensor_bytes(tensor) for tensor in tensors)
    given = view.target.shm_bytes or DEFAULT_SHM_BYTES
    if needed > given:
        found = f"{_shown(needed)} for one batch of {batch}, in and out, and instances begin with {_shown(given)}"
        allowed = "container.shm_default_bytes above that, or a smaller max_batch_size"
        yield at_line(model, model.config.node.line_of("max_batch_size"), "shm-size", found, allowed)


def _tensor_bytes(tensor: Tensor) -> int:
    count = elements(tensor.dims)
    return 0 if count is None else count * BYTES_OF.get(tensor.data_type, _TEXT_BYTES)


def _bytes_of(model: ModelView) -> int:
    paths = (model.on_disk(name) for name in model.files)
    return sum(path.stat().st_size for path in paths if path is not None)


def _instances(model: ModelView) -> int:
    groups = model.config.node.nodes("instance_group")
    return sum(max(1, group.integer("count")) for group in groups) if groups else 1


def _gpu_instances(model: ModelView) -> int:
    """Instances that hold the weights on a GPU; a Python model may hold them anywhere, so it counts once."""
    if model.is_ensemble or model.backend == "python":
        return 0
    groups = model.config.node.nodes("instance_group")
    on_gpu = [group for group in groups if group.text("kind") in ("", "KIND_AUTO", "KIND_GPU")]
    return sum(max(1, group.integer("count")) for group in on_gpu) if groups else 1


def _shown(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
