"""Releases that a message suggests: each is accepted for the unchanged endpoint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.config.environment_file import write_environment
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.instances import load_build_machines
from tritonstack.config import load_environment
from tritonstack.engines.engine_builds import builder_for
from tritonstack.errors import InputError
from tritonstack.lint.view import ServingTarget
from tritonstack.naming import Platform
from tritonstack.served_checks import check_model

CATALOGUE = load_catalogue()
REGIONS = ("us-east-1", "eu-west-1", "ap-southeast-4", "eu-south-2")


def refusal(folder: Path, *, region: str, release: str, instance: str) -> list[str]:
    """What the message about ``release`` suggests: the allowed and the advised releases."""
    endpoint = f"release: '{release}'\ninstance_type: {instance}\nmode: single-model"
    with pytest.raises(InputError) as refused:
        load_environment(write_environment(folder, header=f"region: {region}", endpoint=endpoint))
    of_release = [each for each in refused.value.problems if each.field == "endpoints[0].release"]
    return [text for each in of_release for text in (each.allowed, each.advice)]


def suggested(texts: list[str]) -> set[str]:
    """Every release that the texts name."""
    return {each for text in texts for each in re.findall(r"\b\d\d\.\d\d\b", text)}


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("release", ["19.01", "24.04", "24.10", "25.02", "27.01"])
def test_every_suggested_release_has_an_image_in_the_region(region: str, release: str, tmp_path: Path) -> None:
    found = suggested(refusal(tmp_path, region=region, release=release, instance="ml.g4dn.xlarge"))
    assert found == set(CATALOGUE.served_releases(region))


GPUS = sorted({row.gpu for row in CATALOGUE.instances.values()})


@pytest.mark.parametrize("gpu", [gpu for gpu in GPUS if load_build_machines().of_gpu(gpu)])
def test_every_suggested_release_has_engines_built_for_the_type_s_gpu(gpu: str, tmp_path: Path) -> None:
    machines = load_build_machines().of_gpu(gpu)
    instance = next(row.name for row in CATALOGUE.instances.values() if row.gpu == gpu)
    region = next(each for each in machines[0].regions if each in CATALOGUE.instances[instance].regions)
    for each in suggested(refusal(tmp_path, region=region, release="24.10", instance=instance)):
        assert builder_for(Platform(release=each, gpu=gpu.lower()), region, image="triton:1")


@pytest.mark.parametrize("instance", ["ml.g5.xlarge", "ml.g7.2xlarge", "ml.g7e.12xlarge", "ml.p6-b300.48xlarge"])
def test_every_suggested_release_is_accepted_on_the_type_that_it_is_suggested_for(
    instance: str, tmp_path: Path
) -> None:
    found = suggested(refusal(tmp_path, region="us-east-1", release="24.10", instance=instance))
    for each in found - {"24.10"}:
        endpoint = f"release: '{each}'\ninstance_type: {instance}\nmode: single-model"
        settings = load_environment(write_environment(tmp_path, endpoint=endpoint)).endpoints[0]
        ami = CATALOGUE.host_ami(settings.inference_ami_version or "")
        row = CATALOGUE.instances[instance]
        assert CATALOGUE.releases[each].supports(row)
        assert ami is None or ami.supports(row)
    assert found


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize(("backend", "release"), [("tensorflow", "25.09"), ("fastertransformer", "24.09")])
def test_a_release_that_is_suggested_for_a_backend_has_it_and_an_image(
    backend: str, release: str, region: str, tmp_path: Path
) -> None:
    endpoint = load_environment(write_environment(tmp_path, endpoint=f"release: '{release}'")).endpoints[0]
    [problem] = check_model(endpoint=endpoint, backends=[backend], model="m", location=(), region=region)
    for each in suggested([problem.advice]):
        assert backend in CATALOGUE.releases[each].backends
        assert each in CATALOGUE.served_releases(region)


def test_lint_suggests_releases_with_an_image() -> None:
    with pytest.raises(InputError) as refused:
        ServingTarget.of_names(release="19.01", instance_type=None)
    assert suggested([refused.value.problems[0].allowed]) <= set(CATALOGUE.served_releases())


def test_a_backend_that_no_release_for_the_gpu_has_is_replaced_by_another_form_alone(tmp_path: Path) -> None:
    """The last release with TensorFlow that AWS has an image of is 24.09, whose CUDA does not know a Blackwell GPU."""
    lines = "release: '26.05'\ninstance_type: ml.g7e.2xlarge\nmode: single-model"
    endpoint = load_environment(write_environment(tmp_path, endpoint=lines)).endpoints[0]
    [problem] = check_model(endpoint=endpoint, backends=["tensorflow"], model="m", location=(), region="us-east-1")
    assert suggested([problem.advice]) == set()
    assert problem.advice.startswith("Serve the model's ONNX form")


@pytest.mark.parametrize(
    ("region", "release"), [("us-east-1", "26.05"), ("eu-south-2", "26.05"), ("cn-north-1", "25.04"), (None, "26.05")]
)
def test_a_new_endpoint_gets_the_newest_release_that_aws_lists_for_the_region(region: str | None, release: str) -> None:
    """Not 26.10, of which AWS has no image, and none whose image is documented without regions."""
    assert CATALOGUE.default_release(region=region, instance=CATALOGUE.instances["ml.g4dn.xlarge"]) == release


def test_no_release_is_proposed_where_aws_has_no_image() -> None:
    assert CATALOGUE.default_release(region="us-gov-west-1") is None
