"""Releases that a message suggests: each is accepted for the endpoint as it stands."""

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
