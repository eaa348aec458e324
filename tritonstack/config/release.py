"""An endpoint's Triton release: whether it is known, its image in the region, the host's driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tritonstack.catalogue import TritonRelease, dns_suffix, load_catalogue
from tritonstack.catalogue.releases import nearest_releases
from tritonstack.config.fields import Site
from tritonstack.config.yaml_loader import shown
from tritonstack.errors import Location, Problem, nearest

if TYPE_CHECKING:
    from tritonstack.config.endpoint import Endpoint


SAGEMAKER_DEFAULT_AMI = "sagemaker-default"
"""The value of ``host_ami`` that leaves the choice to SageMaker."""


def check_release(*, endpoint: Endpoint, location: Location, site: Site) -> Iterator[Problem]:
    """What is wrong with the release, its image and the host AMI."""
    catalogue, name, region = load_catalogue(), endpoint.release, site.region
    release = catalogue.release(name)
    has_image = endpoint.image is not None or name in catalogue.image_table.regions
    found = ""
    if release is None or (release.taken_from and not has_image):
        reason = catalogue.images_without_a_row.get(name)
        found = name + (f": AWS has an image of it, but {reason}" if reason else "")
    elif endpoint.image is None and region in catalogue.regions and name not in catalogue.releases_in(str(region)):
        found = f"{name}, of which AWS keeps no image in {region}"
    if found:
        known = region if region in catalogue.regions else None
        served = catalogue.served_releases(known)
        allowed = f"a release with an image in {known or 'a region of SageMaker'}: {', '.join(served) or 'none'}"
        near = f"The nearest: {', '.join(nearest_releases(name, served))}." if served else ""
        own = "To run this one, copy its image into your registry and set image." if release is not None else ""
        yield Problem(location=(*location, "release"), found=found, allowed=allowed, advice=f"{near} {own}".strip())
    if endpoint.image is not None:
        yield from _check_own_image(image=endpoint.image, location=(*location, "image"), site=site)
    if endpoint.host_ami not in (None, SAGEMAKER_DEFAULT_AMI):
        yield from _check_host_ami(endpoint=endpoint, release=release, location=location)


def release_warnings(*, endpoint: Endpoint, region: str) -> tuple[str, ...]:
    """Assumptions about the release that no source confirms."""
    catalogue = load_catalogue()
    release, warnings = catalogue.release(endpoint.release), []
    if release is not None and release.taken_from:
        warnings.append(
            f"release {release.version} is not in the catalogue: its Python ({release.python}), backends and CUDA are "
            f"taken to be those of {release.taken_from}"
        )
    source = catalogue.image_table.without_region_list.get(endpoint.release)
    if source is not None and endpoint.image is None:
        warnings.append(
            f"AWS documents an image of release {endpoint.release} and lists no regions ({source}): that it lies in "
            f"{region} is taken from the releases before and after; tritonstack preflight looks"
        )
    return tuple(warnings)


def _check_own_image(*, image: str, location: Location, site: Site) -> Iterator[Problem]:
    """An image of one's own must lie in the endpoint's region, under that region's host name.

    Source: SageMaker API, ContainerDefinition, Image; CreateModel: »Cross region ECR image pulls are not allowed«.
    """
    *_, region, suffix = image.partition("/")[0].split(".", maxsplit=4)  # <account>.dkr.ecr.<region>.<suffix>
    wanted = site.region or region
    registry = f"<account>.dkr.ecr.{wanted}.{dns_suffix(wanted)}/…"
    if region != wanted:
        allowed, advice = f"an image in the environment's region: {registry}", "Copy the image into a registry there."
        yield Problem(location=location, found=f"an image in {region}", allowed=allowed, advice=advice)
    elif suffix != dns_suffix(region):
        yield Problem(location=location, found=f"the host name ends in {suffix}", allowed=registry)


def _check_host_ami(*, endpoint: Endpoint, release: TritonRelease | None, location: Location) -> Iterator[Problem]:
    catalogue = load_catalogue()
    name = str(endpoint.host_ami)
    ami = catalogue.host_ami(name)
    if ami is None:
        names = [row.name for row in catalogue.host_amis]
        yield Problem(
            location=(*location, "host_ami"),
            found=shown(name),
            allowed=f"{', '.join(names)}, {SAGEMAKER_DEFAULT_AMI} or null (the one that suits the release)",
            advice=nearest(name, [*names, SAGEMAKER_DEFAULT_AMI]),
        )
    elif release is not None and ami.too_old_for(release):
        suitable = [row.name for row in catalogue.host_amis if not row.too_old_for(release)]
        yield Problem(
            location=(*location, "host_ami"),
            found=f"{name} (driver {ami.driver}, CUDA {ami.cuda}), but {release.version} has CUDA {release.cuda}",
            allowed=f"a driver for that CUDA's major version: {', '.join(suitable) or 'none'}",
            advice="Set null to take the one that suits the release.",
        )
