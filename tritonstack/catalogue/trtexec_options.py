"""Options of trtexec by TensorRT version; trtexec fails on an option that its version lacks.

Source: samples/trtexec/trtexec.cpp of NVIDIA/TensorRT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.triton_releases import TritonRelease, minor_version, release_order

MinorVersion = tuple[int, int]
"""TensorRT's major and minor version: patch levels of one minor version have the same options."""


@dataclass(frozen=True, kw_only=True)
class TrtexecTable:
    """Content of the data file."""

    versions: tuple[str, ...]  # TensorRT versions with known options, oldest first; each of another minor version
    options: Mapping[str, frozenset[str]]  # version → options of its trtexec (``--fp16``)
    # option → value → the first version that takes the value, where values came later than the option
    values: Mapping[str, Mapping[str, str]]
    # TensorRT's major version → the first Triton release that has it; without those all releases have
    first_release: Mapping[int, str]

    def row_of(self, version: str) -> str | None:
        """The known version whose options a version has: the one of the same minor version, or None."""
        parts = version.split(".")
        if len(parts) == 1 or not all(part.isdigit() for part in parts):
            return None
        wanted = minor_version(version)
        return next((known for known in self.versions if minor_version(known) == wanted), None)


@lru_cache(maxsize=1)
def trtexec_table() -> TrtexecTable:
    """The table of this version's data file; read once."""
    document = read_data("trtexec_options.json")
    versions: list[str] = document["versions"]
    place = {version: index for index, version in enumerate(versions)}
    known: dict[str, set[str]] = {version: set() for version in versions}
    for option, ranges in document["options"].items():
        for first, last in ranges:
            for version in versions[place[first] : place[last] + 1]:
                known[version].add(option)
    return TrtexecTable(
        versions=tuple(versions),
        options={version: frozenset(options) for version, options in known.items()},
        values=document["values"],
        first_release={int(major): release for major, release in document["first_release_of_major"].items()},
    )


def trtexec_options(version: str) -> frozenset[str]:
    """The options of a TensorRT version's trtexec: ``8.6.1``, or any patch level of its minor version.

    Raises LookupError where no version of that minor version is known.
    """
    row = trtexec_table().row_of(version)
    if row is None:
        known = ", ".join(trtexec_table().versions)
        raise LookupError(f"no trtexec options are known of TensorRT {version} (known: {known})")
    return trtexec_table().options[row]


def takes_option(version: str, option: str, value: str = "") -> bool:
    """Whether trtexec of a TensorRT version has an option and takes the value, where the values that it takes differ.

    Raises LookupError as ``trtexec_options``.
    """
    since = trtexec_table().values.get(option, {}).get(value)
    is_new_enough = since is None or minor_version(version) >= minor_version(since)
    return option in trtexec_options(version) and is_new_enough


def tensorrt_candidates(release: TritonRelease, *, releases: Sequence[TritonRelease]) -> tuple[str, ...]:
    """The known TensorRT versions that a Triton release may have, oldest first: one where its version is known.

    Of a release whose version is unknown (None) or known by its major version only (``11.x``), every version that
    is neither older than that of the releases before it nor newer than that of those after it, and no version of a
    major version that came to Triton later. ``releases`` are all of the catalogue. Empty where no options are known
    of the release's TensorRT.
    """
    table = trtexec_table()
    exact = table.row_of(release.tensorrt) if release.tensorrt else None
    if exact is not None:
        return (exact,)
    if release.tensorrt is not None:
        major, _, rest = release.tensorrt.partition(".")
        return tuple(version for version in table.versions if rest == "x" and version.partition(".")[0] == major)
    low, high = _bounds(release, releases)
    later = {major for major, first in table.first_release.items() if release.order < release_order(first)}
    found = {version: minor_version(version) for version in table.versions}
    return tuple(version for version, minor in found.items() if low <= minor <= high and minor[0] not in later)


def _bounds(release: TritonRelease, releases: Sequence[TritonRelease]) -> tuple[MinorVersion, MinorVersion]:
    """The oldest and the newest minor version that the neighbours leave open."""
    exact = [row for row in releases if row.tensorrt and not row.tensorrt.endswith(".x")]
    before = [minor_version(row.tensorrt) for row in exact if row.tensorrt and row.order < release.order]
    after = [minor_version(row.tensorrt) for row in exact if row.tensorrt and row.order > release.order]
    versions = trtexec_table().versions
    return max(before, default=minor_version(versions[0])), min(after, default=minor_version(versions[-1]))
