"""CloudFormation's intrinsic functions: what a value refers to, and how people read it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tritonstack.review.snapshot import Json

_VARIABLE = re.compile(r"\$\{(?!!)([^}]+)\}")
_ASSET = re.compile(r"\{asset:([^}]+)\}")
JSON_TEXT = "$json"
"""The name under which text that is JSON stands parsed in a snapshot."""


def uses(value: Json) -> Iterator[tuple[str, str | None]]:
    """Every name that a value refers to, and the attribute that it reads; None where it is the thing's ``Ref``.

    Pseudo parameters (``AWS::Region``) are among them; a name may come twice.
    """
    match value:
        case {"Ref": str(name), **rest} if not rest:
            yield name, None
        case {"Fn::GetAtt": [str(name), *attribute], **rest} if not rest:
            yield name, ".".join(map(str, attribute))
        case {"Fn::GetAtt": str(text), **rest} if not rest:
            yield _named(text)
        case {"Fn::Sub": [str(text), dict(variables)], **rest} if not rest:
            yield from (_named(name) for name in _VARIABLE.findall(text) if name not in variables)
            yield from uses(variables)
        case {"Fn::Sub": str(text), **rest} if not rest:
            yield from (_named(name) for name in _VARIABLE.findall(text))
        case dict():
            for each in value.values():
                yield from uses(each)
        case list():
            for each in value:
                yield from uses(each)


def references(value: Json) -> Iterator[str]:
    """Every name that a value refers to: logical ids, parameters and pseudo parameters."""
    return (name for name, _ in uses(value))


def is_function(value: Json) -> bool:
    """Whether a value is one intrinsic function."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))


def assets_in(value: Json) -> Iterator[str]:
    """The construct path of every asset that a value names."""
    match value:
        case str():
            yield from _ASSET.findall(value)
        case dict():
            for each in value.values():
                yield from assets_in(each)
        case list():
            for each in value:
                yield from assets_in(each)


def readable(value: Json) -> str:
    """A value on one line: references as ``${LogicalId.Attribute}``, anything else as JSON."""
    if isinstance(value, str):
        return value
    text = _function_text(value)
    if text is None:
        text = json.dumps(_inside(value), ensure_ascii=False, sort_keys=True)
    return text


def _function_text(value: Json) -> str | None:
    """An intrinsic function as people read it; None where the value is none that reads better than its JSON."""
    match value:
        case {"Ref": str(name), **rest} if not rest:
            text = f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)], **rest} if not rest:
            text = f"${{{name}.{attribute}}}"
        case {"Fn::GetAtt": str(name), **rest} if not rest:
            text = f"${{{name}}}"
        case {"Fn::Sub": str(name), **rest} if not rest:
            text = name.replace("${!", "${")
        case {"Fn::Join": [str(separator), [*parts]], **rest} if not rest:
            text = separator.join(readable(part) for part in parts)
        case {"Fn::If": [str(condition), then, otherwise], **rest} if not rest:
            text = f"{readable(then)} if {condition}, else {readable(otherwise)}"
        case {"Fn::Select": [index, of], **rest} if not rest:
            text = f"{readable(of)}[{index}]"
        case {"Fn::Split": [str(separator), of], **rest} if not rest:
            text = f"{readable(of)} split at {separator!r}"
        case _:
            return None
    return text


def _named(text: str) -> tuple[str, str | None]:
    """``LogicalId.Attribute``, or a name alone."""
    name, dot, attribute = text.partition(".")
    return name, attribute if dot else None


def _inside(value: Json) -> Json:
    """A value whose intrinsic functions are readable text."""
    text = _function_text(value)
    if text is not None:
        return text
    if isinstance(value, dict):
        return {key: _inside(each) for key, each in value.items()}
    return [_inside(each) for each in value] if isinstance(value, list) else value
