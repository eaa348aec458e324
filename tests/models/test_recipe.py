"""Recipes: every problem at once, each with its field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.cases import cases
from tests.models.folders import RECIPE
from tritonstack.errors import InputError
from tritonstack.models.manifest import Manifest
from tritonstack.models.recipe import Recipe, read_recipe


def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    text = "kind: tensor\nsample: {request: /etc/passwd, answer: a/../../b, tolerance: -1}\nspeed: 3\n"
    (tmp_path / "recipe.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_recipe(tmp_path)
    assert sorted((problem.field, problem.found) for problem in caught.value.problems) == [
        ("description", "nothing"),
        ("kind", '"tensor"'),
        ("sample.answer", '"a/../../b"'),
        ("sample.request", '"/etc/passwd"'),
        ("sample.tolerance", "-1"),
        ("speed", "the field speed: 3"),
    ]


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


@cases("text, field, allowed")
def test_the_parts_of_a_recipe_are_checked_each_by_its_field(
    tmp_path: Path, text: str, field: str, allowed: str
) -> None:
    (tmp_path / "recipe.yaml").write_text(f"{RECIPE}{text}\n")
    with pytest.raises(InputError) as caught:
        read_recipe(tmp_path)
    found = {problem.field: problem.allowed for problem in caught.value.problems}
    assert field in found, found
    assert found[field].startswith(allowed)
