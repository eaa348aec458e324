"""The advice as an edit of an environment file: only the changed values of its text are replaced."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tritonstack.config import load_environment
from tritonstack.config.yaml_loader import YamlError, parse_yaml
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack_capacity.sizing.measurements import plain
from tritonstack_capacity.sizing.scaling_advice import COUNT, ScalingChange

# The positions come from PyYAML, which reads the settings too, so that what is set is what is read. A round trip
# through ruamel.yaml keeps comments, but not bytes: it writes ``null`` as nothing and lists with indents of its own.
LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


SHARED = "values that an anchor (&), an alias (*) or a merge (<<) shares with other places, or that carry a tag (!)"


class UneditableError(Exception):
    """A place that cannot be changed alone; the message says why, ``line`` counts from 1."""

    def __init__(self, node: yaml.Node, reason: str = SHARED) -> None:
        """``node`` is at the place."""
        super().__init__(reason)
        self.line = int(node.start_mark.line) + 1


@dataclass(frozen=True, kw_only=True)
class Splice:
    """``text`` in place of the characters from ``start`` up to ``end``."""

    start: int
    end: int
    text: str


class YamlText:
    """A YAML text with where each of its values stands."""

    def __init__(self, text: str) -> None:
        """``text`` is one that ``tritonstack.config`` has read without a problem."""
        self.text = text
        self.root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
        self._uses = Counter(_references(self.root))
        found = LINE_END.search(text)
        self._line_end = found[0] if found else "\n"

    def own(self, mapping: yaml.MappingNode, key: str) -> Any:
        """The node of ``key`` in ``mapping`` itself, not in what that merges; None where there is none.

        Raises:
            UneditableError: the mapping, or the value, is used elsewhere too, or the value has an anchor or a tag.
        """
        self._check(mapping)
        value = _pairs(mapping).get(key)
        if value is not None:
            self._check(value)
        return value

    def item(self, sequence: yaml.SequenceNode, index: int) -> Any:
        """The node at ``index``; raises as ``own`` does."""
        self._check(sequence)
        value = sequence.value[index]
        self._check(value)
        return value

    def set(self, mapping: yaml.MappingNode, values: Mapping[str, str], *, after: Sequence[str]) -> Iterator[Splice]:
        """What gives the keys of ``mapping`` the ``values`` (as YAML).

        A new key follows the first of the keys ``after`` that is there; else it comes first.
        """
        missing = {}
        for key, value in values.items():
            node = self.own(mapping, key)
            if node is None:
                missing[key] = value
                continue
            start, end = node.start_mark.index, node.end_mark.index
            yield Splice(start=start, end=end, text=value if end > start else f" {value}")
        if missing:
            yield self._insertion(mapping, missing, after=after)

    def quoted(self, mapping: yaml.MappingNode, key: str) -> str:
        """A new key as the first one of ``mapping`` is written: with quotes or without."""
        quote = mapping.value[0][0].style or ""
        return f"{quote}{key}{quote}"

    def _insertion(self, mapping: yaml.MappingNode, values: Mapping[str, str], *, after: Sequence[str]) -> Splice:
        pairs = [f"{self.quoted(mapping, key)}: {value}" for key, value in values.items()]
        first = mapping.value[0][0].start_mark
        line = f"{self._line_end}{' ' * first.column}"
        own = _pairs(mapping)
        before = next((own[key] for key in after if self._on_one_line(own.get(key))), None)
        if before is None:
            separator = ", " if mapping.flow_style else line
            return Splice(start=first.index, end=first.index, text="".join(f"{pair}{separator}" for pair in pairs))
        if mapping.flow_style:
            place, separator = before.end_mark.index, ", "
        else:
            found = LINE_END.search(self.text, before.end_mark.index)
            place, separator = found.start() if found else len(self.text), line
        return Splice(start=place, end=place, text="".join(f"{separator}{pair}" for pair in pairs))

    def _check(self, node: yaml.Node) -> None:
        start = node.start_mark.index
        marked = isinstance(node, yaml.ScalarNode) and self.text[start : start + 1] in ("&", "!")
        if marked or self._uses[id(node)] > 1:
            raise UneditableError(node)

    def _on_one_line(self, node: yaml.Node | None) -> bool:
        """Whether a value stands on one line, and there alone."""
        if not isinstance(node, yaml.ScalarNode) or self._uses[id(node)] > 1:
            return False
        return bool(node.start_mark.line == node.end_mark.line)


def spliced(text: str, splices: Sequence[Splice]) -> str:
    """``text`` with ``splices``, which do not overlap."""
    for splice in sorted(splices, key=lambda each: each.start, reverse=True):
        text = text[: splice.start] + splice.text + text[splice.end :]
    return text


def _pairs(mapping: yaml.MappingNode) -> dict[str, yaml.Node]:
    """Own keys and values; ``<<`` is not among them."""
    return {key.value: value for key, value in mapping.value if key.tag != "tag:yaml.org,2002:merge"}


def _references(root: Any) -> Iterator[int]:
    """The identity of each node as often as it is used: an alias is the node of its anchor once more."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield id(node)
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        for each in node.value:
            waiting.extend(each if isinstance(each, tuple) else (each,))


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
