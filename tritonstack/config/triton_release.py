"""An endpoint's Triton release: whether the catalogue has it, its image in the region, the host's driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Discriminator, Field, Tag

from tritonstack.catalogue import HostDriver, InstanceType, TritonRelease, dns_suffix, load_catalogue
from tritonstack.catalogue.triton_releases import nearest_releases
from tritonstack.config.fields import SettingsModel, Site, VariableName, VariableValue
from tritonstack.config.patterns import ECR_PATTERN
from tritonstack.config.yaml_loader import shown, text_or_mapping
from tritonstack.errors import Location, Problem, nearest

if TYPE_CHECKING:
    from tritonstack.config.endpoint import EndpointSettings


SAGEMAKER_DEFAULT_AMI = "sagemaker-default"
"""The value of ``host_ami`` that leaves the choice to SageMaker."""


class ImageBuild(SettingsModel):
    """A Triton image that `cdk deploy` builds with Docker, for linux/amd64, and pushes to the CDK's own repository."""

    directory: str = Field(description="Folder of the build context, below the project's: images/triton.")
    dockerfile: str = Field(default="Dockerfile", description="The Dockerfile, below that folder.")
    build_args: dict[VariableName, VariableValue] = Field(default={}, description="Build arguments: ARG → value.")


ImageSetting = Annotated[
    Annotated[str, Field(max_length=255, pattern=ECR_PATTERN), Tag("|text")] | Annotated[ImageBuild, Tag("|mapping")],
    Discriminator(text_or_mapping),
]
"""An image in ECR by its URI, or one that a deployment builds."""


def check_image_build(*, image: ImageBuild, location: Location, project: Path) -> Iterator[Problem]:
    """Folder and Dockerfile are there, below the project's folder: elsewhere another machine would not find them."""
    folder = project / image.directory
    if project.resolve() not in folder.resolve().parents or not folder.is_dir():
        allowed = f"a folder below {project}"
        yield Problem(location=(*location, "directory"), found=f"no folder {image.directory} there", allowed=allowed)
    elif not (folder / image.dockerfile).is_file():
        found = f"no file {image.dockerfile} in {image.directory}"
        yield Problem(location=(*location, "dockerfile"), found=found, allowed="a Dockerfile of that folder")


def check_release(*, endpoint: EndpointSettings, location: Location, site: Site) -> Iterator[Problem]:
    """Check the release, its image and the host AMI."""
    catalogue, name, region = load_catalogue(), endpoint.release, site.region
    release = catalogue.release(name)
    own = endpoint.image if isinstance(endpoint.image, str) else None  # one that is built is built on AWS's
    has_image = own is not None or name in catalogue.image_table.regions
    instances = _instances(endpoint)
    found = ""
    copy = "" if release is None else "To run this one, copy its image into your registry and set image."
    if release is None or (release.taken_from and not has_image):
        reason = catalogue.images_without_a_row.get(name)
        found = name + (f": AWS has an image of it, but {reason}" if reason else "")
    elif unknown := [each for each in instances if not release.supports(each)]:
        found = f"{name} (CUDA {release.cuda or 'older'}) on {unknown[0].name}, whose {unknown[0].gpu} (compute "
        found += f"capability {unknown[0].compute_capability}) CUDA knows from {unknown[0].first_cuda} on"
        copy = ""
    elif own is None and region in catalogue.regions and name not in catalogue.releases_in(str(region)):
        found = f"{name}, of which AWS keeps no image in {region}"
    if found:
        known = region if region in catalogue.regions else None
        fitting = catalogue.fitting_releases(region=known, instances=instances, own_image=own is not None)
        allowed = f"a release with an image in {known or 'a region of SageMaker'}"
        allowed = "a release of the catalogue" if own is not None else allowed
        allowed += " and a CUDA that knows the GPU" if any(each.first_cuda for each in instances) else ""
        near = f"The nearest: {', '.join(nearest_releases(name, fitting))}." if fitting else ""
        allowed += f": {', '.join(fitting) or 'none'}"
        yield Problem(location=(*location, "release"), found=found, allowed=allowed, advice=f"{near} {copy}".strip())
    if own is not None:
        yield from _check_own_image(image=own, location=(*location, "image"), site=site)
    if endpoint.host_ami not in (None, SAGEMAKER_DEFAULT_AMI):
        yield from _check_host_ami(endpoint=endpoint, release=release, location=location)
    elif release is not None and endpoint.inference_ami_version is None:
        yield from _check_default_driver(endpoint=endpoint, release=release, location=location)


