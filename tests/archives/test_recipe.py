"""Recipes: every problem at once, each with its field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.archives.folders import RECIPE
from tritonstack.archives.manifest import Manifest
from tritonstack.archives.recipe import Recipe, read_recipe
from tritonstack.errors import InputError


def _problems(folder: Path, text: str) -> list[tuple[str, str]]:
    (folder / "recipe.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_recipe(folder)
    return [(problem.field, problem.found) for problem in caught.value.problems]


def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    text = "kind: tensor\nsample: {request: /etc/passwd, answer: a/../../b, tolerance: -1}\nspeed: 3\n"
    assert sorted(_problems(tmp_path, text)) == [
        ("description", "nothing"),
        ("kind", "'tensor'"),
        ("sample.answer", "'a/../../b'"),
        ("sample.request", "'/etc/passwd'"),
        ("sample.tolerance", "-1"),
        ("speed", "3"),
    ]


@pytest.mark.parametrize(
    ("text", "field", "found"),
    [
        ("", "", "an empty file"),
        ("- a", "", "list"),
        ("a: [", "line 2", "expected the node content"),
        (RECIPE + "export: {produces: []}\n", "export.produces", "[]"),
        (RECIPE + "uses: [{folder: A.b, models: [x]}]\n", "uses[0].folder", "'A.b'"),
        (RECIPE + "adapters: {video: {input: x, encoding: utf8}}\n", "adapters.video", "{'input'"),
    ],
)
def test_a_problem_names_its_field(tmp_path: Path, text: str, field: str, found: str) -> None:
    ((found_field, found_text),) = _problems(tmp_path, text + "\n")
    assert found_field == field
    assert found_text.startswith(found)


def test_a_missing_folder_names_those_that_exist(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/recipe.yaml").write_text(RECIPE)
    with pytest.raises(InputError, match="there are: there"):
        read_recipe(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no recipe\.yaml"):
        read_recipe(tmp_path / "empty")


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        for part in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _models(part)


@pytest.mark.parametrize("root", [Recipe, Manifest])
def test_every_field_is_described(root: type[BaseModel]) -> None:
    missing = [
        f"{model.__name__}.{name}"
        for model in _models(root)
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert missing == []
