"""An endpoint against its environment and the catalogue: instance type, mode, volume, models, names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tritonstack.catalogue import InstanceType
from tritonstack.config.checks.container import check_container
from tritonstack.config.checks.data_capture import check_data_capture
from tritonstack.config.checks.network import check_isolation
from tritonstack.config.checks.release import check_release
from tritonstack.config.checks.rollout import check_rollout
from tritonstack.config.checks.scaling import check_scaling
from tritonstack.config.checks.site import Site, nearest
from tritonstack.config.endpoint import PRODUCTION_INSTANCES, Endpoint
from tritonstack.config.fields import MAXIMUM_NAME
from tritonstack.config.findings import Finding
from tritonstack.config.yaml_source import Location


def check_endpoint(
    *, endpoint: Endpoint, location: Location, site: Site, unusable: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Everything that is wrong with one endpoint whose fields have the right types.

    Args:
        endpoint: the endpoint.
        location: its place in the file.
        site: the environment's own fields.
        unusable: required fields that hold a stand-in; what depends on them is not checked.
    """
    instance = None if "instance_type" in unusable else site.catalogue.instance(endpoint.instance_type)
    if "name" not in unusable:
        yield from _check_name(endpoint=endpoint, location=location, site=site)
    yield from _check_models(endpoint=endpoint, location=location)
    if "mode" not in unusable:
        yield from _check_mode(endpoint=endpoint, location=location, site=site)
        yield from check_data_capture(endpoint=endpoint, location=location)
        yield from check_rollout(endpoint=endpoint, location=location)
        yield from check_scaling(endpoint=endpoint, location=location, site=site)
    if instance is not None:
        yield from _check_instance(endpoint=endpoint, instance=instance, location=location, site=site)
        if endpoint.multi_model and "mode" not in unusable:
            yield from _check_multi_model_type(endpoint=endpoint, instance=instance, location=location, site=site)
    elif "instance_type" not in unusable:
        yield _unknown_type(endpoint=endpoint, location=location, site=site)
    yield from _check_volume_key(endpoint=endpoint, location=location, site=site)
    yield from check_isolation(endpoint=endpoint, location=location)
    if "release" not in unusable:
        yield from check_release(endpoint=endpoint, location=location, site=site)
    if not unusable & {"release", "mode"}:
        yield from check_container(endpoint=endpoint, instance=instance, location=location)


def _check_name(*, endpoint: Endpoint, location: Location, site: Site) -> Iterator[Finding]:
    if site.environment is None:
        return
    name = endpoint.sagemaker_name(site.environment)
    if len(name) > MAXIMUM_NAME:
        yield Finding(
            location=(*location, "name"),
            found=f"{name} ({len(name)} characters)",
            allowed=f"at most {MAXIMUM_NAME} characters for <environment>-<name>, the endpoint's name at SageMaker",
            advice="Shorten the endpoint's name or the environment's.",
        )


