"""Cases of tests as data: tables in the YAML file beside a module, validated by the types that the tests state."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import pytest
from pydantic import TypeAdapter

from tritonstack.config.yaml_loader import read_yaml

Read = TypeVar("Read")
Test = TypeVar("Test", bound=Callable[..., None])


@functools.cache
def _tables(file: str) -> Mapping[str, Any]:
    """The tables of the YAML file beside a module, by name; ``shared`` holds anchors alone."""
    document = read_yaml(Path(file).with_suffix(".yaml"))
    assert document.repeated == [], f"{file}: these keys stand twice in its YAML file"
    assert isinstance(document.value, dict)
    return document.value


def read_as(kind: type[Read], value: Any) -> Read:
    """A YAML value as a type: a list may become a tuple or a set, a text an enum's member, and no text a number."""
    return TypeAdapter(kind).validate_json(json.dumps(value), strict=True)


def table(file: str, name: str, kind: type[Read]) -> Read:
    """One table beside the module ``file`` (``__file__``) as a type."""
    return read_as(kind, _tables(file)[name])


def cases(columns: str) -> Callable[[Test], Test]:
    """Parametrize a test with the rows of the table that has its name; columns are typed as the test's parameters.

    A row is a list, or the value alone where there is one column. Rows in a mapping have its keys as ids, those in a
    list the ids that pytest makes of their values.

    Raises:
        ValueError: a row has more or fewer values than columns, or one of another type.
    """
    names = columns.split(", ")

    def decorate(test: Test) -> Test:
        hints = get_type_hints(test)
        rows = _tables(test.__code__.co_filename)[test.__name__]
        read = []
        for key, row in rows.items() if isinstance(rows, dict) else enumerate(rows):
            try:
                values = zip(names, row if len(names) > 1 else [row], strict=True)
                typed = [read_as(hints[name], value) for name, value in values]
            except ValueError as error:
                raise ValueError(f"row {key} of {test.__name__}, columns {columns}: {error}") from None
            read.append(pytest.param(*typed, id=key if isinstance(key, str) else None))
        marked: Test = pytest.mark.parametrize(names if len(names) > 1 else columns, read)(test)
        return marked

    return decorate
