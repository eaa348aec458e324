"""Releases that a message suggests: each is accepted for the endpoint as it stands."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from tests.config.environment_file import write_environment
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.instances import load_build_machines
from tritonstack.config import load_environment
from tritonstack.engines.archive_checks import check_model
from tritonstack.engines.plan import builder_for
from tritonstack.errors import InputError
from tritonstack.models.lint.view import Target
from tritonstack.naming import Platform

CATALOGUE = load_catalogue()
REFUSED = ("19.01", "22.10", "24.04", "24.10", "24.12", "25.02", "26.10", "27.01")
"""Too old, without a row, without an image, not yet there."""
REGIONS = ("us-east-1", "eu-west-1", "ap-southeast-4", "eu-south-2")
TYPES = ("ml.g4dn.xlarge", "ml.g6.xlarge")
USES = {
    "multi-model": "mode: multi-model\naccept_unlisted_instance_type: true",
    "single-model": "mode: single-model",
    "host AMI": "mode: single-model\nhost_ami: al2-ami-sagemaker-inference-gpu-2",
    "TensorFlow": "mode: single-model\ncontainer: {tensorflow_version: 2}",
    "an argument": 'mode: single-model\ncontainer: {additional_args: ["--cache-config=local,size=1048576"]}',
}


def refusal(folder: Path, *, region: str, release: str, instance: str, use: str) -> list[str]:
    """What the message about ``release`` suggests; the found and advised releases."""
    header = f"region: {region}"
    endpoint = f"release: '{release}'\ninstance_type: {instance}\n{USES[use]}"
    with pytest.raises(InputError) as refused:
        load_environment(write_environment(folder, header=header, endpoint=endpoint))
    of_release = [each for each in refused.value.problems if each.field == "endpoints[0].release"]
    return [text for each in of_release for text in (each.allowed, each.advice)]


def suggested(texts: list[str]) -> set[str]:
    """Every release that the texts name."""
    return {each for text in texts for each in re.findall(r"\b\d\d\.\d\d\b", text)}


@pytest.mark.parametrize("use", USES)
def test_every_suggested_release_is_accepted_for_that_region_type_and_use(use: str, tmp_path: Path) -> None:
    cases = {*itertools.product(REGIONS[:1], REFUSED, TYPES[:1]), *itertools.product(REGIONS, ["24.10"], TYPES)}
    named = 0
    for region, release, instance in cases:
        texts = refusal(tmp_path, region=region, release=release, instance=instance, use=use)
        for each in suggested(texts):
            endpoint = f"release: '{each}'\ninstance_type: {instance}\n{USES[use]}"
            try:
                load_environment(write_environment(tmp_path, header=f"region: {region}", endpoint=endpoint))
            except InputError as error:
                about = [problem for problem in error.problems if "type" not in problem.field]
                assert about == [], (region, release, instance, each)
            named += 1
    assert named > len(cases)


GPUS = sorted({row.gpu for row in CATALOGUE.instances.values()})


@pytest.mark.parametrize("gpu", [gpu for gpu in GPUS if load_build_machines().of_gpu(gpu)])
def test_every_suggested_release_has_engines_built_for_the_type_s_gpu(gpu: str, tmp_path: Path) -> None:
    machines = load_build_machines().of_gpu(gpu)
    instance = next(row.name for row in CATALOGUE.instances.values() if row.gpu == gpu)
    region = next(each for each in machines[0].regions if each in CATALOGUE.instances[instance].regions)
    for each in suggested(refusal(tmp_path, region=region, release="24.10", instance=instance, use="single-model")):
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
        Target.of_names(release="19.01", instance_type=None)
    assert suggested([refused.value.problems[0].allowed]) <= set(CATALOGUE.served_releases())
