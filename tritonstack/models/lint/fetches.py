"""Calls in a Python program that fetch weights or other files over the network, found in its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_ALWAYS = (
    "huggingface_hub.hf_hub_download",
    "huggingface_hub.snapshot_download",
    "torch.hub.load_state_dict_from_url",
    "torch.hub.download_url_to_file",
    "torch.utils.model_zoo.load_url",
    "urllib.request.urlopen",
    "urllib.request.urlretrieve",
    "requests.get",
    "requests.post",
    "requests.request",
    "requests.Session",
    "httpx.get",
    "httpx.stream",
    "httpx.Client",
    "urllib3.PoolManager",
    "boto3.client",
    "boto3.resource",
    "boto3.Session",
    "gdown.download",
    "wget.download",
    "tensorflow_hub.load",
    "nltk.download",
    "spacy.cli.download",
)
"""Functions that fetch whatever they are given, by their full names."""

_METHODS = ("from_pretrained",)
"""Methods that fetch where their first argument is a hub's name and no folder; ``local_files_only=True`` forbids it."""

_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)?")
_PRETRAINED = ("weights", "pretrained")


@dataclass(frozen=True)
class Fetch:
    """One call: as the program spells it, and where (from 1)."""

    call: str
    line: int
    column: int


def fetches(tree: ast.Module) -> Iterator[Fetch]:
    """The calls of a program that fetch something. What it cannot tell it lets pass: a path in a variable, a helper."""
    names = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _full_name(node.func, names)
            if _is_fetch(name, node):
                yield Fetch(f"{ast.unparse(node)[:80]}", node.lineno, node.col_offset + 1)


def _is_fetch(name: str, call: ast.Call) -> bool:
    last = name.rsplit(".", 1)[-1]
    if any(name == known or name.endswith(f".{known}") for known in _ALWAYS):
        return True
    if name == "torch.hub.load":
        return not _is_constant(call, "source", "local")
    if last in _METHODS:
        return _names_a_hub(call) and not _is_constant(call, "local_files_only", value=True)
    if name.startswith("torchvision.models."):
        return any(keyword.arg in _PRETRAINED and not _is_none(keyword.value) for keyword in call.keywords)
    return last == "pipeline" and name.startswith("transformers.") and _model_is_hub_name(call)


def _names_a_hub(call: ast.Call) -> bool:
    """Whether the first argument is a literal that is a hub's name: ``org/name`` or ``name``, and no path."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "pretrained_model_name_or_path"]
    first = call.args[0] if call.args else next(iter(named), None)
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and bool(_HUB_NAME.fullmatch(first.value))


def _model_is_hub_name(call: ast.Call) -> bool:
    """Whether a pipeline's model is left out, which is a default of the hub, or is a hub's name."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "model"]
    model = call.args[1] if len(call.args) > 1 else next(iter(named), None)
    if model is None:
        return True
    return isinstance(model, ast.Constant) and isinstance(model.value, str) and bool(_HUB_NAME.fullmatch(model.value))


def _is_constant(call: ast.Call, keyword: str, value: object) -> bool:
    return any(
        each.arg == keyword and isinstance(each.value, ast.Constant) and each.value.value == value
        for each in call.keywords
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, False)


def _imported(tree: ast.Module) -> dict[str, str]:
    """Name in the program → full name of what was imported under it."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _full_name(node: ast.expr, names: dict[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(names.get(node.id, node.id))
    return ".".join(reversed(parts))
