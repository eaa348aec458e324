"""Which engines an environment needs, and the machine that builds each."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import get_args

import pytest

from tests.engines.engine_environments import ENGINE, environment_file, served_engines, write_models
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.instances import BuilderKind, load_build_machines
from tritonstack.config import load_environment
from tritonstack.config.builds import BuildSettings, ComputeType
from tritonstack.engines.engine_builds import (
    Builder,
    EngineBuilds,
    NoBuilderError,
    builder_for,
    engine_builds,
    least_tensorrt,
)
from tritonstack.engines.portability import LOADS_COMPATIBLE
from tritonstack.errors import InputError, Problem
from tritonstack.models.selection import resolved_models
from tritonstack.naming import Platform

REGION = "us-east-1"
CATALOGUE = load_catalogue()
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/triton:1"
GPUS = sorted({row.gpu for row in CATALOGUE.instances.values()} | {"V100"})


def platform(release: str, gpu: str) -> Platform:
    return Platform(release=release, gpu=gpu)


def built(release: str, gpu: str, region: str = REGION, *, kind: BuilderKind | None = None) -> Builder:
    return builder_for(platform(release, gpu), region, image=IMAGE, kind=kind)


def refusal(release: str, gpu: str, region: str = REGION, *, kind: BuilderKind | None = None) -> Problem:
    with pytest.raises(NoBuilderError) as caught:
        built(release, gpu, region, kind=kind)
    return caught.value.problem


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
    builder = built("24.09", gpu)
    assert (builder.kind, builder.machine.name, builder.machine.gpu) == (kind, machine, gpu)
    assert builder.image == IMAGE
    assert builder.tensorrt == "10.4.0.26"


def test_a_region_without_gpu_builds_falls_back_to_the_processing_type() -> None:
    builder = built("24.09", "A10G", "us-east-2")
    assert (builder.kind, builder.machine.name) == ("processing", "ml.g5.xlarge")


def test_a_region_with_neither_gpu_builds_nor_the_processing_type_is_refused_with_what_works() -> None:
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


def test_a_t4_engine_is_never_built_on_an_ampere_builder() -> None:
    error = refusal("24.09", "T4", kind="codebuild")
    assert "A10G (compute capability 8.6)" in error.found
    assert error.allowed == "processing on ml.g4dn.xlarge"
    assert "Ampere" in error.advice


def test_the_service_can_be_chosen_where_both_have_the_gpu() -> None:
    assert built("24.09", "A10G", kind="processing").machine.name == "ml.g5.xlarge"
    assert "us-east-2" in refusal("24.09", "A10G", "us-east-2", kind="codebuild").found


def test_a_gpu_that_no_machine_has_is_refused_with_those_of_the_region() -> None:
    error = refusal("24.09", "A100-40GB")
    assert "ml.p4d.24xlarge" in error.found
    assert "T4 (g4dn), A10G (g5), L4 (g6), L40S (g6e)" in error.allowed


def test_a_release_older_than_the_catalogue_is_refused_with_those_that_have_an_image() -> None:
    assert "24.09" in refusal("19.01", "T4").allowed


def test_tensorrt_never_falls_from_one_release_to_the_next() -> None:
    versions = [least_tensorrt(row) for row in CATALOGUE.releases.values()]
    assert versions == sorted(versions)
    assert all(versions)


@pytest.mark.parametrize("gpu", GPUS)
def test_every_pair_gets_a_machine_with_its_gpu_in_the_region_or_is_refused_with_words(gpu: str) -> None:
    for release, region in itertools.product(CATALOGUE.releases, CATALOGUE.regions):
        try:
            builder = built(release, gpu, region)
        except NoBuilderError as error:
            assert error.problem.found
            assert error.problem.allowed
            continue
        assert builder.machine.gpu == gpu
        assert region in builder.machine.regions


def test_the_memory_of_every_machine_without_a_gpu_that_settings_take_is_in_its_message() -> None:
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
        if machine.kind == "processing":
            family = [row.vcpu for row in CATALOGUE.instances.values() if row.family == machine.name.split(".")[1]]
            assert machine.vcpu == min(family), "the smallest of its family"


def builds_of(project: Path, *endpoints: str, header: str = "", engine: str = ENGINE) -> EngineBuilds:
    repositories = write_models(project, engine=engine)
    file = environment_file(project, *endpoints, header=header)
    settings = load_environment(file)
    return engine_builds(settings, resolved_models(settings, repositories, file=file), file=file)


def test_a_mixed_environment_gets_one_build_a_platform_each_on_its_own_gpu(tmp_path: Path) -> None:
    made = builds_of(
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


def test_instance_pools_need_an_engine_for_each_gpu_of_their_types(tmp_path: Path) -> None:
    types = "instance_types: [ml.g5.xlarge, ml.g4dn.xlarge, ml.g5.2xlarge]"
    made = builds_of(tmp_path, f"mode: single-model\ninstance_type: ml.g5.xlarge\n{types}")
    assert made.problems == ()
    assert [(str(build.builder.platform), build.builder.kind, build.archives) for build in made.builds] == [
        ("24.09-a10g", "codebuild", ("fast",)),
        ("24.09-t4", "processing", ("fast",)),
    ]


def test_every_copy_is_named_once_however_many_endpoints_serve_it(tmp_path: Path) -> None:
    made = builds_of(tmp_path, "", "", engine=f"{ENGINE}copies: 2\n")
    assert [build.archives for build in made.builds] == [("fast-0", "fast-1")]


def test_an_endpoint_s_own_image_builds_its_engines(tmp_path: Path) -> None:
    made = builds_of(tmp_path, f"image: {IMAGE}", "")
    assert [build.endpoints for build in made.builds if build.builder.image == IMAGE] == [("e0",)]
    assert len(made.builds) == 2


def test_an_archive_with_a_plan_of_its_own_and_another_backend_need_no_engine(tmp_path: Path) -> None:
    (write_models(tmp_path) / "fast/fast/1/model.plan").write_bytes(b"plan")
    served = served_engines(tmp_path, "", models="[fast, double]")
    assert served.engines == EngineBuilds(builds=(), problems=())


def test_a_service_without_the_gpu_is_refused_with_the_one_that_has_it(tmp_path: Path) -> None:
    made = builds_of(tmp_path, "", header="builds: {engine_builder: codebuild}")
    [problem] = made.problems
    assert problem.field == "endpoints[0].models[0]"
    assert "A10G" in problem.found
    assert problem.allowed == "processing on ml.g4dn.xlarge"


def test_synthesis_refuses_every_engine_that_nothing_can_build_at_once(tmp_path: Path) -> None:
    write_models(tmp_path)
    single = "mode: single-model\ninstance_type:"
    with pytest.raises(InputError) as caught:
        served_engines(tmp_path, f"{single} ml.p4d.24xlarge", f"{single} ml.g5.xlarge", f"{single} ml.p5.48xlarge")
    fields = [problem.field for problem in caught.value.problems]
    assert fields == ["endpoints[0].models[0]", "endpoints[2].models[0]"]
    assert {str(problem.file).rpartition(":")[2] for problem in caught.value.problems} == {"11", "23"}
    assert all("the engine of fast cannot be built" in problem.found for problem in caught.value.problems)


def test_fp16_is_refused_where_tensorrt_takes_the_precision_of_the_onnx_file(tmp_path: Path) -> None:
    image = f"image: {IMAGE}"
    [problem] = builds_of(tmp_path, f'release: "26.06"\n{image}').problems
    assert "fp16" in problem.found
    assert "26.06" in problem.found
    single = ENGINE.replace("engine: {", "engine: {precision: fp32, ")
    assert builds_of(tmp_path / "single", f'release: "26.06"\n{image}', engine=single).problems == ()


COMPATIBLE = ENGINE.replace("}}}", "}}, version_compatible: true}")
LOADS = f"container: {{additional_args: ['{LOADS_COMPATIBLE}']}}"


def test_a_version_compatible_engine_is_refused_where_triton_has_no_option_for_it(tmp_path: Path) -> None:
    made = builds_of(tmp_path, "", LOADS, engine=COMPATIBLE)
    [problem] = made.problems
    assert problem.field == "endpoints[0].container.additional_args"
    assert "fast has an engine with version_compatible: true" in problem.found
    assert LOADS_COMPATIBLE in problem.allowed
    assert [build.endpoints for build in made.builds] == [("e1",)]


@pytest.mark.parametrize(
    ("level", "release", "loads", "refuses"),
    [("ampere_plus", "24.09", {"L4", "L40S"}, {"T4", "A10G"}), ("same_compute_capability", "25.04", set(), {"L4"})],
)
def test_gpus_that_may_share_an_engine_are_listed(
    tmp_path: Path, level: str, release: str, loads: set[str], refuses: set[str]
) -> None:
    engine = ENGINE.replace("}}}", f"}}}}, hardware_compatibility: {level}}}")
    (build,) = builds_of(tmp_path, f"release: '{release}'\ninstance_type: ml.g5.xlarge", engine=engine).builds
    found = set(build.compatible["fast"])
    assert found >= loads
    assert not found & refuses
    (build,) = builds_of(tmp_path / "none", "").builds
    assert build.compatible == {}


def test_a_tensorrt_model_without_a_word_on_its_engine_is_refused(tmp_path: Path) -> None:
    made = builds_of(tmp_path, "", engine="dependency: engine\n")
    assert made.builds == ()
    [problem] = made.problems
    assert "no engine in its recipe" in problem.found
    assert "engine:" in problem.allowed
