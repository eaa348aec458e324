"""The manifests of the models' archives: from the bucket, else from the archives that were built on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tritonstack.client.releases import Release

Manifest = Mapping[str, Any]


class Lookup(Protocol):
    """What is asked of the client."""

    def resolve(self, name: str) -> Release:
        """The current archive of a model."""

    def manifest(self, name: str) -> Manifest | None:
        """The manifest of a model's archive in the bucket; None where this caller cannot read it."""


class Manifests:
    """Manifests by archive. One never changes, so one that was found is kept. Thread safe."""

    def __init__(self, *, lookup: Lookup, archives: Path | None) -> None:
        """``archives``: the folder of the archives built on this machine; None for none."""
        self._lookup = lookup
        self._archives = archives
        self._kept: dict[Release, Manifest] = {}
        self._lock = threading.Lock()

    def of(self, name: str) -> Manifest | None:
        """A model's manifest, or None where there is none to be read. Raises what the client raises for the name."""
        release = self._lookup.resolve(name)
        with self._lock:
            if release in self._kept:
                return self._kept[release]
        found = self._lookup.manifest(name) or self._built_here(release)
        if found is not None:
            with self._lock:
                self._kept[release] = found
        return found

    def _built_here(self, release: Release) -> Manifest | None:
        if self._archives is None:
            return None
        for path in sorted(self._archives.rglob(f"{release.model}.{release.digest}.json")):
            try:
                manifest = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue
            if isinstance(manifest, dict):
                return manifest
        return None
