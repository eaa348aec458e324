"""Settings that a change adds, removes or gives other values: their paths in the YAML file, before and after."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tritonstack.review.change import ABSENT, Absent
from tritonstack.review.document import PhraseEntry, SettingEntry, closest
from tritonstack.review.intrinsics import texts_of
from tritonstack.review.resource_changes import differences
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
        Setting(file=file, keys=tuple(str(each).strip("[]") for each in one.path), before=one.before, after=one.after)
        for one in differences(before, after, names=_NAMES)
    )


def parsed(text: str) -> Json:
    """The values of a YAML file, with anchors resolved; None where it is no YAML."""
    from tritonstack.config.yaml_loader import YamlError, parse_yaml  # noqa: PLC0415 - PyYAML: few reviews need it

    try:
        return parse_yaml(text).value
    except YamlError:
        return None


def entry_of(
    setting: Setting, effect: tuple[PhraseEntry, ...] | None = None, *, together: tuple[str, ...] = ()
) -> SettingEntry:
    """A setting as data. ``effect``: what this change alone does; None where that is unknown."""
    before, after = texts_of(setting.before, setting.after)
    return SettingEntry(
        file=setting.file,
        path=setting.path,
        before=before,
        after=after,
        level=None if effect is None else closest(effect),
        effect=effect,
        together=together,
    )


def undone(settings: Json, changes: Collection[Setting]) -> Json:
    """A file's values with some of its changes taken back."""
    made = copy.deepcopy(settings)
    for each in changes:
        holder = made
        for key in each.keys[:-1]:
            holder = holder[_place(holder, key)]
        place = _place(holder, each.keys[-1])
        if each.before is ABSENT:
            del holder[place]
        elif isinstance(holder, list) and place == len(holder):
            holder.append(each.before)
        else:
            holder[place] = each.before
    return made


def _place(holder: Json, key: str) -> str | int:
    """The key of a map, or the index of the item of a list that has this name; of none, that of a new one."""
    if isinstance(holder, dict):
        return key
    named = (number for number, each in enumerate(holder) if key in {each.get(name) for name in _NAMES})
    return next(named, len(holder))
