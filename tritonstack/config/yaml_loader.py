"""Strict YAML files as pydantic models, every problem with its line: environments, pipelines, recipes, scenarios.

PyYAML's own loader takes the last of two equal keys in silence and turns ``2024-01-01`` into a date. Here repeated keys
are errors, keys are text, there are no dates, and the line of every value is kept.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tritonstack.config.patterns import PATTERNS
from tritonstack.errors import InputError, Location, Problem, listing, nearest

Model = TypeVar("Model", bound=BaseModel)
LARGEST_FILE = 1_000_000
MOST_VALUES = 100_000
LONGEST_NUMBER = 1_000
"""Characters: a number to the base 60 (1:59:59), which YAML 1.1 has, takes time and memory by the square of them."""

_SCALARS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float"))
_TEXT = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
_MERGE = "tag:yaml.org,2002:merge"


class YamlError(Exception):
    """The file cannot be read beyond a line; has the parts of a Problem."""

    def __init__(self, *, line: int | None, found: str, allowed: str, advice: str = "") -> None:
        """``line`` counts from 1; None where the whole file is meant."""
        super().__init__(found)
        self.line, self.found, self.allowed, self.advice = line, found, allowed, advice


@dataclass(kw_only=True)
class YamlDocument:
    """A YAML file's value, and the place of each part in the file."""

    value: Any = None  # mappings, lists, texts, numbers, truth values and None
    lines: dict[Location, int] = field(default_factory=dict)  # location → line, counted from 1
    texts: dict[Location, str] = field(default_factory=dict)  # location of a scalar → the characters of the file
    # (location, first line, later line) of every key that is repeated in one mapping
    repeated: list[tuple[Location, int, int]] = field(default_factory=list)

    def line(self, location: Location) -> int | None:
        """The line of ``location``, or of the nearest part around it that the file has."""
        for length in range(len(location), -1, -1):
            if location[:length] in self.lines:
                return self.lines[location[:length]]
        return None


def read_yaml(path: Path, *, text: str | None = None) -> YamlDocument:
    """The YAML file at ``path``; with ``text``, that text under the file's name.

    Raises InputError where it cannot be read, is no YAML, or uses what is not allowed here. Repeated keys are
    no error yet: they are listed in ``repeated``, so that they are reported together with all else.
    """
    try:
        return parse_yaml(path.read_text(encoding="utf-8") if text is None else text)
    except YamlError as error:
        file = f"{path}:{error.line}" if error.line else str(path)
        raise InputError([Problem(file=file, found=error.found, allowed=error.allowed, advice=error.advice)]) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError([Problem(file=str(path), found=f"unreadable: {reason}", allowed="a YAML file")]) from None


def parse_yaml(text: str) -> YamlDocument:
    """The YAML document in ``text``. Raises YamlError unless it is a single document of the allowed subset."""
    if len(text) > LARGEST_FILE:
        raise YamlError(line=None, found=f"{len(text)} characters", allowed=f"at most {LARGEST_FILE} characters")
    try:
        loader = _Loader(text)
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
    except MemoryError:
        raise YamlError(
            line=None, found="more than the memory holds", allowed=f"at most {MOST_VALUES} values"
        ) from None
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """PyYAML's, which stops where a file has more nodes than any that is meant."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node, as PyYAML's, counted before it is made."""
        self.nodes += 1
        if self.nodes > MOST_VALUES:
            raise _too_many(self.peek_event().start_mark.line + 1)  # type: ignore[no-untyped-call]
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def _too_many(line: int) -> YamlError:
    return YamlError(line=line, found="more values than any environment has", allowed=f"at most {MOST_VALUES}")


