"""The advice as an edit of an environment file: a diff, and a file that is written only where it is still valid."""

from __future__ import annotations

import contextlib
import difflib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.settings import load_environment
from tritonstack.settings.yaml_source import YamlError, parse_yaml
from tritonstack_capacity.sizing.number import plain
from tritonstack_capacity.sizing.scaling_change import COUNT, ScalingChange
from tritonstack_capacity.sizing.yaml_splice import Splice, UneditableError, YamlText, spliced

AFTER = (COUNT, "instance_type")
"""Where a new ``scaling`` stands in an endpoint: after the first of these that is there."""
LIMITS_LAST = ("maximum", "minimum")
"""Where new fields stand in a ``scaling`` that is there."""
NO_LINE_END = "\\ No newline at end of file\n"


@dataclass(frozen=True, kw_only=True)
class EnvironmentEdit:
    """A file as it is and as it would be.

    Attributes:
        file: as the user named it.
        change: what is edited.
        before, after: the whole text, line ends as they are.
    """

    file: Path
    change: ScalingChange
    before: str
    after: str

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """Unified; empty where nothing changes."""
        before, after = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        lines = difflib.unified_diff(before, after, fromfile=str(self.file), tofile=str(self.file))
        return "".join(line if line.endswith("\n") else f"{line}\n{NO_LINE_END}" for line in lines)

    def write(self) -> None:
        """Puts the new text in the file's place, in one step; the file keeps its mode, a link stays a link.

        Raises:
            WorkFailedError: it cannot be written; the file is as it was.
        """
        target = self.file.resolve()
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(self.after.encode())
            shutil.copymode(target, unfinished)
            unfinished.replace(target)
        except OSError as error:
            raise WorkFailedError(str(_unwritten(self.file, target, error))) from error
        finally:
            with contextlib.suppress(OSError):  # a folder that takes no file gives none away either
                unfinished.unlink(missing_ok=True)


def environment_edit(file: Path, change: ScalingChange) -> EnvironmentEdit:
    """The edit of ``file``, which ``load_environment`` has read, that ``change`` asks for. Writes nothing.

    Raises:
        InputError: the edited file would break a rule of the settings, or the endpoint shares its values with others by
            an anchor, so that editing it would change them too.
    """
    before = file.read_bytes().decode()
    try:
        after = _edited(before, change)
    except UneditableError as error:
        raise InputError([_by_hand(file, change, error)]) from error
    try:
        load_environment(file, text=after)
    except InputError as error:
        raise InputError([_refused(file), *error.problems]) from error
    return EnvironmentEdit(file=file, change=change, before=before, after=after)


def _edited(text: str, change: ScalingChange) -> str:
    """``text`` with the changed settings; that nothing else changed is looked at, not trusted."""
    if not change.changed:
        return text
    known = YamlText(text)
    after = spliced(text, tuple(_splices(known, change)))
    try:
        value = parse_yaml(after).value
    except YamlError:
        value = None
    if value != _wanted(text, change):
        raise UneditableError(known.root, "a way of writing of which no value can be changed alone")
    return after


def _splices(text: YamlText, change: ScalingChange) -> Iterator[Splice]:
    values = {each.field: plain(each.after) for each in change.changed}
    count = {COUNT: values.pop(COUNT)} if COUNT in values else {}
    listed = text.own(text.root, "endpoints")
    if listed is None:
        raise UneditableError(text.root)
    endpoint = text.item(listed, _index(text.text, change))
    yield from text.set(endpoint, count, after=AFTER)
    if not values:
        return
    block = text.own(endpoint, "scaling")
    if change.endpoint.scaling is None:
        whole = ", ".join(f"{text.quoted(endpoint, field)}: {value}" for field, value in values.items())
        yield from text.set(endpoint, {"scaling": f"{{{whole}}}"}, after=AFTER)
    elif block is None:  # a merged one, of which a block of its own would keep nothing
        raise UneditableError(endpoint)
    else:
        yield from text.set(block, values, after=LIMITS_LAST)


def _index(text: str, change: ScalingChange) -> int:
    names = [each.get("name") for each in parse_yaml(text).value["endpoints"]]
    return names.index(change.endpoint.name)


def _wanted(text: str, change: ScalingChange) -> Any:
    """The values of ``text`` with the changed settings, and nothing else, replaced."""
    value = parse_yaml(text).value
    endpoint = value["endpoints"][_index(text, change)]
    for each in change.changed:
        number = float(each.after) if each.after % 1 else int(each.after)
        if each.field == COUNT:
            endpoint[COUNT] = number
        else:
            endpoint["scaling"] = {**(endpoint.get("scaling") or {}), each.field: number}
    return value


def _refused(file: Path) -> Problem:
    return Problem(
        file=str(file),
        found="the advice, written into it, breaks the rules below (lines are those of the edited file)",
        allowed="an edit that keeps them; nothing is written",
    )


def _unwritten(file: Path, target: Path, error: OSError) -> Problem:
    return Problem(
        file=str(file),
        found=f"not written: {error.strerror or error}, in {target.parent}, where the new text is put first",
        allowed="a folder with the permission and the room for a second file; the file is as it was",
        advice="give it both, or print the edit with --diff and apply it yourself",
    )


def _by_hand(file: Path, change: ScalingChange, error: UneditableError) -> Problem:
    wanted = ", ".join(f"{each.path}: {plain(each.after)}" for each in change.changed)
    return Problem(
        file=f"{file}:{error.line}",
        field=f"endpoints: {change.endpoint.name}",
        found=str(error),
        allowed="scaling that an edit can change without changing anything else; nothing is written",
        advice=f"write it by hand: {wanted}",
    )
