"""Recipes: every problem at once, each with its field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

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


PROFILE = "{min: [1, 8], opt: [4, 8], max: [8, 8]}"


@pytest.mark.parametrize(
    ("text", "field", "allowed"),
    [
        (f"source: {{hub: a/b, revision: {'a' * 40}, s3: s3://b/k}}", "source", "hub with revision, or s3 with sha256"),
        ("source: {hub: a/b}", "source", "hub with revision, or s3 with sha256"),
        ("source: {hub: a/b, revision: main}", "source.revision", "a text that matches"),
        ("source: {s3: b/k, sha256: x}", "source.s3", "a text that matches"),
        ("sizes: {small: {}}", "sizes.small", "the fields full, tiny"),
        ("uses: [{folder: A.b, models: [x]}]", "uses[0].folder", ""),
        ("exports: [{produces: []}]", "exports[0].produces", ""),
        ("kind: onnx", "kind", "each key once"),
        ("overlays: {A.b: {}}", "overlays.A.b", ""),
        ("overlays: {a: {copies: 2}}", "overlays.a.copies", "the fields config"),
        ("overlays: {a: {config: [../x.pbtxt]}}", "overlays.a.config[0]", "a path inside the model folder"),
        ("exports: [{produces: [a], graph: {opset: 3}}]", "exports[0].graph.opset", "7 or more"),
        (
            f"engine: {{precision: int4, shapes: {{x: {PROFILE}}}}}",
            "engine.precision",
            "'fp16', 'fp32', 'bf16', 'int8' or 'graph'",
        ),
        (
            f"engine: {{calibration_cache: c.cache, shapes: {{x: {PROFILE}}}}}",
            "engine",
            "calibration_cache only with precision: int8",
        ),
        ("engine: {shapes: {x: {min: [2], opt: [1], max: [4]}}}", "engine.shapes.x", "min, opt and max of one rank"),
        ("engine: {shapes: {x: {min: [1], opt: [1, 1], max: [4]}}}", "engine.shapes.x", "min, opt and max of one rank"),
        ("overlays: {a: {exports: [{produces: [b, b]}]}}", "overlays.a.exports", "each file produced once (b is not)"),
        ("onnxruntime: {arena: fast}", "onnxruntime.arena", "the fields "),
    ],
)
def test_the_parts_of_a_recipe_are_checked_each_by_its_field(
    tmp_path: Path, text: str, field: str, allowed: str
) -> None:
    (tmp_path / "recipe.yaml").write_text(f"{RECIPE}{text}\n")
    with pytest.raises(InputError) as caught:
        read_recipe(tmp_path)
    found = {problem.field: problem.allowed for problem in caught.value.problems}
    assert field in found, found
    assert found[field].startswith(allowed)