class _Builder:
    """Turns PyYAML's nodes into values and notes where each came from."""

    def __init__(self, *, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._document = YamlDocument()
        self._open: set[int] = set()
        self._merged: dict[int, _Pairs] = {}  # id of a mapping that << names → its pairs, its own and merged ones
        self._pairs_read = 0  # by all merges together

    def build(self, node: yaml.Node | None) -> YamlDocument:
        self._document.value = None if node is None else self._value(node=node, location=())
        return self._document

    def _value(self, *, node: yaml.Node, location: Location) -> Any:
        line = _line(node)
        self._document.lines.setdefault(location, line)
        if len(self._document.lines) > MOST_VALUES:
            raise _too_many(line)
        if isinstance(node, yaml.ScalarNode):
            self._document.texts[location] = node.value
            return self._scalar(node)
        if id(node) in self._open:
            raise _circle(line)
        self._open.add(id(node))
        value: Any
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            value = self._mapping(node=node, location=location)
        elif isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            value = [self._value(node=item, location=(*location, i)) for i, item in enumerate(node.value)]
        else:
            raise _tag_error(node)
        self._open.discard(id(node))
        return value

    def _mapping(self, *, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        first: dict[str, int] = {}
        for key_node, _ in node.value:
            key = None if key_node.tag == _MERGE else _key(key_node)
            if key in first:
                self._document.repeated.append(((*location, key), first[key], _line(key_node)))
            elif key is not None:
                first[key] = _line(key_node)
        value: dict[str, Any] = {}
        for name, (key_node, value_node) in self._pairs(node, ()).items():
            place = (*location, name)
            self._document.lines[place] = _line(key_node)
            value[name] = self._value(node=value_node, location=place)
        return value

    def _pairs(self, node: yaml.MappingNode, within: tuple[int, ...]) -> _Pairs:
        """A mapping's pairs by their keys: those that ``<<`` brings in first, so that its own win; of two the first.

        Each mapping is merged once and each key kept once, so that nested merges do not multiply. ``within``: the
        mappings that are being merged.
        """
        if id(node) in within:
            raise _circle(_line(node))
        if id(node) in self._merged:
            return self._merged[id(node)]
        pairs: _Pairs = {}
        own: _Pairs = {}
        for key_node, value_node in node.value:
            if key_node.tag != _MERGE:
                own.setdefault(_key(key_node), (key_node, value_node))
                continue
            for merged in _merge_sources(value_node):
                brought = self._pairs(merged, (*within, id(node)))
                self._pairs_read += len(brought)
                if self._pairs_read > MOST_VALUES:
                    raise _too_many(_line(key_node))
                pairs |= brought
        self._merged[id(node)] = pairs | own
        return self._merged[id(node)]

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag in _TEXT:
            return node.value
        if node.tag not in _SCALARS:
            raise _tag_error(node)
        if len(node.value) > LONGEST_NUMBER:
            found = f"a number of {len(node.value):,} characters"
            allowed = f"at most {LONGEST_NUMBER:,}; a text in quotes"
            raise YamlError(line=_line(node), found=found, allowed=allowed)
        try:
            return self._loader.construct_object(node)
        except (ValueError, KeyError, IndexError, OverflowError):
            raise YamlError(line=_line(node), found=f"{node.value[:80]!r}", allowed=f"a value of {node.tag}") from None


_Pairs = dict[str, tuple[yaml.Node, yaml.Node]]


def _merge_sources(node: yaml.Node) -> list[yaml.MappingNode]:
    """The mappings that the value of ``<<`` names; of a list the last first, for an earlier one wins over it."""
    listed = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for each in listed:
        if not isinstance(each, yaml.MappingNode):
            raise YamlError(line=_line(each), found="<< with something else", allowed="<< with mappings")
    return list(reversed(listed))


def _circle(line: int) -> YamlError:
    return YamlError(line=line, found="an alias (*) inside its own anchor (&)", allowed="aliases of finished values")


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


LONGEST_SHOWN = 120
LONGEST_NUMBER_BITS = 4096


def shown(value: object) -> str:
    """A value as it would be written in YAML, cut where it is long."""
    if value is None:
        text = "null"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, dict):
        text = f"a mapping with {len(value)} keys" if value else "an empty mapping"
    elif isinstance(value, list | tuple):
        text = f"a list of {len(value)}" if value else "an empty list"
    elif isinstance(value, int) and value.bit_length() > LONGEST_NUMBER_BITS:
        text = f"a number of {value.bit_length()} bits"  # Python refuses to write it in decimal
    else:
        text = str(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({len(text)} characters)"


def unknown(name: str, known: Iterable[str], *, location: Location, kind: str) -> Iterator[Problem]:
    """The problem of a name at ``location`` that is not among those that are ``known``; ``kind``: what they are."""
    names = list(known)
    if name not in names:
        allowed = f"{kind}: {listing(names, none='none there')}"
        yield Problem(location=location, found=shown(name), allowed=allowed, advice=nearest(name, names))


def with_lines(problems: Iterable[Problem], path: Path, *, document: YamlDocument | None = None) -> list[Problem]:
    """The problems of the file at ``path`` with file and line (``environments/dev.yaml:12``), in the order of the file.

    A problem of another file stays as it is. Without ``document`` the file is read for its lines, if it exists.
    """
    if document is None:
        try:
            document = read_yaml(path) if path.is_file() else YamlDocument()
        except InputError:
            document = YamlDocument()
    placed: list[tuple[int, Problem]] = []
    for problem in problems:
        if problem.file not in (None, str(path)):
            placed.append((0, problem))
            continue
        line = document.line(problem.location or _location(problem.field)) or 0
        placed.append((line, dataclasses.replace(problem, file=f"{path}:{line}" if line else str(path))))
    return [problem for _, problem in sorted(placed, key=lambda item: (item[0], item[1].field))]


def _location(field: str) -> Location:
    """``endpoints[0].release`` → ``("endpoints", 0, "release")``."""
    parts = re.findall(r"\[[0-9]+\]|[^.\[]+", field)
    return tuple(int(part[1:-1]) if part[0] == "[" else part for part in parts)


@dataclass(frozen=True, kw_only=True)
class Validated(Generic[Model]):
    """A document as a model."""

    value: Model | None  # the model; None where the document has a problem that pydantic reports
    problems: list[Problem]  # repeated keys, and pydantic's errors; their files and lines are not set yet


def load_yaml(path: Path, model: type[Model]) -> Model:
    """The YAML file at ``path`` as a ``model``. Raises InputError with every problem of the file."""
    document = read_yaml(path)
    found = validate(document, model)
    if found.value is None or found.problems:
        raise InputError(with_lines(found.problems, path, document=document))
    return found.value


def validate(document: YamlDocument, model: type[Model], *, value: object = ...) -> Validated[Model]:
    """Validate a document as a ``model``; ``value`` replaces the document's own value."""
    value = document.value if value is ... else value
    problems = [
        Problem(
            location=location,
            found=f"{location[-1]} again in line {later}",
            allowed=f"each key once in a mapping (it is in line {first})",
            advice="Remove one of the two.",
        )
        for location, first, later in document.repeated
    ]
    try:
        return Validated(value=model.model_validate(value), problems=problems)
    except ValidationError as error:
        errors = [each for each in error.errors(include_url=False) if not _echoes_bad_items(each, value)]
    problems += [_problem(error=each, model=model, document=document) for each in errors]
    return Validated(value=None, problems=problems)


_KINDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
    "missing": "a value",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_pattern_mismatch": "a text that matches {pattern}",
    "too_long": "at most {max_length} entries",
    "too_short": "at least {min_length} entries",
    "literal_error": "{expected}",
}
_ADVICE = {
    "string_type": "Put the value in quotes.",
    "int_type": "Write a number without quotes or a fraction.",
    "bool_type": "Write true or false, without quotes.",
}


UNION_TAGS = frozenset({"|text", "|mapping", "|list"})
"""Parts that pydantic adds to a location for the kind of a value, as a text or a mapping; a file has none of it."""


def text_or_mapping(value: object) -> str:
    """The tag of a value's kind, for ``Discriminator``: so that a wrong value is reported as one of its own kind."""
    return "|mapping" if isinstance(value, dict | BaseModel) else "|text"


def list_or_mapping(value: object) -> str:
    """The same for a value that is a list or a mapping."""
    return "|list" if isinstance(value, list | tuple) else "|mapping"


def _echoes_bad_items(error: ErrorDetails, value: object) -> bool:
    """Whether a list is called too short only because its faulty items, each reported by itself, were not counted."""
    if error["type"] != "too_short":
        return False
    items = _at(value, _location_of(error))
    return isinstance(items, list) and len(items) >= error["ctx"]["min_length"]


def _location_of(error: ErrorDetails) -> Location:
    """Where the error is, without pydantic's marks for the key of a mapping and for the kind of a value."""
    location = error["loc"][:-1] if _about_a_key(error) else error["loc"]
    return tuple(part for part in location if part not in UNION_TAGS)


def _about_a_key(error: ErrorDetails) -> bool:
    """Whether a mapping's key is wrong: pydantic then ends the place with that key and ``[key]``."""
    place = error["loc"]
    return len(place) > 1 and place[-1] == "[key]" and place[-2] == error["input"]


def _at(value: object, location: Location) -> object:
    """The part of ``value`` at ``location``; None where there is none."""
    for part in location:
        try:
            value = value[part]  # type: ignore[index]  # what cannot be indexed so is caught
        except (TypeError, KeyError, IndexError):
            return None
    return value


def _problem(*, error: ErrorDetails, model: type[BaseModel], document: YamlDocument) -> Problem:
    """One of pydantic's errors: what the file has, what the field takes, and what it means."""
    location, is_key = _location_of(error), _about_a_key(error)
    if error["type"] == "extra_forbidden":
        name, fields = str(location[-1]), _model_at(model, location[:-1])
        return Problem(
            location=location,
            found=f"the field {name}: {shown(_at(document.value, location))}",
            allowed=f"the fields {', '.join(fields)}",
            advice=nearest(name, fields) or "Remove it.",
        )
    field = None if is_key else _field_at(model, location)
    allowed = _allowed(error)
    return Problem(
        location=location,
        found=_found(error=error, location=location, is_key=is_key, document=document),
        allowed=f"{allowed}: {field.description}" if field and field.description else allowed,
        advice=_advice(error),
    )


def _allowed(error: ErrorDetails) -> str:
    details = {
        name: f"{value:g}" if isinstance(value, float) else value for name, value in error.get("ctx", {}).items()
    }
    if error["type"] == "string_pattern_mismatch" and details["pattern"] in PATTERNS:
        return PATTERNS[details["pattern"]]
    if error["type"] in _KINDS:
        return _KINDS[error["type"]].format(**details)
    return error["msg"].removeprefix("Value error, ")  # pydantic's mark before the text of a validator


def _advice(error: ErrorDetails) -> str:
    if error["type"] == "string_pattern_mismatch" and "OOM" in error["input"]:
        return "Triton responds 507 to an error text with OOM in it, and SageMaker evicts models: keep it out of names."
    if error["input"] is None and error["type"] != "missing":
        return "Write a value: null means none, which this field does not take."
    return "" if isinstance(error["input"], dict | list) else _ADVICE.get(error["type"], "")


def _found(*, error: ErrorDetails, location: Location, is_key: bool, document: YamlDocument) -> str:
    if error["type"] == "missing":
        return "nothing"
    if is_key:
        return f"the key {shown(location[-1])}"
    if not location and document.value is None:
        return "an empty file"
    value = _at(document.value, location)
    text = document.texts.get(location)
    if text is not None and not isinstance(value, str) and text != shown(value):
        return f"{text or 'nothing'} (YAML reads {shown(value)})"
    return shown(value)


def _model_at(model: type[BaseModel], location: Location) -> Mapping[str, FieldInfo]:
    """The fields of the model that is at ``location``; empty where no model does."""
    if not location:
        return model.model_fields
    field = _field_at(model, location)
    inner = inner_model(field.annotation) if field else None
    return inner.model_fields if inner else {}


def _field_at(model: type[BaseModel], location: Location) -> FieldInfo | None:
    """The innermost declared field on the way to ``location``."""
    current: type[BaseModel] | None = model
    field: FieldInfo | None = None
    for part in location:
        if isinstance(part, int) or current is None:
            continue
        if part not in current.model_fields:
            return field
        field = current.model_fields[part]
        current = inner_model(field.annotation)
    return field


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model inside ``Model``, ``tuple[Model, ...]`` or ``Model | None``."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, BaseModel) else None
    for argument in typing.get_args(annotation):
        inner = inner_model(argument)
        if inner:
            return inner
    return None
