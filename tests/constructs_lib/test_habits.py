"""Conventions of the CDK: keyword-only typed properties; every public property and its default documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

import pytest
from constructs import Construct

import constructs_lib

POSITIONAL = ["self", "scope", "construct_id"]


def modules() -> list[str]:
    return [each.name for each in pkgutil.iter_modules(constructs_lib.__path__, "constructs_lib.")]


def constructs() -> dict[str, type[Construct]]:
    """Name → class of every construct in the package that is not private."""
    return {
        name: each
        for module in modules()
        for name, each in vars(importlib.import_module(module)).items()
        if inspect.isclass(each) and issubclass(each, Construct) and each.__module__ == module and name[0] != "_"
    }


CONSTRUCTS = constructs()


def description_of(name: str, documentation: str) -> str:
    """A parameter's text in the `Args:` of a docstring; empty where they do not name it."""
    _, _, arguments = documentation.partition("Args:\n")
    found = re.search(rf"^( +){name}: (.*?)(?=^\1\w+: |^\s*$|\Z)", arguments, re.MULTILINE | re.DOTALL)
    return found[2] if found else ""


def names_default(default: object, documented: str) -> bool:
    """Whether a parameter's text names its default, by its value or after the word."""
    return "efault" in documented or bool(str(default) and re.search(rf"\b{re.escape(str(default))}\b", documented))


def parameters(each: type[Construct]) -> Iterator[inspect.Parameter]:
    signature = inspect.signature(vars(each)["__init__"])
    yield from (found for found in signature.parameters.values() if found.name not in POSITIONAL)


@pytest.mark.parametrize("name", sorted(CONSTRUCTS))
def test_properties_are_keyword_only_and_typed(name: str) -> None:
    signature = inspect.signature(vars(CONSTRUCTS[name])["__init__"])
    assert list(signature.parameters)[:3] == POSITIONAL
    for each in parameters(CONSTRUCTS[name]):
        assert each.kind is inspect.Parameter.KEYWORD_ONLY, each.name
        assert each.annotation is not inspect.Parameter.empty, each.name


@pytest.mark.parametrize("name", sorted(CONSTRUCTS.keys() & set(constructs_lib.__all__)))
def test_every_property_and_every_default_is_documented(name: str) -> None:
    documentation = vars(CONSTRUCTS[name])["__init__"].__doc__ or ""
    assert CONSTRUCTS[name].__doc__
    properties = list(parameters(CONSTRUCTS[name]))
    if len(properties) < 2 and "Args:" not in documentation:
        assert all(each.name in documentation or each.name in (CONSTRUCTS[name].__doc__ or "") for each in properties)
        return
    missing = [each.name for each in properties if not description_of(each.name, documentation)]
    silent = [
        each.name
        for each in properties
        if each.default is not inspect.Parameter.empty
        and not names_default(each.default, description_of(each.name, documentation))
    ]
    assert (missing, silent) == ([], [])


def test_the_package_names_what_it_exports_and_each_is_there() -> None:
    assert sorted(constructs_lib.__all__) == dir(constructs_lib)
    for name in constructs_lib.__all__:
        assert getattr(constructs_lib, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        getattr(constructs_lib, "Nothing")  # noqa: B009 - the attribute does not exist