def _instances(endpoint: EndpointSettings) -> tuple[InstanceType, ...]:
    """The instance types of the production variants, as far as the catalogue knows them."""
    catalogue = load_catalogue()
    found = (catalogue.instance(each.instance_type) for each in endpoint.type_settings)
    return tuple(dict.fromkeys(each for each in found if each is not None))


def release_warnings(*, endpoint: EndpointSettings, region: str) -> tuple[str, ...]:
    """Assumptions about the release that no source confirms."""
    catalogue = load_catalogue()
    release, warnings = catalogue.release(endpoint.release), []
    if release is not None and release.taken_from:
        warnings.append(
            f"release {release.version} is not in the catalogue: its Python ({release.python}), backends and CUDA are "
            f"taken to be those of {release.taken_from}"
        )
    if release is not None and endpoint.inference_ami_version is None:
        families = {each.instance_type.split(".")[1] for each in endpoint.type_settings}
        if unknown := sorted(families - set(catalogue.default_drivers)):
            warnings.append(
                f"host_ami: SageMaker chooses the host AMI, and which driver it takes for {', '.join(unknown)} was not "
                f"read in AWS's documentation: {release.version} needs one for CUDA {release.cuda or '(unknown)'}"
            )
    source = catalogue.image_table.without_region_list.get(endpoint.release)
    if source is not None and not isinstance(endpoint.image, str):
        warnings.append(
            f"AWS documents an image of release {endpoint.release} and lists no regions ({source}): that it lies in "
            f"{region} is taken from the releases before and after; tritonstack preflight looks"
        )
    return tuple(warnings)


def _check_own_image(*, image: str, location: Location, site: Site) -> Iterator[Problem]:
    """An image of one's own must be in the endpoint's region, under that region's host name.

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


def _check_host_ami(
    *, endpoint: EndpointSettings, release: TritonRelease | None, location: Location
) -> Iterator[Problem]:
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
    elif release is not None and (reason := _unfit(ami, release, endpoint)):
        suitable = [row.name for row in catalogue.host_amis if not _unfit(row, release, endpoint)]
        yield Problem(
            location=(*location, "host_ami"),
            found=f"{name} (driver {ami.driver}, CUDA {ami.cuda}), but {reason}",
            allowed=f"a driver that knows both: {', '.join(suitable) or 'none'}",
            advice="Set null to take the one that suits the release." if suitable else "",
        )


def _unfit(driver: HostDriver, release: TritonRelease, endpoint: EndpointSettings) -> str:
    """Why a host's driver serves the release or a GPU not; empty where it does."""
    if driver.too_old_for(release):
        return f"{release.version} has CUDA {release.cuda}"
    unknown = [each for each in _instances(endpoint) if not driver.supports(each)]
    return (
        f"{unknown[0].name} has {unknown[0].gpu}, which CUDA knows from {unknown[0].first_cuda} on" if unknown else ""
    )


def _check_default_driver(
    *, endpoint: EndpointSettings, release: TritonRelease, location: Location
) -> Iterator[Problem]:
    """The driver that SageMaker takes by itself must not be below the release's CUDA major version.

    Source: SageMaker developer guide, "Best practices to minimize interruptions during GPU driver upgrades".
    """
    catalogue = load_catalogue()
    proposal = catalogue.propose_host_ami(release.version, instance=catalogue.instance(endpoint.instance_type))
    for instance_type in sorted({each.instance_type for each in endpoint.type_settings}):
        default = catalogue.default_drivers.get(instance_type.split(".")[1])
        if default is None or not default.too_old_for(release):
            continue
        yield Problem(
            location=(*location, "host_ami"),
            found=f"{endpoint.host_ami or 'null'}: on {instance_type} SageMaker takes driver {default.driver} (CUDA "
            f"{default.cuda}), but {release.version} has CUDA {release.cuda}",
            allowed="a host AMI with a driver for that CUDA's major version: "
            f"{proposal.name if proposal else 'none is known, so another release'}",
            advice="Set null to take the one that suits the release." if proposal else "",
        )
