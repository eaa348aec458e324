"""What each setting becomes at AWS: a template's property, a member of an API request, or a container's variable."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from scripts.documentation.markdown import code
from tritonstack.catalogue import load_catalogue

DATA = Path(__file__).with_name("setting_targets.yaml")
CONTAINER = "endpoints[].container"
"""The section whose fields become variables of the container, which the catalogue lists."""
ENVIRONMENT = "AWS::SageMaker::Model PrimaryContainer.Environment"
_PLACE = re.compile(
    r"(?P<of>(?:AWS|Custom)::[A-Za-z0-9:]+|[A-Z][a-z]+[A-Z][A-Za-z]+) (?P<path>[A-Za-z][\w.:]*(\[\][\w.:]*)*)"
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """One thing that a setting becomes.

    Attributes:
        of: a resource's type, or an API operation; empty where ``text`` is words.
        path: the property, or the member of the operation's request.
        text: as it is shown.
    """

    of: str
    path: str
    text: str

    @property
    def is_property(self) -> bool:
        """Whether it is in a template."""
        return "::" in self.of

    @property
    def is_request(self) -> bool:
        """Whether it is in an API request."""
        return bool(self.of) and not self.is_property


def shown(targets: Sequence[Target]) -> str:
    """Targets in a cell of a table; an option of tritonserver stands behind the variable that it is given by."""
    cells: list[str] = []
    for target in targets:
        is_option = target.text.startswith("--")
        text = code(target.text) if target.of or is_option else target.text
        if is_option and cells:
            cells[-1] += f" → {text}"
        else:
            cells.append(text)
    return "; ".join(cells)


@functools.cache
def setting_targets() -> dict[tuple[str, str], tuple[Target, ...]]:
    """(section, field) → what the field becomes."""
    read = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    named = {
        (section, field): tuple(map(_target, texts))
        for section, fields in read.items()
        for field, texts in fields.items()
    }
    return {**named, **_container_targets()}


def _target(text: str) -> Target:
    place = _PLACE.fullmatch(text)
    return Target(of=place["of"] if place else "", path=place["path"] if place else "", text=text)


def _container_targets() -> dict[tuple[str, str], tuple[Target, ...]]:
    """Of each variable that ``serve`` reads: its property, and the option of tritonserver that it becomes."""
    found: dict[tuple[str, str], tuple[Target, ...]] = {}
    for variable in load_catalogue().serve_variables.values():
        if variable.field is None:
            continue
        path = f"PrimaryContainer.Environment.{variable.name}"
        targets: tuple[Target, ...] = (Target(of="AWS::SageMaker::Model", path=path, text=variable.name),)
        if variable.flag.startswith("--"):
            flag = variable.flag.partition(" ")[0].partition("=<")[0]
            targets += (Target(of="", path="", text=flag),)
        key = (CONTAINER, variable.field)
        found[key] = found.get(key, ()) + targets
    arguments = found[CONTAINER, "additional_args"]
    cache = Target(of="", path="", text="--cache-config=local,size")
    return {
        **found,
        (CONTAINER, "response_cache_bytes"): (*arguments, cache),
        (CONTAINER, "environment"): (_target(ENVIRONMENT),),
    }
