"""Which Triton release the local server is: its log says only a server version."""

from __future__ import annotations

RELEASES = {"2.51.0": "24.10"}
"""Server version → release, for the servers that ``requirements/triton.in`` has pinned.

Source: the tag r24.10 of triton-inference-server/server, whose TRITON_VERSION file says 2.51.0.
"""


def release_and_version(server_version: str) -> str:
    """``24.10 (2.51.0)``; the version alone where it is none of ``RELEASES``."""
    release = RELEASES.get(server_version)
    return f"{release} ({server_version})" if release else server_version
