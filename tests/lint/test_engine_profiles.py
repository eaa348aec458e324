"""Instance groups and batch sizes against the optimisation profiles of an engine, of its recipe or of its build."""

from __future__ import annotations

from pathlib import Path

from tests.cases import cases
from tests.models.folders import make_engine, write
from tritonstack.lint import lint_folder, lint_repository
from tritonstack.models.manifest import EngineTensor
from tritonstack.models.runtime_options import read_profiles

CONFIG = """name: "net"
backend: "tensorrt"
max_batch_size: 16
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
RECIPE = """description: A net.
kind: tensorrt
model: net
dependency: engine
engine: {shapes: SHAPES}
sample: {request: sample/request.json, answer: sample/answer.json}
"""
SHAPES = {
    "one": "{x: {min: [1, 1], opt: [8, 64], max: [16, 128]}}",
    "two": "[{x: {min: [1, 1], opt: [1, 64], max: [4, 128]}}, {x: {min: [5, 1], opt: [16, 64], max: [16, 128]}}]",
    "gap": "[{x: {min: [1, 1], opt: [1, 64], max: [2, 128]}}, {x: {min: [5, 1], opt: [16, 64], max: [16, 128]}}]",
    "long": "[{x: {min: [1, 1], opt: [8, 16], max: [16, 16]}}, {x: {min: [1, 17], opt: [8, 64], max: [16, 128]}}]",
}


@cases("shapes, config, found")
def test_groups_and_batches_are_compared_with_the_profiles_of_the_recipe(
    tmp_path: Path, shapes: str, config: str, found: list[str]
) -> None:
    recipe = RECIPE.replace("SHAPES", SHAPES[shapes])
    write(tmp_path / "net", {"recipe.yaml": recipe, "net/config.pbtxt": CONFIG + config, "net/1/model.plan": "ftrt"})
    findings = [each for each in lint_folder(tmp_path / "net") if each.rule.startswith(("engine-", "instance-"))]
    assert [f"{each.rule}: {each.found}" for each in findings] == found


OPTIONS = (
    "--profile=0", "--minShapes=x:1x1", "--optShapes=x:1x64", "--maxShapes=x:4x128",
    "--profile=1", "--minShapes=x:5x1", "--optShapes=x:16x64", "--maxShapes=x:16x128", "--fp16",
)  # fmt: skip


def test_a_packed_archive_is_compared_with_the_profiles_that_its_plan_was_built_with(tmp_path: Path) -> None:
    entry = make_engine(
        plan="net/1/model.plan",
        options=OPTIONS,
        inputs=(EngineTensor(name="x", datatype="FP32", min=(1, 1), max=(16, 128)),),
        outputs=(EngineTensor(name="y", datatype="FP32", min=(-1, -1), max=(-1, -1)),),
    )
    group = 'instance_group [ { profile: [ "0", "2" ] } ]'
    write(
        tmp_path,
        {
            "net/config.pbtxt": CONFIG + group,
            "net/1/model.plan": "ftrt",
            "net/1/model.plan.json": entry.model_dump_json(),
        },
    )
    found = [each for each in lint_repository(tmp_path, addressed="net") if each.rule.startswith("engine-")]
    assert sorted(each.rule for each in found) == ["engine-batch", "engine-profile", "engine-profile-unused"]
    assert {each.line for each in found} == {6}


def test_profiles_are_read_from_the_options_of_a_build_and_of_nothing_else() -> None:
    first, second = read_profiles(OPTIONS)
    assert (first["x"].opt, second["x"].min, second["x"].max) == ((1, 64), (5, 1), (16, 128))
    quoted = ("--minShapes='a:0':1x2,b:1", "--optShapes='a:0':2x2,b:1", "--maxShapes='a:0':4x2,b:1")
    assert {name: shape.max for name, shape in read_profiles(quoted)[0].items()} == {"a:0": (4, 2), "b": (1,)}
    assert read_profiles(("--fp16",)) == read_profiles(("--minShapes=x:1x1", "--fp16")) == ()
