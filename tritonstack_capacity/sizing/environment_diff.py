"""The advised scaling as a unified diff of an environment file, which ``git apply`` takes. Writes nothing."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tritonstack.config import load_environment
from tritonstack.config.yaml_loader import YamlError, parse_yaml
from tritonstack.errors import InputError, Problem
from tritonstack_capacity.sizing.measurements import plain
from tritonstack_capacity.sizing.scaling_advice import COUNT, ScalingChange

NO_LINE_END = "\\ No newline at end of file\n"
Splice = tuple[int, int, str]
"""Start and end of the characters that a text replaces."""


def environment_diff(file: Path, change: ScalingChange) -> str:
    """The diff of ``file``, which ``load_environment`` has read; "" where nothing changes.

    Only the changed values are replaced, so that comments, order and quotes stay.

    Raises InputError: the file would break a rule of the settings, or its YAML shares the values with other places (an
    anchor, a merge), so that a diff would change those too.
    """
    if not change.changed:
        return ""
    before = file.read_bytes().decode()
    after = _edited(before, change)
    if after is None:
        wanted = ", ".join(f"{each.path}: {plain(each.after)}" for each in change.changed)
        found = "values that other places share (an anchor, an alias, a merge), or YAML of an unusual form"
        allowed, advice = "scaling that can be changed without changing anything else", f"write it by hand: {wanted}"
        field = f"endpoints: {change.endpoint.name}"
        raise InputError([Problem(file=str(file), field=field, found=found, allowed=allowed, advice=advice)])
    try:
        load_environment(file, text=after)
    except InputError as error:
        found = "the advice breaks the rules below (lines are those of the changed file)"
        broken = Problem(file=str(file), found=found, allowed="settings without a problem")
        raise InputError([broken, *error.problems]) from error
    name = Path(os.path.relpath(file)).as_posix()
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), fromfile=f"a/{name}", tofile=f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_LINE_END}" for line in lines)


def _edited(text: str, change: ScalingChange) -> str | None:
    """``text`` with the changed settings; None where that would change anything else, or is not possible."""
    index = [each.get("name") for each in parse_yaml(text).value["endpoints"]].index(change.endpoint.name)
    after = text
    try:
        root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
        endpoint = _own(root)["endpoints"].value[index]
        for start, end, replacement in sorted(_splices(text, endpoint, change), reverse=True):
            after = after[:start] + replacement + after[end:]
        value = parse_yaml(after).value
    except (KeyError, YamlError):
        return None
    return after if value == _wanted(text, index, change) else None


def _own(mapping: yaml.MappingNode) -> dict[str, Any]:
    """Own keys and values of a mapping; ``<<`` is not among them."""
    return {key.value: value for key, value in mapping.value if key.tag != "tag:yaml.org,2002:merge"}


def _splices(text: str, endpoint: yaml.MappingNode, change: ScalingChange) -> Iterator[Splice]:
    values = {each.field: plain(each.after) for each in change.changed}
    if COUNT in values:
        yield _replaced(_own(endpoint)[COUNT], values.pop(COUNT))
    if not values:
        return
    if change.endpoint.scaling is not None:
        block = _own(endpoint)["scaling"]
        own = _own(block)
        yield from (_replaced(own[field], value) for field, value in values.items() if field in own)
        missing = {field: value for field, value in values.items() if field not in own}
        if missing:
            yield _first(text, block, missing)
        return
    whole = "{" + ", ".join(f"{field}: {value}" for field, value in values.items()) + "}"
    if "scaling" in _own(endpoint):  # null
        yield _replaced(_own(endpoint)["scaling"], whole)
    else:
        own = _own(endpoint)  # without an instance type where it lists instance_types
        yield _after(text, endpoint, own.get("instance_type", own["name"]), f"scaling: {whole}")


def _replaced(node: yaml.Node, value: str) -> Splice:
    start, end = node.start_mark.index, node.end_mark.index
    return start, end, value if end > start else f" {value}"


def _first(text: str, mapping: yaml.MappingNode, values: Mapping[str, str]) -> Splice:
    """New keys before the first one."""
    mark = mapping.value[0][0].start_mark
    separator = ", " if mapping.flow_style else f"{_line_end(text)}{' ' * mark.column}"
    return mark.index, mark.index, "".join(f"{key}: {value}{separator}" for key, value in values.items())


def _after(text: str, mapping: yaml.MappingNode, node: yaml.Node, pair: str) -> Splice:
    """A new key after a value, on a line of its own where the mapping has lines."""
    if mapping.flow_style:
        return node.end_mark.index, node.end_mark.index, f", {pair}"
    end = text.find(_line_end(text), node.end_mark.index)
    place = len(text) if end < 0 else end
    return place, place, f"{_line_end(text)}{' ' * mapping.value[0][0].start_mark.column}{pair}"


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _wanted(text: str, index: int, change: ScalingChange) -> Any:
    """The values of ``text`` with the changed settings, and nothing else, replaced."""
    value = parse_yaml(text).value
    endpoint = value["endpoints"][index]
    for each in change.changed:
        number = float(each.after) if each.after % 1 else int(each.after)
        if each.field == COUNT:
            endpoint[COUNT] = number
        else:
            endpoint["scaling"] = {**(endpoint.get("scaling") or {}), each.field: number}
    return value
