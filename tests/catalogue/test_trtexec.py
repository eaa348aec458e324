"""Which options trtexec of each TensorRT has, and which TensorRT a Triton release may have."""

from __future__ import annotations

import pytest

from tests.cases import cases
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.trtexec_options import tensorrt_candidates, trtexec_options, trtexec_table

RELEASES = tuple(load_catalogue().releases.values())


def candidates(release: str) -> tuple[str, ...]:
    row = load_catalogue().release(release)
    assert row is not None
    return tensorrt_candidates(row, releases=RELEASES)


@cases("option, since, last")
def test_an_option_exists_from_its_first_version_to_its_last(option: str, since: str, last: str) -> None:
    versions = trtexec_table().versions
    expected = versions[versions.index(since) : versions.index(last) + 1]
    assert tuple(version for version in versions if option in trtexec_options(version)) == expected


def test_a_patch_level_has_the_options_of_its_minor_version() -> None:
    assert trtexec_options("8.6.3") == trtexec_options("8.6.1")
    assert trtexec_options("10.4.0.26") == trtexec_options("10.4.0")


@pytest.mark.parametrize("version", ["9.3.0", "11.2", "11.x", "12"])
def test_a_version_without_listed_options_is_an_error_that_names_the_listed_ones(version: str) -> None:
    with pytest.raises(LookupError, match=r"8\.2\.1.*11\.1"):
        trtexec_options(version)


def test_a_release_of_unknown_tensorrt_has_the_versions_that_its_neighbours_allow() -> None:
    assert candidates("24.09") == ("10.4.0",)
    assert candidates("26.05") == ("10.14", "10.15", "10.16")
    assert candidates("26.06") == ("11.0", "11.1")
