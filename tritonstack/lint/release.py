"""Rules about the Triton release of an endpoint: whether it is known, and its known vulnerabilities."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from tritonstack.catalogue import TritonRelease, load_catalogue, release_order
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import ServingTarget


def lint_release(
    target: ServingTarget, *, needed: Collection[str] = (), file: Path, line: int = 0
) -> Iterator[Finding]:
    """Findings about a target's release itself; none for a target without one.

    ``needed``: the backends that it must have, so that no release without them is suggested. ``file`` and ``line``:
    where the release is named.
    """
    if target.release is None:
        return
    release, catalogue = target.release, load_catalogue()
    if release.taken_from:
        yield Finding(
            file=file,
            line=line,
            rule="release-not-read",
            found=f"{_named(target, release)} is not in the catalogue; Python, backends and CUDA are taken to be those "
            f"of {release.taken_from}",
            allowed=f"a release that AWS has an image of: {', '.join(catalogue.served_releases())}",
        )
    yield from _vulnerabilities(target, release, needed=needed, file=file, line=line)


def _vulnerabilities(
    target: ServingTarget, release: TritonRelease, *, needed: Collection[str], file: Path, line: int
) -> Iterator[Finding]:
    """Known vulnerabilities of the target's release: a warning where a release that fits has fixes, else a note."""
    catalogue = load_catalogue()
    known = catalogue.vulnerabilities(release.version)
    if not known:
        return
    worst = known[0]
    score = "" if worst.score is None else f"CVSS {worst.score}, "
    found = f"{_named(target, release)} has {len(known)} known vulnerabilities that later releases fix, the gravest "
    found += f"{worst.id} ({score}fixed in {worst.fixed_in}): {worst.about}"
    fitting = catalogue.fitting_releases(
        region=target.region,
        instances=() if target.instance is None else (target.instance,),
        backends=needed,
        own_image=target.own_image,
    )
    newer = [each for each in fitting if release_order(each) > release.order]
    left = {each: catalogue.vulnerabilities(each) for each in newer}
    # Of those with the fewest the newest: it has all later fixes.
    best = min(reversed(newer), key=lambda each: len(left[each]), default=None)
    where = "" if target.region is None else f" in {target.region}"
    image = "the newest release" if target.own_image else f"the newest release with an image of AWS's{where}"
    if best is None or len(left[best]) >= len(known):
        fixes = sorted({each.fixed_in for each in known}, key=release_order)
        yield Finding(
            file=file,
            line=line,
            rule="release-unfixed",
            found=found,
            allowed=f"this release: none{where} that fits this endpoint has more of the fixes, which came with "
            f"{', '.join(fixes)}",
        )
        return
    rest = f"{len(left[best])} of the vulnerabilities left, which nothing there fixes" if left[best] else "none left"
    yield Finding(
        file=file,
        line=line,
        rule="release-vulnerable",
        found=found,
        allowed=f"release {best}, {image} that fits this endpoint: {rest}",
        advice=f'Set release: "{best}", then `tritonstack lint` checks the models for it.',
    )


def _named(target: ServingTarget, release: TritonRelease) -> str:
    """``release 24.09`` with what runs it, unless the target is no more than the release itself."""
    named = f"release {release.version}"
    return named if target.name.startswith(named) else f"{named} of {target.name}"
