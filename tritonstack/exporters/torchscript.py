"""Export a PyTorch module to TorchScript, as Triton's pytorch backend loads it."""

# mypy: disable-error-code="import-not-found"
# PyTorch is in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Any

import torch
from torch import nn

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.arguments import Arrays
from tritonstack.exporters.files import whole
from tritonstack.exporters.graph import Graph
from tritonstack.exporters.progress import say

_FIXED_DEVICE = re.compile(r': Device = prim::Constant\[value="([a-z:0-9]+)"\]\(\)(?: # ([^\n]*))?')
_LEFT_OUT = (".debug_pkl", "/.data/serialization_id")
_ALIGNMENT = 64
_HEADER = 30
"""Bytes of a zip entry's header before its name (APPNOTE.TXT 4.3.7)."""


def export(model: nn.Module, graph: Graph, path: Path, example: Arrays) -> None:
    """Trace the module and write ``path``. The same model gives the same bytes.

    The model is traced, not scripted: transformers' models read their configuration in ways that scripts cannot. What a
    trace may lose, an example's sizes instead of its axes, the proof looks for at two batch sizes.

    Args:
        model: takes tensors in the order of the graph's inputs, gives a tensor or a tuple in that of its outputs.
        graph: gives the inputs' order; TorchScript keeps neither names nor shapes.
        path: of the TorchScript file.
        example: inputs by name, batch size of at least 2.

    Raises:
        WorkFailedError: the model cannot be traced, or the trace holds on to the device that it was made on.
    """
    say("tracing to TorchScript")
    tensors = tuple(torch.from_numpy(example[tensor.name]) for tensor in graph.inputs)
    try:
        with torch.inference_mode():
            traced = torch.jit.trace(model, tensors, check_trace=False)
    except (RuntimeError, torch.jit.TracingCheckError) as error:
        raise WorkFailedError(f"PyTorch cannot trace the model: {error}") from error
    _check_devices(traced)
    with whole(path) as temporary, tempfile.TemporaryDirectory(dir=path.parent) as folder:
        raw = Path(folder) / "model.pt"
        torch.jit.save(traced, str(raw))
        _anonymise(raw, temporary)
    say(f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB")


def _check_devices(traced: Any) -> None:
    """Refuse a trace with a device in it: what is made on the CPU inside a model does not meet its inputs on a GPU."""
    found = {(device, place or "") for device, place in _FIXED_DEVICE.findall(str(traced.inlined_graph))}
    if found:
        places = "; ".join(sorted(f"{device} {place}".strip() for device, place in found))
        raise WorkFailedError(f"the trace makes tensors on a fixed device, which fails on another: {places}")


def _anonymise(raw: Path, path: Path) -> None:
    """Copy a TorchScript file without the lines of source that its code came from: they name this machine's paths.

    Each entry begins at a multiple of 64 bytes, as in PyTorch's own files, so that weights can be mapped into memory.
    """
    with zipfile.ZipFile(raw) as source, path.open("wb") as file, zipfile.ZipFile(file, "w") as target:
        for entry in source.infolist():
            if not entry.filename.endswith(_LEFT_OUT):
                with source.open(entry) as content, target.open(_aligned(entry, file), "w") as copy:
                    shutil.copyfileobj(content, copy, 2**20)


def _aligned(entry: zipfile.ZipInfo, file: IO[bytes]) -> zipfile.ZipInfo:
    """The entry at a fixed date, with padding as an extra field ``FB``, which PyTorch writes too."""
    info = zipfile.ZipInfo(entry.filename)
    info.file_size = entry.file_size
    start = file.tell() + _HEADER + len(entry.filename.encode()) + 4
    padding = -start % _ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    return info
