"""Adds models to an endpoint's ``models`` in the text of an environment file: comments, order and quotes stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tritonstack.config.endpoint import Endpoint
from tritonstack.config.environment import Environment
from tritonstack.config.loader import load_environment
from tritonstack.config.yaml_loader import YamlError, parse_yaml
from tritonstack.errors import InputError, Problem
from tritonstack.paths import write_text


@dataclass(frozen=True, kw_only=True)
class ModelEntries:
    """Models that an endpoint's entry in an environment file shall have beside those that it has."""

    file: Path
    endpoint: str
    added: tuple[str, ...]  # those that it lacked
    text: str | None  # the file's content with them; None where it cannot be changed without changing anything else

    @property
    def by_hand(self) -> str:
        """What a person writes into the file."""
        return f"{', '.join(self.added)} at the end of `models:` of endpoint {self.endpoint}"

    def write(self) -> None:
        """Change the file. Raises :class:`InputError` where its settings would break a rule, or the text is None."""
        if self.text is None:
            found = "models that other places share (an anchor, an alias), or YAML of an unusual form"
            advice = f"write it by hand: {self.by_hand}"
            raise InputError([Problem(file=str(self.file), found=found, allowed="a list of its own", advice=advice)])
        load_environment(self.file, text=self.text)
        write_text(self.file, self.text)


def endpoint_for_models(file: Path, *, name: str | None) -> tuple[Environment, Endpoint]:
    """The environment, and its endpoint that takes models: ``name``, else the only one in multi-model mode.

    An environment with ``endpoints: []`` gives the endpoint that :func:`model_entries` writes. Raises
    :class:`InputError` where the file is wrong, has no such endpoint, or has several to choose from.
    """
    if _has_no_endpoint(file):
        text = _with_endpoint(file.read_bytes().decode(), name or NEW_NAME, ("model",))
        environment = load_environment(file, text=text)
        return environment, environment.endpoints[0]
    environment = load_environment(file)
    known = {endpoint.name: endpoint for endpoint in environment.endpoints}
    taking = [endpoint.name for endpoint in environment.endpoints if endpoint.multi_model]
    if name in taking or (name is None and len(taking) == 1):
        return environment, known[name or taking[0]]
    allowed = f"--endpoint with one of {', '.join(taking)}" if taking else "an endpoint with `mode: multi-model`"
    if name is None:
        found = "several multi-model endpoints" if taking else f"endpoints that serve one model: {', '.join(known)}"
    elif name in known:
        found = f"endpoint {name} in single-model mode, which takes no further model"
        allowed += ", or by hand a variant beside its model (docs/updates.md, Two variants)"
    else:
        found = f"no endpoint {name}"
    raise InputError([Problem(file=str(file), field="endpoints", found=found, allowed=allowed)])


def model_entries(file: Path, *, endpoint: str, models: Sequence[str]) -> ModelEntries:
    """The change that puts models onto an endpoint of :func:`endpoint_for_models`."""
    text = file.read_bytes().decode()
    if _has_no_endpoint(file):
        after = _with_endpoint(text, endpoint, models)
        return ModelEntries(file=file, endpoint=endpoint, added=tuple(models), text=after)
    document = parse_yaml(text).value
    index = [each.get("name") for each in document["endpoints"]].index(endpoint)
    has = document["endpoints"][index]["models"]
    added = tuple(name for name in dict.fromkeys(models) if name not in has)
    changed = _inserted(text, index, added) if added else text
    try:
        found = parse_yaml(changed).value if changed is not None else None
    except YamlError:
        found = None
    document["endpoints"][index] = {**document["endpoints"][index], "models": [*has, *added]}
    return ModelEntries(file=file, endpoint=endpoint, added=added, text=changed if found == document else None)


NEW_NAME = "models"
_NEW_ENDPOINT = """
  - name: {name}
    mode: multi-model
    release: "25.09"    # the newest with an image and a host AMI that covers its CUDA
    instance_type: ml.g4dn.xlarge
    models: [{models}]"""
_NO_ENDPOINT = re.compile(r"^endpoints:[ \t]*(\[[ \t]*\])", re.MULTILINE)


def _has_no_endpoint(file: Path) -> bool:
    """Whether the file has ``endpoints: []``; False where it is none that can be read."""
    try:
        return bool(_NO_ENDPOINT.search(file.read_bytes().decode()))
    except (OSError, UnicodeDecodeError):
        return False


def _with_endpoint(text: str, name: str, models: Sequence[str]) -> str:
    """The text with a first endpoint in place of the empty list."""
    endpoint = _NEW_ENDPOINT.format(name=name, models=", ".join(models))
    return _NO_ENDPOINT.sub(lambda _: f"endpoints:{endpoint}", text, count=1)


def _inserted(text: str, index: int, names: Sequence[str]) -> str | None:
    """The text with the names at the end of the endpoint's list; None where it has no list of its own."""
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    endpoints = next((value for key, value in root.value if key.value == "endpoints"), None)
    own = {key.value: value for key, value in endpoints.value[index].value} if endpoints is not None else {}
    listed = own.get("models")
    if not isinstance(listed, yaml.SequenceNode) or not listed.value:
        return None
    last = listed.value[-1]
    if listed.flow_style:
        place, inserted = last.end_mark.index, "".join(f", {name}" for name in names)
    else:  # a line each, as the last one begins
        line_end = "\r\n" if "\r\n" in text else "\n"
        begins = text[text.rfind("\n", 0, last.start_mark.index) + 1 : last.start_mark.index]
        end = text.find(line_end, last.end_mark.index)
        place = len(text) if end < 0 else end
        inserted = "".join(f"{line_end}{begins}{name}" for name in names)
    return text[:place] + inserted + text[place:]
