"""Which machine builds the engines of a platform, and why some are refused."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.instances import BuilderKind, load_build_machines
from tritonstack.config.builds import BuildSettings, ComputeType
from tritonstack.engines.plan import NoBuilderError, builder_for, least_tensorrt
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
