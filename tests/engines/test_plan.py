"""Which engines an environment needs, and which cannot be built at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.environment_file import environment_text
from tests.models.folders import write_double
from tritonstack.config import load_environment
from tritonstack.engines.order import served_by
from tritonstack.engines.plan import EnginePlan, plan_engines
from tritonstack.errors import InputError
from tritonstack.models.inputs import resolved_models

ENGINE = """\
kind: tensorrt
dependency: engine
engine: {shapes: {x: {min: [1, 1], opt: [4, 1], max: [8, 1]}}}
"""


def tensorrt(project: Path, further: str = "", *, recipe: str = ENGINE) -> Path:
    """The folder ``double`` as a TensorRT model; returns the folder of model folders."""
    folder = write_double(project)
    config = folder / "double/config.pbtxt"
    config.write_text(config.read_text().replace('backend: "python"', 'platform: "tensorrt_plan"'))
    path = folder / "recipe.yaml"
    path.write_text(path.read_text().replace("kind: python\n", "") + recipe + further)
    return folder.parent


def environment_file(project: Path, *endpoints: str, header: str = "") -> Path:
    """An environment whose endpoints serve ``double``, each with further fields of its own."""
    path = project / "local.yaml"
    first, *others = [
        environment_text(header=header, endpoint=f"name: e{number}\nmodels: [double]\n{endpoint}")
        for number, endpoint in enumerate(endpoints)
    ]
    path.write_text(first + "".join(text.partition("endpoints:\n")[2] for text in others))
    return path


def plan(project: Path, *endpoints: str, header: str = "", further: str = "", recipe: str = ENGINE) -> EnginePlan:
    repositories = tensorrt(project, further, recipe=recipe)
    file = environment_file(project, *endpoints, header=header)
    settings = load_environment(file)
    return plan_engines(settings, resolved_models(settings, repositories, file=file), file=file)


def test_a_mixed_environment_gets_one_build_a_platform_each_on_its_own_gpu(tmp_path: Path) -> None:
    made = plan(
        tmp_path,
        "instance_type: ml.g4dn.xlarge",
        "instance_type: ml.g5.2xlarge",
        "instance_type: ml.g6.xlarge\naccept_unlisted_instance_type: true",
        "instance_type: ml.g4dn.8xlarge",
    )
    assert made.problems == ()
    assert [(str(build.builder.platform), build.builder.machine.name, build.endpoints) for build in made.builds] == [
        ("24.09-a10g", "BUILD_GENERAL1_SMALL", ("e1",)),
        ("24.09-l4", "ml.g6.xlarge", ("e2",)),
        ("24.09-t4", "ml.g4dn.xlarge", ("e0", "e3")),
    ]


def test_two_releases_on_one_gpu_are_two_platforms(tmp_path: Path) -> None:
    made = plan(tmp_path, 'release: "24.09"', 'release: "24.05"')
    assert [str(build.builder.platform) for build in made.builds] == ["24.05-t4", "24.09-t4"]
    assert len({build.builder.image for build in made.builds}) == 2


def test_every_copy_is_named_once_however_many_endpoints_serve_it(tmp_path: Path) -> None:
    made = plan(tmp_path, "", "", further="copies: 2\n")
    assert [build.archives for build in made.builds] == [("double-0", "double-1")]


def test_an_endpoint_s_own_image_builds_its_engines(tmp_path: Path) -> None:
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/triton:1"
    made = plan(tmp_path, f"image: {image}", "")
    assert [build.endpoints for build in made.builds if build.builder.image == image] == [("e0",)]
    assert len(made.builds) == 2


def test_an_archive_with_a_plan_of_its_own_needs_no_engine(tmp_path: Path) -> None:
    repositories = tensorrt(tmp_path)
    (repositories / "double/double/1/model.plan").write_bytes(b"plan")
    file = environment_file(tmp_path, "")
    settings = load_environment(file)
    made = plan_engines(settings, resolved_models(settings, repositories, file=file), file=file)
    assert made == EnginePlan(builds=(), problems=())


def test_a_model_of_another_backend_needs_no_engine(tmp_path: Path) -> None:
    write_double(tmp_path)
    file = environment_file(tmp_path, "instance_type: ml.p4d.24xlarge\nmode: single-model")
    settings = load_environment(file)
    assert served_by(settings, tmp_path / "model_repos", file=file).engines == EnginePlan(builds=(), problems=())


def test_the_environment_s_service_is_taken(tmp_path: Path) -> None:
    made = plan(tmp_path, "instance_type: ml.g5.xlarge", header="builds: {engine_builder: processing}")
    assert [build.builder.machine.name for build in made.builds] == ["ml.g5.xlarge"]


def test_a_service_without_the_gpu_is_refused_with_the_one_that_has_it(tmp_path: Path) -> None:
    made = plan(tmp_path, "", header="builds: {engine_builder: codebuild}")
    [problem] = made.problems
    assert problem.field == "endpoints[0].models[0]"
    assert "A10G" in problem.found
    assert problem.allowed == "processing on ml.g4dn.xlarge"


def test_synthesis_refuses_every_engine_that_nothing_can_build_at_once(tmp_path: Path) -> None:
    repositories = tensorrt(tmp_path)
    single = "mode: single-model\ninstance_type:"
    file = environment_file(tmp_path, f"{single} ml.p4d.24xlarge", f"{single} ml.g5.xlarge", f"{single} ml.p5.48xlarge")
    with pytest.raises(InputError) as caught:
        served_by(load_environment(file), repositories, file=file)
    fields = [problem.field for problem in caught.value.problems]
    assert fields == ["endpoints[0].models[0]", "endpoints[2].models[0]"]
    assert {str(problem.file) for problem in caught.value.problems} == {f"{file}:11", f"{file}:23"}
    assert all("the engine of double cannot be built" in problem.found for problem in caught.value.problems)


def test_fp16_is_refused_where_tensorrt_takes_the_precision_of_the_onnx_file(tmp_path: Path) -> None:
    image = "image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/triton:1"
    [problem] = plan(tmp_path, f'release: "26.06"\n{image}').problems
    assert "fp16" in problem.found
    assert "26.06" in problem.found
    single = ENGINE.replace("engine: {", "engine: {precision: fp32, ")
    assert plan(tmp_path / "single", f'release: "26.06"\n{image}', recipe=single).problems == ()


def test_a_tensorrt_model_without_a_word_on_its_engine_is_refused(tmp_path: Path) -> None:
    made = plan(tmp_path, "", recipe="kind: tensorrt\ndependency: engine\n")
    assert made.builds == ()
    [problem] = made.problems
    assert "no engine in its recipe" in problem.found
    assert "engine:" in problem.allowed


COMPATIBLE = ENGINE.replace("}}}", "}}, version_compatible: true}")
LOADS_COMPATIBLE = "container: {additional_args: ['--backend-config=tensorrt,version-compatible=true']}"


def test_a_version_compatible_engine_is_refused_where_triton_is_not_told_to_load_it(tmp_path: Path) -> None:
    made = plan(tmp_path, "", LOADS_COMPATIBLE, recipe=COMPATIBLE)
    [problem] = made.problems
    assert problem.field == "endpoints[0].container.additional_args"
    assert "double" in problem.found
    assert "--backend-config=tensorrt,version-compatible=true" in problem.allowed
    assert [build.endpoints for build in made.builds] == [("e1",)]


def test_an_engine_for_one_version_needs_no_such_argument(tmp_path: Path) -> None:
    assert plan(tmp_path, "").problems == ()
