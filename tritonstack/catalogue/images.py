"""Where AWS keeps its Triton images: release and region → account and URI.

Two generations of accounts share no region's account: tags up to 23.10 lie in the older ones, tags from 23.12 in those
of the Deep Learning Containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.regions import dns_suffix
from tritonstack.catalogue.releases import release_order

NEAREST_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class TritonImage:
    """One image in AWS's registry."""

    account: str
    region: str
    repository: str
    tag: str

    @property
    def uri(self) -> str:
        """What a container definition's ``Image`` takes."""
        return f"{self.account}.dkr.ecr.{self.region}.{dns_suffix(self.region)}/{self.repository}:{self.tag}"


class ImageNotFoundError(LookupError):
    """AWS keeps no image of that release in that region.

    Attributes:
        release: the release that was asked for.
        region: the region that was asked for.
        nearest: the releases that exist there, nearest first, at most three; empty where the region has none at all.
    """

    def __init__(self, *, release: str, region: str, nearest: tuple[str, ...]) -> None:
        """Takes what was asked for and what exists."""
        self.release = release
        self.region = region
        self.nearest = nearest
        there = ", ".join(nearest) if nearest else "none"
        super().__init__(f"no Triton image of release {release} in {region} (nearest there: {there})")


@dataclass(frozen=True, kw_only=True)
class ImageTable:
    """The registry's accounts by generation and region, and each release's generation and regions.

    ``without_region_list``: the releases whose image AWS documents without naming its regions, with the source. They
    are taken to lie where both the release before and the one after lie (UNVERIFIED; preflight asks the registry).
    """

    repository: str
    tags: Mapping[str, str]
    accounts: Mapping[str, Mapping[str, str]]
    generations: Mapping[str, str]
    regions: Mapping[str, frozenset[str]]
    without_region_list: Mapping[str, str]

    def find(self, *, release: str, region: str, gpu: bool) -> TritonImage:
        """The image of a release in a region; ``gpu=False`` gives the CPU tag.

        Raises:
            ImageNotFoundError: there is none.
        """
        if region not in self.regions.get(release, ()):
            raise ImageNotFoundError(
                release=release,
                region=region,
                nearest=self._nearest(release=release, region=region),
            )
        return TritonImage(
            account=self.accounts[self.generations[release]][region],
            region=region,
            repository=self.repository,
            tag=self.tags["gpu" if gpu else "cpu"].format(version=release),
        )

    def releases_in(self, region: str) -> tuple[str, ...]:
        """The releases whose image lies in ``region``, oldest first."""
        return tuple(sorted((r for r, regions in self.regions.items() if region in regions), key=release_order))

    def _nearest(self, *, release: str, region: str) -> tuple[str, ...]:
        wanted = _months(release)
        there = sorted(self.releases_in(region), key=lambda candidate: (abs(_months(candidate) - wanted), candidate))
        return tuple(there[:NEAREST_SHOWN])


def read_images() -> ImageTable:
    """The images of ``data/triton_images.json``."""
    document = read_data("triton_images.json")
    legacy_regions = frozenset(document["accounts"]["legacy"])
    regions = {release: frozenset(names) for release, names in document["dlc_releases"].items()}
    unlisted: Mapping[str, str] = document["without_region_list"]
    regions |= {release: _regions_between(release, regions) for release in unlisted}
    generations = dict.fromkeys(regions, "dlc")
    for release in document["legacy_releases"]:
        regions[release] = legacy_regions
        generations[release] = "legacy"
    return ImageTable(
        repository=document["repository"],
        tags=document["tag"],
        accounts=document["accounts"],
        generations=generations,
        regions=regions,
        without_region_list=unlisted,
    )


def _regions_between(release: str, listed: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Where both the last listed release before ``release`` and the first one after it lie."""
    before = [each for each in listed if release_order(each) < release_order(release)]
    after = [each for each in listed if release_order(each) > release_order(release)]
    return listed[max(before, key=release_order)] & listed[min(after, key=release_order)]


def _months(release: str) -> int:
    year, month = release_order(release)
    return year * 12 + month
