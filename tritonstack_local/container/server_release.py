"""Which Triton release the local server is: its log says only a server version."""

from __future__ import annotations

RELEASES = {"2.51.0": "24.10"}
"""Server version → release, for the servers that ``requirements/triton.in`` has pinned.

Source: NVIDIA numbers a release's server one minor version a month; the catalogue's rows on either side are 24.09 with
2.50.0 and 24.11 with 2.52.0.
"""


def release_and_version(server_version: str) -> str:
    """``24.10 (2.51.0)``; the version alone where it is none of ``RELEASES``."""
    release = RELEASES.get(server_version)
    return f"{release} ({server_version})" if release else server_version
