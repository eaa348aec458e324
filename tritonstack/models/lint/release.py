"""Rules about the release that shall serve: what later ones fix, and what the catalogue has not read of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonstack.catalogue import TritonRelease, load_catalogue, release_order
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.target import Target


def lint_release(target: Target, *, file: Path, line: int = 0) -> Iterator[Finding]:
    """Findings about a target's release itself, whatever it serves; none for a target without one.

    ``file`` and ``line``: where the release is named.
    """
    if target.release is None:
        return
    if target.release.taken_from:
        yield _not_read(target, target.release, file, line)
    if load_catalogue().vulnerabilities(target.release.version):
        yield _vulnerable(target, target.release, file, line)


def _not_read(target: Target, release: TritonRelease, file: Path, line: int) -> Finding:
    catalogue = load_catalogue()
    return Finding(
        file=file,
        line=line,
        rule="release-not-read",
        found=f"{_named(target, release)} is not in the catalogue; Python, backends and CUDA are taken to be those of "
        f"{release.taken_from}",
        allowed=f"a release of the catalogue: {', '.join(catalogue.releases)}",
    )


def _vulnerable(target: Target, release: TritonRelease, file: Path, line: int) -> Finding:
    catalogue = load_catalogue()
    known = catalogue.vulnerabilities(release.version)
    worst = known[0]
    score = "" if worst.score is None else f"CVSS {worst.score}, "
    newest = max(catalogue.image_table.regions, key=release_order)
    left = len(catalogue.vulnerabilities(newest))
    advice = f"AWS's newest image is {newest}, where {left} of all that are known are left" if left < len(known) else ""
    return Finding(
        file=file,
        line=line,
        rule="release-vulnerable",
        found=f"{_named(target, release)} has {len(known)} known vulnerabilities that later releases fix, the gravest "
        f"{worst.id} ({score}fixed in {worst.fixed_in}): {worst.about}",
        allowed=f"release {max((each.fixed_in for each in known), key=release_order)} or newer",
        advice=advice,
    )


def _named(target: Target, release: TritonRelease) -> str:
    """``release 24.09`` with what runs it, unless the target is no more than the release itself."""
    named = f"release {release.version}"
    return named if target.name.startswith(named) else f"{named} of {target.name}"
