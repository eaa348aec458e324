"""Reads YAML strictly: no key twice, keys are text, no dates, and the line of every value is kept.

PyYAML's own loader takes the last of two equal keys in silence and turns ``2024-01-01`` into a date; neither is wanted
in a file that decides what is deployed.
"""

from __future__ import annotations

import errno
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tritonstack.errors import InputError, Problem

Location = tuple[str | int, ...]
LARGEST_FILE = 1_000_000
MOST_VALUES = 100_000

_FILE_TYPES = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_SCALARS = {
    "tag:yaml.org,2002:null": "construct_yaml_null",
    "tag:yaml.org,2002:bool": "construct_yaml_bool",
    "tag:yaml.org,2002:int": "construct_yaml_int",
    "tag:yaml.org,2002:float": "construct_yaml_float",
}
_TEXT = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
_MERGE = "tag:yaml.org,2002:merge"


class YamlError(Exception):
    """A place in the file that cannot be read any further: its line, what was found, what is allowed, what to do."""

    def __init__(self, *, line: int | None, found: str, allowed: str, advice: str = "") -> None:
        """``line`` counts from 1; None where the whole file is meant."""
        super().__init__(found)
        self.line, self.found, self.allowed, self.advice = line, found, allowed, advice


@dataclass(kw_only=True)
class YamlDocument:
    """A YAML file's value, with where each part of it stands.

    Attributes:
        value: mappings, lists, texts, numbers, truth values and None.
        lines: location → line, counted from 1.
        texts: location of a scalar → the characters of the file.
        repeated: (location, first line, later line) of every key that stands twice in one mapping.
    """

    value: Any = None
    lines: dict[Location, int] = field(default_factory=dict)
    texts: dict[Location, str] = field(default_factory=dict)
    repeated: list[tuple[Location, int, int]] = field(default_factory=list)

    def line(self, location: Location) -> int | None:
        """The line of ``location``, or of the nearest part around it that the file has."""
        for length in range(len(location), -1, -1):
            if location[:length] in self.lines:
                return self.lines[location[:length]]
        return None


def read_yaml(path: Path, *, text: str | None = None) -> YamlDocument:
    """The YAML file at ``path``; with ``text``, that text under the file's name.

    Raises:
        InputError: it cannot be read, is no YAML, or uses what is not allowed here. Keys that stand twice are no error
            yet: they are listed in ``repeated``, so that they are reported together with all else.
    """
    if text is None:
        _check_file(path)
    try:
        return parse_yaml(path.read_text(encoding="utf-8") if text is None else text)
    except YamlError as error:
        file = f"{path}:{error.line}" if error.line else str(path)
        raise InputError([Problem(file=file, found=error.found, allowed=error.allowed, advice=error.advice)]) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError([Problem(file=str(path), found=f"unreadable: {reason}", allowed="a YAML file")]) from None


def _check_file(path: Path) -> None:
    """Raise InputError where ``path`` is no regular file: to read a FIFO or a device may never end."""
    advice = ""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if not path.is_symlink():
            return  # reading it says what is wrong
        looped = error.errno == errno.ELOOP
        found = f"a symbolic link to {path.readlink()}, which {'leads back to it' if looped else 'is not there'}"
        advice = "Remove the link, or point it at a file."
    else:
        if stat.S_ISREG(mode):
            return
        found = next((word for test, word in _FILE_TYPES if test(mode)), "something else")
    raise InputError([Problem(file=str(path), found=found, allowed="a YAML file", advice=advice)])


def parse_yaml(text: str) -> YamlDocument:
    """The YAML document in ``text``.

    Raises:
        YamlError: it is no single YAML document, or uses what is not allowed here.
    """
    if len(text) > LARGEST_FILE:
        raise YamlError(line=None, found=f"{len(text)} characters", allowed=f"at most {LARGEST_FILE} characters")
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError as error:
        raise YamlError(line=None, found=_first_line(str(error)), allowed="printable characters") from None
    try:
        node = loader.get_single_node()
        return _Builder(loader=loader).build(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        found = error.problem or error.context or "something else"
        raise YamlError(line=mark.line + 1 if mark else None, found=found, allowed="one YAML document") from None
    except yaml.YAMLError as error:
        raise YamlError(line=None, found=_first_line(str(error)), allowed="one YAML document") from None
    except RecursionError:
        raise YamlError(line=None, found="very deep nesting", allowed="a handful of levels") from None
    finally:
        loader.dispose()


class _Builder:
    """Turns PyYAML's nodes into values and notes where each came from."""

    def __init__(self, *, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._document = YamlDocument()
        self._open: set[int] = set()

    def build(self, node: yaml.Node | None) -> YamlDocument:
        self._document.value = None if node is None else self._value(node=node, location=())
        return self._document

    def _value(self, *, node: yaml.Node, location: Location) -> Any:
        line = _line(node)
        self._document.lines.setdefault(location, line)
        if len(self._document.lines) > MOST_VALUES:
            raise YamlError(line=line, found="more values than any environment has", allowed=f"at most {MOST_VALUES}")
        if isinstance(node, yaml.ScalarNode):
            self._document.texts[location] = node.value
            return self._scalar(node)
        if id(node) in self._open:
            raise YamlError(
                line=line, found="an alias (*) inside its own anchor (&)", allowed="aliases of finished values"
            )
        self._open.add(id(node))
        value = self._collection(node=node, location=location)
        self._open.discard(id(node))
        return value

    def _collection(self, *, node: yaml.Node, location: Location) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node=node, location=location)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self._value(node=item, location=(*location, i)) for i, item in enumerate(node.value)]
        raise _tag_error(node)

    def _mapping(self, *, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged = self._merge(node=value_node, location=location) | merged
        own: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                continue
            key = _key(key_node)
            if key in first:
                self._document.repeated.append(((*location, key), first[key], _line(key_node)))
                continue
            first[key] = _line(key_node)
            self._document.lines[(*location, key)] = first[key]
            own[key] = self._value(node=value_node, location=(*location, key))
        return merged | own

    def _merge(self, *, node: yaml.Node, location: Location) -> dict[str, Any]:
        """What ``<<: *anchor`` brings in; with a list of anchors the first that has a key wins."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise YamlError(line=_line(node), found="<< with something else", allowed="<< with a mapping")
            merged = self._value(node=source, location=location) | merged
        return merged

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag in _TEXT:
            return node.value
        if node.tag not in _SCALARS:
            raise _tag_error(node)
        try:
            return getattr(self._loader, _SCALARS[node.tag])(node)
        except (ValueError, KeyError, IndexError, OverflowError):
            raise YamlError(line=_line(node), found=f"{node.value[:80]!r}", allowed=f"a value of {node.tag}") from None


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag not in _TEXT:
        found = node.value if isinstance(node, yaml.ScalarNode) else "a list or mapping"
        raise YamlError(
            line=_line(node),
            found=f"the key {str(found)[:80]}",
            allowed="a text as the key",
            advice="Put the key in quotes (yes, no, on, off, null and numbers are no texts in YAML).",
        )
    return str(node.value)


def _tag_error(node: yaml.Node) -> YamlError:
    return YamlError(line=_line(node), found=f"the tag {node.tag}", allowed="plain mappings, lists and scalars")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "something else"
