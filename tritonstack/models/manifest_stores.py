"""What manifests tell of archives: sizes, dependencies, and how long their engines took. No credentials are needed.

Manifests are those of the archives that were built here (``.local/archives``), or a copy of the bucket's
(``aws s3 sync s3://<bucket>/manifests/ manifests/``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tritonstack.naming import Platform

if TYPE_CHECKING:
    from tritonstack.models.manifest import Manifest

LOCAL = "local"
"""The target of archives that only the local Triton serves."""


class ManifestStore(Protocol):
    """Where manifests are looked up."""

    @property
    def name(self) -> str:
        """The place, in words: ``.local/archives``."""
        ...

    def manifest(self, model: str, digest: str, *, endpoint: str, platform: Platform) -> Manifest | None:
        """The manifest of the archive that an endpoint of this platform serves, or None."""
        ...

    def of_model(self, model: str) -> Iterator[Manifest]:
        """The manifests of every archive of a model, whatever its digest and target, in an order that stays."""
        ...


@dataclass(frozen=True, kw_only=True)
class BuiltHere:
    """The archives that were built here: ``<folder>/[<target>/]<model>.<digest>.json``.

    Attributes:
        folder: ``.local/archives``.
        name: the place, in words.
    """

    folder: Path
    name: str = ".local/archives"

    def manifest(self, model: str, digest: str, *, endpoint: str, platform: Platform) -> Manifest | None:
        """What serves on the platform, if that was built; else what only the local Triton serves."""
        del endpoint  # one build serves every endpoint of the platform
        file = f"{model}.{digest}.json"
        for target in ("", str(platform), python_target(platform), LOCAL):
            found = None if target is None else _read(self.folder / target / file)
            if found is not None:
                return found
        return None

    def of_model(self, model: str) -> Iterator[Manifest]:
        """By target and digest."""
        return _all(sorted([*self.folder.glob(f"{model}.*.json"), *self.folder.glob(f"*/{model}.*.json")]), model)


@dataclass(frozen=True, kw_only=True)
class CopyOfBucket:
    """A folder as the bucket has it: ``<folder>/<endpoint>/<platform>/<model>.<digest>.json``.

    Attributes:
        folder: the copy of ``manifests/``.
        name: the place, in words.
    """

    folder: Path
    name: str

    def manifest(self, model: str, digest: str, *, endpoint: str, platform: Platform) -> Manifest | None:
        """Of this endpoint; else of another of the platform, which holds the same archive."""
        file = f"{model}.{digest}.json"
        own = self.folder / endpoint / str(platform) / file
        places = [own, *sorted(self.folder.glob(f"*/{platform}/{file}"))]
        return next((found for found in map(_read, places) if found is not None), None)

    def of_model(self, model: str) -> Iterator[Manifest]:
        """By endpoint, platform and digest."""
        return _all(sorted(self.folder.glob(f"*/*/{model}.*.json")), model)


@dataclass(frozen=True, kw_only=True)
class ArchiveSize:
    """The size of one archive.

    Attributes:
        packed: bytes of the .tar.gz, which an instance fetches; None where that is not known.
        unpacked: bytes of the tar inside, which lie on its disk; likewise.
        reason: why not; empty where it is.
        source: whose manifest tells it; empty where none does.
    """

    packed: int | None = None
    unpacked: int | None = None
    reason: str = ""
    source: str = ""


class Sizes:
    """The sizes and dependencies of archives, from the first store that knows them."""

    def __init__(self, stores: Sequence[ManifestStore] = ()) -> None:
        """Takes the stores in the order to ask them."""
        self._stores = tuple(stores)

    def size(self, model: str, digest: str, *, endpoint: str, platform: Platform) -> ArchiveSize:
        """The size of what an endpoint of this platform serves, or why it is not known."""
        told = ""
        for store in self._stores:
            found = store.manifest(model, digest, endpoint=endpoint, platform=platform)
            if found is None:
                continue
            if found.target == LOCAL:
                told = f"{store.name} has it as it is built for the local Triton, which is another file"
                continue
            return ArchiveSize(packed=found.archive.bytes, unpacked=found.archive.tar_bytes, source=store.name)
        places = " or ".join(store.name for store in self._stores)
        return ArchiveSize(
            reason=told or (f"no manifest of {digest} in {places}" if places else "no manifests are given")
        )

    def dependency(self, model: str, digest: str, *, endpoint: str, platform: Platform) -> str | None:
        """What the archive's bytes depend on beside its inputs: none, python or engine; None where nobody tells."""
        for store in self._stores:
            found = store.manifest(model, digest, endpoint=endpoint, platform=platform)
            if found is not None:
                return found.dependency
        return None


def python_target(platform: Platform) -> str | None:
    """What archives with Python environments are built for on a platform; None for releases that nobody knows."""
    from tritonstack.catalogue import load_catalogue  # noqa: PLC0415 - its data files, which most need not

    release = load_catalogue().release(platform.release)
    return None if release is None else f"python-{release.python}"


def _all(paths: Sequence[Path], model: str) -> Iterator[Manifest]:
    read = (_read(path) for path in paths)
    return (found for found in read if found is not None and found.name == model)


def _read(path: Path) -> Manifest | None:
    """A manifest; None where there is none, or one of another version."""
    from tritonstack.models.manifest import read_manifest  # noqa: PLC0415 - pydantic's models, which most need not

    try:
        return read_manifest(path)
    except (OSError, ValueError):
        return None
