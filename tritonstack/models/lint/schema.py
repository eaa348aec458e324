"""Triton's own message definitions: whether protobuf's reader takes a ``config.pbtxt``, as the server's does.

The definitions are those that tritonclient carries for gRPC. Its package for gRPC wants grpcio, the module with the
messages does not; so the module is loaded by itself, and only when a configuration is read.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PLACE = re.compile(r"^(?P<line>[0-9]+):(?P<column>[0-9]+) : (?P<text>.*)$", re.DOTALL)
_MESSAGES = "model_config_pb2"


@dataclass(frozen=True)
class Refusal:
    """Where and why protobuf's reader stopped. ``line`` and ``column`` count from 1."""

    line: int
    column: int
    reason: str


def is_installed() -> bool:
    """Whether protobuf is there; without it our own reader of the text format decides alone."""
    return importlib.util.find_spec("google") is not None and importlib.util.find_spec("google.protobuf") is not None


def refusal_of(text: str) -> Refusal | None:
    """Why protobuf's reader refuses a configuration, or None where it takes it."""
    # Slow to import, and not needed for synthesis.
    text_format: Any = importlib.import_module("google.protobuf.text_format")
    try:
        text_format.Parse(text, messages().ModelConfig())
    except text_format.ParseError as error:
        match = _PLACE.match(str(error))
        if match is None:
            return Refusal(error.GetLine() or 1, error.GetColumn() or 1, str(error))
        return Refusal(int(match["line"]), int(match["column"]), _plain(match["text"]))
    return None


@functools.cache
def messages() -> Any:
    """The module with Triton's messages (``messages().ModelConfig`` is one's class)."""
    package = importlib.util.find_spec("tritonclient")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("tritonclient, which carries Triton's message definitions, is not installed")
    path = Path(package.submodule_search_locations[0]) / "grpc" / f"{_MESSAGES}.py"
    spec = importlib.util.spec_from_file_location(f"tritonclient.grpc.{_MESSAGES}", path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _plain(text: str) -> str:
    """The message without the quoted line that some of protobuf's errors begin with, and on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(line.removeprefix("'") for line in lines[-1:]) or "not protobuf's text format"
