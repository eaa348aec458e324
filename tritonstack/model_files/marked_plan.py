"""The file that trtexec-stand-in writes in a plan's place: a mark in its first line, a JSON header, the ONNX graph.

It is no TensorRT engine, and no TensorRT reads it. Standard library only: publishing refuses such files, trtexec's
stand-in writes them, and the local Triton's backends read them from a copy of this file, ``tritonstack_marked_plan``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

MARK = b"tritonstack trtexec-stand-in: this is an ONNX graph and no TensorRT engine\n"
_HEADER_BYTES = 1 << 20


def is_marked(path: Path) -> bool:
    """Whether a file is one of trtexec-stand-in's; False where there is none."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(MARK)) == MARK


def write_marked_plan(path: Path, *, header: dict[str, Any], onnx: Path) -> None:
    """Write the file, whole or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with onnx.open("rb") as graph, temporary.open("wb") as stream:
            stream.write(MARK + json.dumps(header, sort_keys=True).encode() + b"\n")
            shutil.copyfileobj(graph, stream, 1 << 20)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_header(path: Path) -> dict[str, Any]:
    """What the stand-in was asked for: TensorRT's version, the GPU, the options.

    Raises ValueError where the file is not one of trtexec-stand-in's, or is damaged.
    """
    with path.open("rb") as stream:
        if stream.read(len(MARK)) != MARK:
            raise ValueError(f"{path.name} was not written by trtexec-stand-in")
        header: dict[str, Any] = json.loads(stream.readline(_HEADER_BYTES))
    return header


def read_graph(path: Path) -> bytes:
    """The ONNX graph in the file. Raises ValueError as :func:`read_header` does."""
    read_header(path)
    with path.open("rb") as stream:
        stream.seek(len(MARK))
        stream.readline(_HEADER_BYTES)
        return stream.read()
