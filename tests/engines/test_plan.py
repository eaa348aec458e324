"""Which engines an environment needs, and the machine that builds each."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import get_args

import pytest

from tests.config.environment_file import environment_text
from tests.models.folders import write_double
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.instances import BuilderKind, load_build_machines
from tritonstack.config import load_environment
from tritonstack.config.builds import BuildSettings, ComputeType
from tritonstack.engines.order import served_by
from tritonstack.engines.plan import EnginePlan, NoBuilderError, builder_for, least_tensorrt, plan_engines
from tritonstack.errors import InputError
from tritonstack.models.inputs import resolved_models
from tritonstack.naming import Platform

REGION = "us-east-1"
CATALOGUE = load_catalogue()
GPUS = sorted({row.gpu for row in CATALOGUE.instances.values()} | {"V100"})


def platform(release: str, gpu: str) -> Platform:
    return Platform(release=release, gpu=gpu)


def refusal(release: str, gpu: str, region: str = REGION, *, kind: BuilderKind | None = None) -> NoBuilderError:
    with pytest.raises(NoBuilderError) as caught:
        builder_for(platform(release, gpu), region, kind=kind)
    return caught.value


@pytest.mark.parametrize(
    ("gpu", "kind", "machine"),
    [
        ("T4", "processing", "ml.g4dn.xlarge"),
        ("A10G", "codebuild", "BUILD_GENERAL1_SMALL"),
        ("L4", "processing", "ml.g6.xlarge"),
        ("L40S", "processing", "ml.g6e.xlarge"),
    ],
)
def test_codebuild_builds_where_it_has_the_gpu_and_the_familys_smallest_instance_elsewhere(
    gpu: str, kind: str, machine: str
) -> None:
    builder = builder_for(platform("24.09", gpu), REGION)
    assert (builder.kind, builder.machine.name, builder.machine.gpu) == (kind, machine, gpu)
    assert builder.image == CATALOGUE.image_uri(release="24.09", region=REGION)
    assert builder.tensorrt == "10.4.0.26"


def test_a_gpu_is_found_as_the_platform_spells_it_in_keys() -> None:
    assert builder_for(platform("24.09", "t4"), REGION).machine.gpu == "T4"


def test_an_image_of_ones_own_is_built_in_also_where_aws_has_none() -> None:
    assert builder_for(platform("26.06", "T4"), REGION, image="mine:1").image == "mine:1"
    assert "of which AWS keeps no image in us-east-1" in refusal("26.06", "T4").found


def test_a_region_without_gpu_builds_falls_back_to_the_processing_type() -> None:
    builder = builder_for(platform("24.09", "A10G"), "us-east-2")
    assert (builder.kind, builder.machine.name) == ("processing", "ml.g5.xlarge")


def test_a_region_without_gpu_builds_and_without_the_processing_type_is_refused_with_what_works() -> None:
    error = refusal("24.09", "L4", "eu-west-1")
    assert "L4 (compute capability 8.9) in eu-west-1" in error.found
    assert "processing on ml.g6.xlarge" in error.found
    assert "T4 (g4dn), A10G (g5)" in error.allowed
    assert "us-east-1" in error.advice


@pytest.mark.parametrize("release", ["24.11", "24.12", "25.03", "25.04", "25.09", "26.05"])
def test_v100_is_refused_from_tensorrt_10_5_on_also_where_the_exact_version_is_unknown(release: str) -> None:
    error = refusal(release, "V100")
    assert "V100 (compute capability 7.0)" in error.found
    assert "compute capability 7.5 or newer" in error.found
    assert error.allowed.endswith("24.05, 24.09")


def test_v100_is_built_up_to_tensorrt_10_4() -> None:
    assert builder_for(platform("24.09", "V100"), REGION).machine.name == "BUILD_GENERAL1_LARGE"


def test_a_t4_engine_is_never_built_on_an_ampere_builder() -> None:
    error = refusal("24.09", "T4", kind="codebuild")
    assert "A10G (compute capability 8.6)" in error.found
    assert error.allowed == "processing on ml.g4dn.xlarge"
    assert "Ampere" in error.advice


def test_the_service_can_be_chosen_where_both_have_the_gpu() -> None:
    assert builder_for(platform("24.09", "A10G"), REGION, kind="processing").machine.name == "ml.g5.xlarge"
    assert "us-east-2" in refusal("24.09", "A10G", "us-east-2", kind="codebuild").found


def test_a_gpu_that_no_machine_has_is_refused_with_those_of_the_region() -> None:
    error = refusal("24.09", "A100-40GB")
    assert "ml.p4d.24xlarge" in error.found
    assert "T4 (g4dn), A10G (g5), L4 (g6), L40S (g6e)" in error.allowed


def test_a_release_without_a_row_is_refused_with_the_reason() -> None:
    assert "were not read from a source" in refusal("22.10", "T4").found
    assert "24.09" in refusal("19.01", "T4").allowed


def test_tensorrt_never_falls_from_one_release_to_the_next() -> None:
    versions = [least_tensorrt(row) for row in CATALOGUE.releases.values()]
    assert versions == sorted(versions)
    assert all(versions)


@pytest.mark.parametrize(("release", "gpu"), [*itertools.product(CATALOGUE.releases, GPUS)])
def test_every_pair_gets_a_machine_with_its_gpu_in_the_region_or_is_refused_everywhere_with_words(
    release: str, gpu: str
) -> None:
    for region in CATALOGUE.regions:
        try:
            builder = builder_for(platform(release, gpu), region)
        except NoBuilderError as error:
            assert error.found
            assert error.allowed
            continue
        assert builder.machine.gpu == gpu
        assert region in builder.machine.regions
        assert f".{region}." in builder.image


def test_every_processing_machine_is_the_smallest_of_its_family() -> None:
    for machine in load_build_machines().machines:
        if machine.kind == "processing":
            family = machine.name.split(".")[1]
            sizes = [row.vcpu for row in CATALOGUE.instances.values() if row.family == family]
            assert machine.vcpu == min(sizes)


def test_the_memory_of_every_machine_without_a_gpu_that_settings_take_is_known_and_said() -> None:
    memory = load_build_machines().cpu_memory_gib
    assert [*memory] == [*get_args(ComputeType)]
    description = str(BuildSettings.model_fields["compute_type"].description)
    assert ", ".join(f"{gib:g}" for gib in memory.values()) in description


def test_build_machines_lie_in_regions_that_exist_and_have_the_gpus_of_the_catalogue() -> None:
    capabilities = {row.gpu: row.compute_capability for row in CATALOGUE.instances.values()} | {"V100": "7.0"}
    for machine in load_build_machines().machines:
        assert machine.compute_capability == capabilities[machine.gpu]
        assert set(machine.regions) <= {*CATALOGUE.regions}
        assert list(machine.regions) == sorted(machine.regions)


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
