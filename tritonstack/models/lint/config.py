"""Rules about config.pbtxt as text: protobuf's text format, fields of the release, names, keys of ``parameters``."""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.resources
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.view import ModelView, RepositoryView, at_field, at_line
from tritonstack.models.model_config import Complaint, Node

# The definitions are those that tritonclient carries for gRPC. Its package for gRPC wants grpcio, the module with the
# messages does not; so the module is loaded by itself, and only when a configuration is read.


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


_ONLY_IN_PYTHON = ('Expected "true" or "false".', "surrogates not allowed")
"""What protobuf's reader in Python refuses and the one in C++ takes: 0x1 for true, and two escapes for one letter."""


def check_syntax(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What Triton's reader refuses, all of it where our own reader finds more than the first.

    Two readers look at it: protobuf's, whose definitions are the server's and which stops at the first mistake, and
    ours, which finds them all, says which names are near, and is as strict as protobuf's reader in C++, which is the
    server's (the one in Python takes an unknown escape and a sign before a number).
    """
    refusal = refusal_of(model.text) if is_installed() else None
    complaints = model.config.complaints
    node = model.config.node
    if refusal is None and not complaints and not node.scalars and not node.messages:
        allowed = "a model's configuration: backend, max_batch_size, input and output"
        rule = "config-empty" if view.is_built else "auto-completed"
        found = "an empty file" if model.has_config else "no config.pbtxt"
        yield Finding(file=model.file, rule=rule, found=found, allowed=allowed)
    for complaint in complaints:
        at_refusal = refusal is not None and complaint.line == refusal.line
        yield Finding(
            file=model.file,
            line=complaint.line,
            column=refusal.column if refusal and at_refusal else 0,
            rule="config",
            found=f"{complaint.path}: {complaint.found}" if complaint.path else complaint.found,
            allowed=complaint.allowed,
            advice=_near(complaint),
        )
    at_ours = refusal is not None and any(complaint.line == refusal.line for complaint in complaints)
    if refusal is not None and not at_ours and not refusal.reason.endswith(_ONLY_IN_PYTHON):
        yield Finding(
            file=model.file,
            line=refusal.line,
            column=refusal.column,
            rule="config",
            found=refusal.reason,
            allowed="protobuf's text format, with the fields of Triton's ModelConfig",
        )


def _near(complaint: Complaint) -> str:
    """The names among the allowed ones that an unknown one is near to."""
    words = complaint.found.replace('"', "").split()
    near = difflib.get_close_matches(words[-1] if words else "", complaint.allowed.removeprefix("one of ").split(", "))
    return f"did you mean {' or '.join(near)}?" if near else ""


# Source: the message definitions inside of server 2.51.0 (release 24.10), against those of tritonclient 2.73.0.


UNKNOWN_UP_TO = "24.10"
"""The last release that is known not to have these fields."""

_IN_MODEL = "model_metrics"
_IN_ENSEMBLE = "max_inflight_requests"


def check_newer_fields(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """The fields that the release asked for does not know."""
    release = view.target.release
    if release is None or release.version > UNKNOWN_UP_TO:  # both are YY.MM
        return
    node = model.config.node
    scheduling = node.node("ensemble_scheduling")
    places = [(_IN_MODEL, node), (_IN_ENSEMBLE, scheduling)]
    for field, message in places:
        if message is not None and message.has(field):
            allowed = f"no {field}: release {release.version} does not know it"
            yield at_line(
                model, message.line_of(field), "field-newer", f"{field} in release {release.version}", allowed
            )


OUT_OF_MEMORY_WORDS = (
    "CUDA out of memory",
    "CUDA_OUT_OF_MEMORY",
    "Out of memory",
    "Out Of Memory",
    "out of memory",
    "MemoryError",
    "OutOfMemory",
    "OOM",
    "Dst tensor is not initialized",
    "Src tensor is not initialized",
    "CNMEM_STATUS_OUT_OF_MEMORY",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "Failed to allocate memory",
    "failed to allocate memory",
    "No space left on device",
)
"""Texts in an error that the front end takes for a full GPU (507), case-sensitive.

Source: server src/sagemaker_server.cc (SageMakerMMECheckOOMError).
"""


def check_names(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What the names of a model and its tensors do wrong."""
    yield from _directory(view, model)
    tensors = [(tensor.name, tensor.line) for tensor in (*model.config.inputs, *model.config.outputs)]
    for text, line in ((model.name, model.config.node.line_of("name")), *tensors):
        word = next((word for word in OUT_OF_MEMORY_WORDS if word in text), None)
        if word:
            found = f"{word!r} in the name {text}"
            advice = "each error that quotes it would make SageMaker unload other models (507)"
            yield at_line(model, line, "out-of-memory-in-name", found, "any other name", advice)


def _directory(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """The directory's name against the configuration's. The addressed model's is hidden in multi-model mode."""
    name = model.config.name
    if not name or name == model.name:
        return
    multi_model = view.target.multi_model
    is_hidden = multi_model or (multi_model is None and not view.is_built)  # what is built may be served in either mode
    rule = "name-differs-hidden" if is_hidden and model.name == view.served else "name-differs"
    yield at_field(model, "name", rule, f'name: "{name}"', f'name: "{model.name}", the directory\'s name, or none')


@dataclass(frozen=True)
class KnownParameters:
    """The parameters that a backend reads, and where that was read."""

    keys: frozenset[str]
    values: Mapping[str, tuple[str, ...]]
    source: str


@functools.cache
def known_parameters() -> Mapping[str, KnownParameters]:
    """Backend → what it knows, from ``backend_parameters.json``; a backend that is not in it takes any key."""
    content = json.loads(importlib.resources.files(__package__).joinpath("backend_parameters.json").read_text())
    return {
        backend: KnownParameters(
            keys=frozenset(entry["keys"]),
            values={key: tuple(values) for key, values in entry.get("values", {}).items()},
            source=entry["source"],
        )
        for backend, entry in content["backends"].items()
    }


def check_parameters(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Parameters that the backend does not know, or whose value it does not know."""
    known = known_parameters().get(model.backend)
    if known is None:
        return
    for key, entry in model.config.node.entries("parameters").items():
        line = entry.line if isinstance(entry, Node) else model.config.node.line_of("parameters")
        value = entry.text("string_value") if isinstance(entry, Node) else ""
        if key not in known.keys:
            near = difflib.get_close_matches(key.upper(), {each.upper(): each for each in known.keys}, n=1)
            advice = f"did you mean {next(each for each in known.keys if each.upper() == near[0])}?" if near else ""
            allowed = ", ".join(sorted(known.keys))
            yield at_line(model, line, "parameter-unknown", f"parameter {key}", allowed, advice)
        elif key in known.values and value not in known.values[key]:
            allowed = ", ".join(known.values[key])
            yield at_line(model, line, "parameter-value", f'parameter {key}: "{value}"', allowed)
