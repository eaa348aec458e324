"""The release that a server's version stands for."""

from __future__ import annotations

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.releases import release_order
from tritonstack_local.container.container import RELEASES, release_and_version


def test_the_pinned_server_s_release_is_named_with_its_version() -> None:
    assert release_and_version("2.51.0") == "24.10 (2.51.0)"


def test_of_an_unknown_server_the_version_alone_is_reported() -> None:
    assert release_and_version("2.99.0") == "2.99.0"


def test_no_release_here_contradicts_the_catalogue() -> None:
    """A release's own row has the same server; one without a row has a server between those of its neighbours' rows."""
    known = {row.version: row.server_version for row in load_catalogue().releases.values()}
    here = {release: version for version, release in RELEASES.items()}
    assert {release: known.get(release, version) for release, version in here.items()} == here
    both = known | here
    servers = [both[release] for release in sorted(both, key=release_order)]
    numbers = [tuple(map(int, server.split("."))) for server in servers]
    assert numbers == sorted(set(numbers))
