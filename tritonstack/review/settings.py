"""Settings that a change adds, removes or gives other values, and what each of them does by itself."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tritonstack.disk import temporary_folder
from tritonstack.errors import TritonstackError
from tritonstack.review.assembly import read_assembly, synthesise
from tritonstack.review.change import ABSENT, Absent
from tritonstack.review.costs.price_book import price_book
from tritonstack.review.differences import differences
from tritonstack.review.document import PhraseEntry, SettingEntry, closest
from tritonstack.review.intrinsics import texts_of
from tritonstack.review.report import Known, phrases_between
from tritonstack.review.snapshot import ENVIRONMENTS, EnvironmentSnapshot, Json, settings_file
from tritonstack.review.stored import contents_of

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
    """A file's values with some of its changes undone."""
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


# What each setting does: the app is synthesised without that one change, and compared. This needs no knowledge of which
# setting makes which resource, and holds for constructs of one's own, too.
MOST = 12
"""Settings of an environment that are tried: a synthesis of one environment takes two to five seconds."""
AT_ONCE = 2
"""Syntheses: each takes a core and some 300 MB."""


def effects_of(
    settings: Iterable[Setting], *, now: EnvironmentSnapshot, project: Path, known: Known
) -> tuple[SettingEntry, ...]:
    """Effect of each changed setting of an environment, by a synthesis without it.

    Unknown where there are many of them, and where the app does not read its settings from the folder that
    ``-c environments-folder`` names.

    ``settings``: of one environment, all that change. ``now``: the environment, without what a pipeline adds.
    """
    changed = tuple(settings)
    if not 0 < len(changed) <= MOST:
        return tuple(entry_of(each) for each in changed)
    trials = _Trials(changed, now=now, project=project, known=known)
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        list(pool.map(trials.phrases, ([each] for each in changed)))
    effects = tuple(map(trials.effect, changed))
    # An app that reads another folder makes the environment without a file of this one, too: nothing is known then.
    if any(each.effect for each in effects) or trials.synthesised({}) is None:
        return effects
    return tuple(entry_of(each) for each in changed)


class _Trials:
    """Syntheses of one environment without some of its changes, each made once."""

    def __init__(self, changed: tuple[Setting, ...], *, now: EnvironmentSnapshot, project: Path, known: Known) -> None:
        self._changed, self._now, self._project, self._known = changed, now, project, known
        self._settings = parsed((project / changed[0].file).read_text(encoding="utf-8"))
        self._made: dict[frozenset[str], tuple[PhraseEntry, ...] | None] = {}

    def effect(self, setting: Setting) -> SettingEntry:
        """Effect of a setting; where reverting it alone is invalid, together with the nearest changed settings."""
        for depth in range(len(setting.keys), -1, -1):
            near = [each for each in self._changed if each.keys[:depth] == setting.keys[:depth]]
            phrases = self.phrases(near)
            if phrases is not None:
                together = tuple(each.path for each in near if each is not setting)
                return entry_of(setting, phrases, together=together)
        return entry_of(setting)

    def phrases(self, changes: Sequence[Setting]) -> tuple[PhraseEntry, ...] | None:
        """Effects of some of the changes; None where the environment is invalid without them."""
        key = frozenset(each.path for each in changes)
        if key not in self._made:
            self._made[key] = self._phrases(changes)
        return self._made[key]

    def _phrases(self, changes: Sequence[Setting]) -> tuple[PhraseEntry, ...] | None:
        import yaml  # noqa: PLC0415 - only here

        text = yaml.safe_dump(undone(self._settings, changes), sort_keys=False, allow_unicode=True)
        before = self.synthesised({f"{self._now.name}.yaml": text})
        if before is None:
            return None
        prices = self._known.prices(self._now.name)
        book = replace(prices.after, overrides=price_book(text, file=changes[0].file).overrides)
        known = replace(self._known, prices=lambda _environment: replace(prices, before=book), settings={})
        return phrases_between(before, self._now, known=known)

    def synthesised(self, files: Mapping[str, str]) -> EnvironmentSnapshot | None:
        """The environment of these files; None where the app rejects them or makes no such environment."""
        with temporary_folder("review") as temporary:
            folder, out = temporary / ENVIRONMENTS, temporary / "cdk.out"
            folder.mkdir()
            for file, text in files.items():
                (folder / file).write_text(text, encoding="utf-8")
            context = {"environments-folder": str(folder), "environments": self._now.name}
            try:
                synthesise(self._project, out, validation=False, context=context)
                made = read_assembly(out)
            except TritonstackError:
                return None
        return made.environments.get(self._now.name)
