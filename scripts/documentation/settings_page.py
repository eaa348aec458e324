"""``docs/reference/settings.md`` and ``recipes.md``: every field of a YAML file, from its pydantic model."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from scripts.documentation.markdown import code, head, link, table
from scripts.documentation.setting_targets import setting_targets, shown
from tritonstack.config.environment import Environment
from tritonstack.config.patterns import PATTERNS
from tritonstack.models.recipe import Recipe

SHOWN_VALUES = 8
"""Longer lists of allowed values stand once, at the end of the page."""

LIMITS = {
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "exclusiveMinimum": "> {}",
    "exclusiveMaximum": "< {}",
    "minLength": "{} characters or more",
    "maxLength": "{} characters at most",
    "minItems": "{} or more",
    "maxItems": "{} at most",
    "minProperties": "{} or more",
    "maxProperties": "{} at most",
}
SIMPLE: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    type(None): "null",
    Any: "anything",
}


Choice = Callable[[list[str]], str]
"""What is shown for a list of allowed values."""


def settings_page() -> str:
    """Every field of an environment file."""
    return _page(
        Environment,
        title="Settings: environments/*.yaml",
        source="the settings' types",
        text="A field without a default must be there. What no field alone can tell is checked too, before anything is "
        "synthesised: whether AWS has the image in the region, the type enough GPUs, a rollout enough instances. "
        "Every problem is reported at once, with field, found, allowed and what to do. "
        "Editors complete the files by `schemas/environment.schema.json`. The column «becomes» names the property of a "
        "template, the member of an API request or the container's variable (→ tritonserver's option) that has it.\n",
        becomes=lambda section, field: shown(setting_targets().get((section, field), ())),
    )


def recipes_page() -> str:
    """Every field of a model folder's recipe."""
    return _page(
        Recipe,
        title="Recipes: model_repos/*/recipe.yaml",
        source="the recipe's types",
        text="What a model folder is made of and how it is proved: [model folders](../model-folders.md). "
        "Editors complete the files by `schemas/recipe.schema.json`.\n",
    )


def sections(model: type[BaseModel], path: str, found: dict[type[BaseModel], str]) -> None:
    """Add the path of the file's own mapping and of each below it, in the order of their fields; of each its first."""
    if model in found:
        return
    found[model] = path
    for name, field in model.model_fields.items():
        for suffix, below in nested_models(field.annotation):
            sections(below, f"{path}.{field.alias or name}{suffix}".lstrip("."), found)


def _page(
    model: type[BaseModel], *, title: str, source: str, text: str, becomes: Callable[[str, str], str] | None = None
) -> str:
    """The page of a YAML file. ``becomes``: a last cell for a field, by its section's path and its name."""
    values: dict[str, list[str]] = {}
    places: dict[type[BaseModel], str] = {}
    sections(model, "", places)
    parts = [head(title, source=source), text]
    for section, path in places.items():
        if path:
            parts.append(f"## {path}\n")
        if path and section.__doc__:
            parts.append(" ".join(section.__doc__.partition("\n\n")[0].split()) + "\n")
        schema = section.model_json_schema()
        rows = []
        for name, field in section.model_fields.items():
            key = field.alias or name
            choice = partial(_choice, values, f"{path}.{key}".lstrip("."))
            allowed = _allowed(schema["properties"][key], schema, choice)
            below = [f"fields: {link(places[each], places[each])}" for _, each in nested_models(field.annotation)]
            choices = "; ".join([*allowed, *below])
            cells = [code(key), _type(field.annotation), _default(field), choices, field.description or ""]
            rows.append(cells if becomes is None else [*cells, becomes(path, key)])
        columns = ["field", "type", "default", "allowed", "meaning"]
        parts.append(table(columns if becomes is None else [*columns, "becomes"], rows))
    if values:
        parts.append("## Allowed values\n")
        parts += [
            f"### Values of {name}\n\n{', '.join(code(each) for each in listed)}\n" for name, listed in values.items()
        ]
    return "\n".join(parts)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "none: required"
    default = field.default
    if field.default_factory is not None or default is PydanticUndefined or isinstance(default, BaseModel):
        return code("{}")
    return code(json.dumps(default, ensure_ascii=False, default=list))


def _type(annotation: Any) -> str:
    """A Python type in the words of a YAML file."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        description = _type(arguments[0])
    elif origin in (Union, types.UnionType):
        description = " or ".join(dict.fromkeys(_type(each) for each in arguments))
    elif origin is Literal:
        description = " or ".join(dict.fromkeys(SIMPLE[type(each)] for each in arguments))
    elif origin in (tuple, list):
        description = f"list of {_type(arguments[0])}"
    elif origin in (dict, Mapping):
        description = f"mapping of {_type(arguments[0])} to {_type(arguments[1])}"
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        description = "mapping"
    else:
        description = SIMPLE[annotation]
    return description


def nested_models(annotation: Any, suffix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Models of a field's values, each with its suffix: ``[]`` in a list, ``.*`` in a mapping."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield suffix, annotation
    elif origin in (tuple, list):
        yield from nested_models(arguments[0], f"{suffix}[]")
    elif origin is dict:
        yield from nested_models(arguments[1], f"{suffix}.*")
    elif origin is Annotated:
        yield from nested_models(arguments[0], suffix)
    elif origin in (Union, types.UnionType):
        for each in arguments:
            yield from nested_models(each, suffix)


def _allowed(schema: dict[str, Any], whole: dict[str, Any], choice: Choice) -> list[str]:
    """What a value must be, in words: limits, patterns, choices."""
    if "$ref" in schema:
        target = whole["$defs"][schema["$ref"].rpartition("/")[2]]
        return [] if target.get("type") == "object" else _allowed(target, whole, choice)
    description: list[str] = []
    if "const" in schema:
        description.append(code(json.dumps(schema["const"])))
    if "enum" in schema:
        description.append(choice([each if isinstance(each, str) else json.dumps(each) for each in schema["enum"]]))
    if "pattern" in schema:
        description.append(PATTERNS.get(schema["pattern"]) or code(schema["pattern"]))
    description += [text.format(schema[key]) for key, text in LIMITS.items() if key in schema]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            description += [f"each: {each}" for each in _allowed(schema[key], whole, choice)]
    for key in ("anyOf", "oneOf"):
        for each in schema.get(key, []):
            description += [text for text in _allowed(each, whole, choice) if text not in description]
    return description


def _choice(values: dict[str, list[str]], field: str, choices: list[str]) -> str:
    """Few values as they are; many as a link to where they are, which fields with the same values share."""
    if len(choices) <= SHOWN_VALUES:
        return ", ".join(code(each) for each in choices)
    name = next((name for name, listed in values.items() if listed == choices), field)
    values[name] = choices
    return link(f"one of {len(choices)}", f"Values of {name}")