def _check_models(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    for name, count in Counter(endpoint.models).items():
        if count > 1:
            yield Finding(location=(*location, "models"), found=f"{name} {count} times", allowed="each model once")


def _check_mode(*, endpoint: Endpoint, location: Location, site: Site) -> Iterator[Finding]:
    """Fields that only one of the two modes has."""
    if endpoint.multi_model:
        count_is_set = "initial_instance_count" in endpoint.model_fields_set  # else it is enough by default
        if site.production and count_is_set and endpoint.initial_instance_count < PRODUCTION_INSTANCES:
            yield Finding(
                location=(*location, "initial_instance_count"),
                found=str(endpoint.initial_instance_count),
                allowed=f"{PRODUCTION_INSTANCES} or more on a production multi-model endpoint",
                advice="With one instance, every model is gone while that instance is replaced.",
            )
        return
    if len(endpoint.models) > 1:
        yield Finding(
            location=(*location, "models"),
            found=f"{len(endpoint.models)} models on a single-model endpoint",
            allowed="exactly one",
            advice="Set mode: multi-model, make an ensemble of them, or give each an endpoint of its own.",
        )
    if endpoint.model_cache is not None:
        yield Finding(
            location=(*location, "model_cache"),
            found=f"{endpoint.model_cache} on a single-model endpoint",
            allowed="nothing: only multi-model mode has a model cache",
            advice="Remove the field.",
        )
    if endpoint.local.max_loaded_models is not None:
        yield Finding(
            location=(*location, "local", "max_loaded_models"),
            found=f"{endpoint.local.max_loaded_models} on a single-model endpoint",
            allowed="null: the one model stays loaded",
            advice="Remove the field.",
        )
    if endpoint.accept_unlisted_instance_type:
        yield Finding(
            location=(*location, "accept_unlisted_instance_type"),
            found="true on a single-model endpoint",
            allowed="false: every GPU type serves a single model",
            advice="Remove the field.",
        )


def _unknown_type(*, endpoint: Endpoint, location: Location, site: Site) -> Finding:
    catalogue = site.catalogue
    reason = catalogue.instance_table.omitted.get(endpoint.instance_type)
    return Finding(
        location=(*location, "instance_type"),
        found=endpoint.instance_type + (f" ({reason})" if reason else ""),
        allowed=f"a GPU type of the catalogue: {', '.join(catalogue.instances)}",
        advice=nearest(endpoint.instance_type, catalogue.instances),
    )


def _check_instance(*, endpoint: Endpoint, instance: InstanceType, location: Location, site: Site) -> Iterator[Finding]:
    if site.region in site.catalogue.regions and site.region not in instance.regions:
        there = site.catalogue.types_in(site.region)
        yield Finding(
            location=(*location, "instance_type"),
            found=f"{instance.name}, which SageMaker does not host in {site.region}",
            allowed=f"a type that is hosted there: {', '.join(there) or 'none'}",
            advice=f"The type is hosted in {', '.join(instance.regions)}.",
        )
    if instance.local_nvme_gb:
        yield from _check_volume(endpoint=endpoint, instance=instance, location=location)


def _check_multi_model_type(
    *, endpoint: Endpoint, instance: InstanceType, location: Location, site: Site
) -> Iterator[Finding]:
    listed = [row.name for row in site.catalogue.instances.values() if row.multi_model]
    allowed = f"a type with one GPU that AWS lists for multi-model mode: {', '.join(listed)}"
    if instance.multi_model_support == "refused":
        yield Finding(
            location=(*location, "instance_type"),
            found=f"{instance.name} with {instance.gpu_count} GPUs in multi-model mode",
            allowed=allowed,
            advice="Take a single-GPU type, or set mode: single-model.",
        )
    elif instance.multi_model_support == "unlisted" and not endpoint.accept_unlisted_instance_type:
        yield Finding(
            location=(*location, "instance_type"),
            found=f"{instance.name}, which AWS does not list for multi-model mode",
            allowed=allowed,
            advice="If you know that SageMaker takes it, set accept_unlisted_instance_type: true on this endpoint.",
        )


def _check_volume(*, endpoint: Endpoint, instance: InstanceType, location: Location) -> Iterator[Finding]:
    """What has local NVMe is given no EBS volume: its size and its key say nothing about where models lie.

    Sources: SageMaker developer guide (no volume on "d" and g5 types; whether a size is rejected on g6 and p5 is
    UNVERIFIED, so it is left out there too) and API reference, CreateEndpointConfig, KmsKeyId.
    """
    disk = f"{instance.name}, which has {instance.local_nvme_gb} GB of local NVMe"
    if endpoint.volume_size_gb is not None:
        yield Finding(
            location=(*location, "volume_size_gb"),
            found=f"{endpoint.volume_size_gb} on {disk}",
            allowed="null: a type with local NVMe keeps its models there, not on an EBS volume",
            advice="Remove the field; take a larger type where its disk is too small.",
        )
    if endpoint.volume_key_arn is not None:
        yield Finding(
            location=(*location, "volume_key_arn"),
            found=f"a KMS key on {disk}",
            allowed="null: a key does not encrypt local storage, which the instance's hardware encrypts by itself",
            advice="Remove the field.",
        )


def _check_volume_key(*, endpoint: Endpoint, location: Location, site: Site) -> Iterator[Finding]:
    key = endpoint.volume_key_arn
    if key and site.region and key.split(":")[3] != site.region:
        yield Finding(
            location=(*location, "volume_key_arn"),
            found=f"a key in {key.split(':')[3]}",
            allowed=f"a key in the environment's region, {site.region}",
        )
