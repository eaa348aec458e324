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
        ("kind", '"tensor"'),
        ("sample.answer", '"a/../../b"'),
        ("sample.request", '"/etc/passwd"'),
        ("sample.tolerance", "-1"),
        ("speed", "the field speed: 3"),
    ]


@pytest.mark.parametrize(
    ("text", "field", "found"),
    [
        ("", "", "an empty file"),
        ("- a", "", "a list of 1"),
        ("a: [", "", "expected the node content"),
        (RECIPE + "exports: [{produces: []}]\n", "exports[0].produces", "an empty list"),
        (RECIPE + "uses: [{folder: A.b, models: [x]}]\n", "uses[0].folder", '"A.b"'),
        (RECIPE + "adapters: {video: {input: x, encoding: utf8}}\n", "adapters.video", "the field video: a mapping"),
        (RECIPE + "kind: onnx\n", "kind", "kind again in line 4"),
    ],
)
def test_a_problem_names_its_field(tmp_path: Path, text: str, field: str, found: str) -> None:
    ((found_field, found_text),) = _problems(tmp_path, text + "\n")
    assert found_field == field
    assert found_text.startswith(found)


def test_what_is_allowed_is_said_in_the_house_s_words_with_the_line(tmp_path: Path) -> None:
    sample = "sample: {request: /r.json, answer: a.json, tolerance: high}"
    (tmp_path / "recipe.yaml").write_text(f"description: x\nkind: tensor\n{sample}\nsped: 3\n")
    with pytest.raises(InputError) as caught:
        read_recipe(tmp_path)
    said = {problem.field: problem for problem in caught.value.problems}
    assert said["kind"].file == f"{tmp_path}/recipe.yaml:2"
    assert said["kind"].allowed.startswith("'onnx', 'python', 'ensemble', ")
    assert said["sample.tolerance"].allowed.startswith("a number: ")
    assert said["sample.request"].allowed.startswith("a path inside the model folder")
    assert said["sped"].allowed.startswith("the fields description, kind")
    assert not any(word in str(caught.value) for word in ("Input should", "Value error", "valid number"))


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
