"""Backends that models need against the backends that an endpoint's release has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tritonstack.catalogue import load_catalogue, release_order
from tritonstack.config.checks.site import nearest
from tritonstack.config.endpoint import Endpoint
from tritonstack.config.findings import Finding
from tritonstack.config.yaml_source import Location


def check_model(*, endpoint: Endpoint, backends: Iterable[str], model: str, location: Location) -> Iterator[Finding]:
    """Every backend (a value of ``backend:`` or ``platform:``) that a model needs and its endpoint's release lacks."""
    catalogue = load_catalogue()
    release = catalogue.release(endpoint.release)
    if release is None:
        return
    available = sorted(release.backends | set(endpoint.additional_backends))
    for named in backends:
        name = catalogue.backend_name(named)
        if name in available:
            continue
        reason, advice = _why_not(name=name, release=release.version, available=available)
        yield Finding(
            location=location,
            found=f"{model} needs the backend {name}{'' if named == name else f' ({named})'}, {reason}",
            allowed=f"a backend of release {release.version}: {', '.join(available)}",
            advice=advice,
        )


def _why_not(*, name: str, release: str, available: Iterable[str]) -> tuple[str, str]:
    """Why ``release`` does not have the backend, and what to do."""
    backend = load_catalogue().backends.get(name)
    if backend is None:
        bring = "If the image or the archive brings it, name it in additional_backends."
        return "which no release has", f"{nearest(name, available)} {bring}".strip()
    if backend.since and release_order(release) < release_order(backend.since):
        return f"which came with release {backend.since}", f"Take release {backend.since} or newer."
    return f"which went after release {backend.last}", backend.after_last
