"""Facts of the catalogue."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tritonstack.catalogue import dns_suffix, load_catalogue
from tritonstack.catalogue.triton_releases import propose_host_ami
from tritonstack.paths import REPOSITORY

CATALOGUE = load_catalogue()


@cases("release, region, uri")
def test_both_generations_of_images_are_found_with_the_partitions_suffix(release: str, region: str, uri: str) -> None:
    assert CATALOGUE.image_uri(release=release, region=region) == uri


def test_a_missing_image_names_the_nearest_releases_of_that_region() -> None:
    with pytest.raises(LookupError, match=r"nearest there: 25\.04, 24\.09, 24\.05\)"):
        CATALOGUE.image_uri(release="26.05", region="cn-north-1")
    with pytest.raises(LookupError, match="nearest there: none"):
        CATALOGUE.image_uri(release="24.09", region="us-gov-west-1")


def test_a_documented_image_without_a_region_list_is_where_its_neighbouring_releases_are() -> None:
    for release in ("25.12", "26.03", "26.04"):
        assert set(CATALOGUE.image_table.regions[release]) == {
            *CATALOGUE.image_table.regions["25.09"] & CATALOGUE.image_table.regions["26.05"]
        }
    with pytest.raises(LookupError, match=r"nearest there: 25\.04,"):
        CATALOGUE.image_uri(release="26.03", region="cn-north-1")


@pytest.mark.parametrize(
    ("release", "before", "python", "has_tensorflow"),
    [("23.06", "23.05", "3.10", True), ("25.10", "25.09", "3.12", False), ("30.01", "26.10", "3.12", False)],
)
def test_an_unlisted_release_has_the_facts_of_the_one_before_it(
    release: str, before: str, python: str, *, has_tensorflow: bool
) -> None:
    row = CATALOGUE.release(release)
    assert row is not None
    assert (row.version, row.taken_from, row.python, row.server_version) == (release, before, python, "")
    assert ("tensorflow" in row.backends) == has_tensorflow
    assert CATALOGUE.propose_host_ami(release) == CATALOGUE.propose_host_ami(before)
    assert all(each.taken_from is None for each in CATALOGUE.releases.values())


@cases("release, has, has_not")
def test_the_vulnerabilities_of_a_release_are_those_that_a_later_one_fixes(
    release: str, has: set[str], has_not: set[str]
) -> None:
    found = CATALOGUE.vulnerabilities(release)
    names = {each.id for each in found}
    assert has <= names
    assert not has_not & names
    assert [each.score or 0 for each in found] == sorted((each.score or 0 for each in found), reverse=True)


@pytest.mark.parametrize(
    ("release", "ami"),
    [
        ("23.10", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("24.05", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("24.09", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("25.04", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("25.09", "al2023-ami-sagemaker-inference-gpu-4-1"),
        ("26.05", "al2023-ami-sagemaker-inference-gpu-4-1"),
    ],
)
def test_the_proposed_host_is_of_the_releases_cuda_major_version(release: str, ami: str) -> None:
    """As AWS tests its own images: CUDA 12 on gpu-3-1, CUDA 13 on gpu-4-1 (aws/deep-learning-containers)."""
    proposal = CATALOGUE.propose_host_ami(release)
    assert proposal is not None
    assert proposal.name == ami


def test_no_host_is_proposed_where_cuda_is_unknown_or_newer_than_every_driver() -> None:
    row = CATALOGUE.release("26.05")
    assert row is not None
    assert CATALOGUE.propose_host_ami("22.12") is None
    newer = dataclasses.replace(row, cuda="14.0")
    assert propose_host_ami(release=newer, amis=CATALOGUE.host_amis) is None
    older = propose_host_ami(release=dataclasses.replace(row, cuda="11.8"), amis=CATALOGUE.host_amis)
    assert older is not None
    assert older.cuda == "12.2", "of another major version, the nearest that covers it"


def test_the_drivers_that_sagemaker_takes_by_itself_are_those_of_the_developer_guide() -> None:
    """Source: "Best practices to minimize interruptions during GPU driver upgrades", real-time endpoints."""
    found = {family: (each.driver, each.cuda) for family, each in CATALOGUE.default_drivers.items()}
    old, newer = ("470", "11.4"), ("535", "12.2")
    assert found == {**dict.fromkeys(("g4dn", "g5", "p4d", "p4de"), old), **dict.fromkeys(("g6", "p5"), newer)}


@given(release=st.sampled_from(sorted(CATALOGUE.image_table.regions)), region=st.sampled_from(CATALOGUE.regions))
def test_an_image_exists_exactly_where_its_region_lists_the_release(release: str, region: str) -> None:
    if release in CATALOGUE.releases_in(region):
        assert f".{region}.{dns_suffix(region)}/" in CATALOGUE.image_uri(release=release, region=region)
    else:
        with pytest.raises(LookupError) as caught:
            CATALOGUE.image_uri(release=release, region=region)
        named = re.findall(r"\d\d\.\d\d", str(caught.value).partition("nearest there")[2])
        assert set(named) <= set(CATALOGUE.releases_in(region))


SHOWN_AS_NEW = (
    "docs/getting-started.md",
    "examples/bring-your-own/app.py",
    "examples/own-backend/environments/own-backend.yaml",
    "examples/own-role-and-image/environments/guest.yaml",
    "examples/pipeline/environments/shop.yaml",
    "examples/two-regions/app.py",
)
"""Files that show an endpoint as somebody begins it. ``int8-engine`` has a release whose TensorRT is known."""


@pytest.mark.parametrize("name", SHOWN_AS_NEW)
def test_pages_and_examples_begin_an_endpoint_with_the_release_that_add_gives_it(name: str) -> None:
    """Decision 30."""
    shown = re.findall(r"^ *release(?:: |=)\"([\d.]+)\"", (REPOSITORY / name).read_text(), re.MULTILINE)
    assert shown
    assert set(shown) == {CATALOGUE.default_release(region="us-east-1", instance=CATALOGUE.instance("ml.g4dn.xlarge"))}
