"""Settings that a change adds, removes or gives other values: their paths in the YAML file, before and after."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.review.change import ABSENT, Absent
from tritonstack.review.snapshot import PIPELINE, Json
from tritonstack.review.stored import contents_of

FOLDER = "environments"
PIPELINE_FILE = "pipeline.yaml"
_NAMES = ("name", "environment")
"""Members that name an item of a list: of endpoints, and of a pipeline's stages."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting, as deep in as the two files differ; a list of plain values is one setting."""

    file: str  # ``environments/prod.yaml``
    keys: tuple[str, ...]  # ``("endpoints", "engines", "scaling", "maximum")``: an endpoint by its name
    before: Json | Absent  # ABSENT where it was not set: its default applied
    after: Json | Absent  # likewise

    @property
    def path(self) -> str:
        """``endpoints.engines.scaling.maximum``."""
        return ".".join(self.keys)


def settings_file(environment: str) -> str:
    """The file of an environment's settings, from the project's folder."""
    return PIPELINE_FILE if environment == PIPELINE else f"{FOLDER}/{environment}.yaml"


def changed_settings(environment: str, *, base: str, project: Path) -> tuple[Setting, ...]:
    """The settings of an environment that differ from those at ``base``, in the order of their paths.

    None where one side has no file, or one that is no YAML: then there is nothing to compare.
    """
    file = settings_file(environment)
    if not (project / file).is_file():
        return ()
    [old] = contents_of([(base, file)], repository=project)
    new = (project / file).read_text(encoding="utf-8")
    if old is None or old == new:
        return ()
    before, after = parsed(old), parsed(new)
    if not isinstance(before, dict) or not isinstance(after, dict):
        return ()
    return tuple(
        Setting(file=file, keys=keys, before=was, after=now) for keys, was, now in _differences(before, after, ())
    )


def parsed(text: str) -> Json:
    """The values of a YAML file, with anchors resolved; None where it is no YAML."""
    from tritonstack.config.yaml_loader import YamlError, parse_yaml  # noqa: PLC0415 - PyYAML: few reviews need it

    try:
        return parse_yaml(text).value
    except YamlError:
        return None


def undone(settings: Json, changes: Collection[Setting]) -> Json:
    """A file's values with some of its changes taken back."""
    made = copy.deepcopy(settings)
    for each in changes:
        holder = made
        for key in each.keys[:-1]:
            holder = _member(holder, key)
        _set(holder, each.keys[-1], each.before)
    return made


def _differences(before: Json, after: Json, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True):
        return
    sides = [_members(before), _members(after)]
    old, new = sides
    if old is None or new is None:
        yield keys, before, after
        return
    found = False
    for name in {**old, **new}:
        was, now = old.get(name, ABSENT), new.get(name, ABSENT)
        if was is ABSENT or now is ABSENT:
            found = True
            yield (*keys, name), was, now
        else:
            for each in _differences(was, now, (*keys, name)):
                found = True
                yield each
    if not found:  # the same items in another order
        yield keys, before, after


def _members(value: Json) -> dict[str, Json] | None:
    """The members of a map, or of a list whose items are named; None of any other value."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value:
        for name in _NAMES:
            names = [each.get(name) for each in value if isinstance(each, dict)]
            if len({each for each in names if isinstance(each, str)}) == len(value):
                return dict(zip(map(str, names), value, strict=True))
    return None


def _member(holder: Json, key: str) -> Json:
    return (_members(holder) or {})[key]


def _set(holder: Json, key: str, value: Json | Absent) -> None:
    """Give a member of a map or of a list of named items another value; ABSENT removes it."""
    if isinstance(holder, dict):
        if value is ABSENT:
            del holder[key]
        else:
            holder[key] = value
        return
    names: Sequence[str] = list(_members(holder) or {})
    if value is ABSENT:
        del holder[names.index(key)]
    elif key in names:
        holder[names.index(key)] = value
    else:
        holder.append(value)
