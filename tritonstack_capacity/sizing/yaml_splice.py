"""Sets values in a YAML text and leaves every other character as it is: comments, quotes, order, indents, line ends.

The positions come from PyYAML, which reads the settings too, so that what is set is what is read. A round trip through
ruamel.yaml keeps comments, but not bytes: it writes ``null`` as nothing and lists with indents of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

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
        """``text`` is one that ``tritonstack.settings`` has read without a problem."""
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
