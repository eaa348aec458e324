"""The release that a server's version stands for."""

from __future__ import annotations

from tritonstack.catalogue import load_catalogue
from tritonstack.local.container.server_release import RELEASES, release_and_version


def test_the_pinned_server_s_release_is_named_with_its_version() -> None:
    assert release_and_version("2.51.0") == "24.10 (2.51.0)"


def test_of_an_unknown_server_the_version_alone_is_said() -> None:
    assert release_and_version("2.99.0") == "2.99.0"


def test_no_release_here_contradicts_the_catalogue() -> None:
    for version, release in RELEASES.items():
        row = load_catalogue().release(release)
        assert row is None or row.server_version == version
