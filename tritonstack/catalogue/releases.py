"""Triton releases (NVIDIA's monthly containers): what each one contains."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tritonstack.catalogue.data_file import read_data

RELEASE_PATTERN = r"^[0-9]{2}\.(0[1-9]|1[0-2])$"
"""``YY.MM``."""


def release_order(release: str) -> tuple[int, int]:
    """A key that sorts releases by age: ``24.09`` → ``(24, 9)``.

    Raises:
        ValueError: the text is no ``YY.MM``.
    """
    if not re.fullmatch(RELEASE_PATTERN, release):
        raise ValueError(f"no Triton release: {release!r}")
    year, month = release.split(".")
    return int(year), int(month)


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A backend and the releases that contain it.

    Attributes:
        name: as in ``backend: "…"`` of a config.pbtxt.
        since: the first release that has it, or None (all known ones).
        last: the last release that has it, or None (still there).
        replacement: what to serve instead, or None.
    """

    name: str
    since: str | None = None
    last: str | None = None
    replacement: str | None = None

    @property
    def after_last(self) -> str:
        """What to do on a release after :attr:`last`; empty where there is no last one."""
        if not self.last:
            return ""
        other = f", or serve {self.replacement}" if self.replacement else ""
        return f"Take release {self.last} or older{other}."

    def in_release(self, release: str) -> bool:
        """Whether ``release`` (``YY.MM``) contains this backend."""
        order = release_order(release)
        return not (self.since and order < release_order(self.since)) and not (
            self.last and order > release_order(self.last)
        )


@dataclass(frozen=True, kw_only=True)
class TritonRelease:
    """A Triton release.

    Attributes:
        version: the container's ``YY.MM``.
        server_version: of tritonserver (``2.50.0``).
        tensorrt: inferred version, or None where UNVERIFIED; an engine build reads the real one inside the image.
        tensorrt_evidence: where that version was read.
        cuda: ``major.minor`` or ``major.minor.patch``, or None where UNVERIFIED.
        driver: the driver whose compatibility libraries the image carries, or None.
        onnxruntime: version, or None.
        python: minor version of the Python backend's interpreter; execution environments must have the same.
        backends: names of the backends in the image.
        note: what changed with this release, or empty.
        taken_from: the known release whose facts these are, where the catalogue has none of this one; else None.
    """

    version: str
    server_version: str
    tensorrt: str | None
    tensorrt_evidence: str
    cuda: str | None
    driver: str | None
    onnxruntime: str | None
    python: str
    backends: frozenset[str]
    note: str
    taken_from: str | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Sorts releases by age."""
        return release_order(self.version)

    def at_least(self, version: str) -> bool:
        """Whether this release is ``version`` or newer."""
        return self.order >= release_order(version)


@dataclass(frozen=True, kw_only=True)
class ReleaseTable:
    """Releases by version (oldest first), backends, ``platform:`` names, and image tags whose contents are unknown."""

    releases: Mapping[str, TritonRelease]
    backends: Mapping[str, Backend]
    platforms: Mapping[str, str]
    images_without_a_row: Mapping[str, str]

    def row(self, version: str) -> TritonRelease | None:
        """The release ``version``; where it is not known, with the facts of the newest known release before it.

        CUDA, drivers and Python have never gone back from one release to the next, so those facts are the least that a
        later release has; which TensorRT and ONNX Runtime it has is left open. None for a release older than all.
        """
        known = self.releases.get(version)
        if known is not None:
            return known
        older = [row for row in self.releases.values() if row.order < release_order(version)]
        if not older:
            return None
        nearest = older[-1]
        return dataclasses.replace(
            nearest,
            version=version,
            server_version="",
            tensorrt=nearest.tensorrt if nearest is list(self.releases.values())[-1] else None,
            tensorrt_evidence=f"not known; at least that of {nearest.version}",
            driver=None,
            onnxruntime=None,
            backends=frozenset(backend.name for backend in self.backends.values() if backend.in_release(version)),
            note="",
            taken_from=nearest.version,
        )


def read_releases() -> ReleaseTable:
    """The releases of ``data/triton_releases.json``."""
    document = read_data("triton_releases.json")
    backends = {name: Backend(name=name, **row) for name, row in document["backends"].items()}
    releases = {
        version: TritonRelease(
            version=version,
            backends=frozenset(backend.name for backend in backends.values() if backend.in_release(version)),
            **row,
        )
        for version, row in sorted(document["releases"].items(), key=lambda item: release_order(item[0]))
    }
    return ReleaseTable(
        releases=releases,
        backends=backends,
        platforms=document["platforms"],
        images_without_a_row=document["images_without_a_row"],
    )
