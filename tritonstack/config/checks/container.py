"""The container's environment against the release, the mode, the instance's memory and SageMaker's limits."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.catalogue import InstanceType, load_catalogue, release_order
from tritonstack.config.checks.arguments import check_arguments
from tritonstack.config.container import ContainerSettings
from tritonstack.config.endpoint import Endpoint
from tritonstack.config.findings import Finding, shown
from tritonstack.config.yaml_source import Location

RESERVED_PREFIX = "SAGEMAKER_"
SAGEMAKER_PORT = 8080
MOST_VARIABLES, MOST_BYTES_EACH, MOST_BYTES = 100, 1024, 32 * 1024
"""Limits of a container definition's Environment (SageMaker API, CreateModel)."""
TF1_DROPPED = "23.05"
"""The first image on AWS without TensorFlow 1 (upstream dropped it in 23.04, which AWS has no image of)."""


def check_container(*, endpoint: Endpoint, instance: InstanceType | None, location: Location) -> Iterator[Finding]:
    """What is wrong with the container's settings; ``location`` is the endpoint's."""
    place = (*location, "container")
    yield from _check_variables(endpoint=endpoint, location=place)
    yield from _check_gpu_limit(endpoint=endpoint, location=place)
    yield from _check_tensorflow(endpoint=endpoint, location=place)
    yield from _check_ports(container=endpoint.container, location=place)
    yield from _check_further_variables(endpoint=endpoint, location=place)
    yield from check_arguments(endpoint=endpoint, location=place)
    yield from _check_limits(endpoint=endpoint, location=place)
    if instance is not None:
        yield from _check_shared_memory(container=endpoint.container, instance=instance, location=place)


def set_by_hand(container: ContainerSettings) -> list[str]:
    """The fields that say something other than their default."""
    return [name for name, field in ContainerSettings.model_fields.items() if getattr(container, name) != field.default]


def _check_variables(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    """Each field that was set must be read by the release's image, in the endpoint's mode."""
    chosen = set_by_hand(endpoint.container)
    seen: set[str] = set()
    for variable in load_catalogue().serve_variables.values():
        field = variable.field
        if field is None or field not in chosen or field in seen:
            continue
        value = shown(getattr(endpoint.container, field))
        if not variable.known_to(endpoint.release):
            seen.add(field)
            yield Finding(
                location=(*location, field),
                found=f"{value} with release {endpoint.release}",
                allowed=f"release {variable.since} or newer: older images do not read {variable.name}",
                advice="Take a newer release or remove the field.",
            )
        if variable.scope == "single-model" and endpoint.multi_model:
            yield Finding(
                location=(*location, field),
                found=f"{value} in multi-model mode",
                allowed="null: it acts on /invocations only, which multi-model mode does not use",
                advice="Remove the field.",
            )


def _check_gpu_limit(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    limit = endpoint.container.model_load_gpu_limit
    if endpoint.multi_model and limit is not None:
        yield Finding(
            location=(*location, "model_load_gpu_limit"),
            found=f"{limit} in multi-model mode",
            allowed="null: Triton then answers 400 instead of 507, so SageMaker never evicts another model",
            advice="Remove the field; real shortage of GPU memory gives 507 and an eviction.",
        )


def _check_tensorflow(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    version = endpoint.container.tensorflow_version
    backend = load_catalogue().backends["tensorflow"]
    place = (*location, "tensorflow_version")
    if version is None:
        return
    if not backend.in_release(endpoint.release):
        yield Finding(
            location=place,
            found=f"{version} with release {endpoint.release}",
            allowed=f"null: the last release with the TensorFlow backend is {backend.last}",
            advice=f"Remove the field, or take release {backend.last} or older.",
        )
    elif version == 1 and release_order(endpoint.release) >= release_order(TF1_DROPPED):
        yield Finding(
            location=place,
            found=f"1 with release {endpoint.release}",
            allowed=f"2: TensorFlow 1 went with {TF1_DROPPED}",
        )


def _check_ports(*, container: ContainerSettings, location: Location) -> Iterator[Finding]:
    listeners = {
        "metrics": (container.allow_metrics, container.metrics_port, 8002),
        "grpc": (container.allow_grpc, container.grpc_port, 8001),
    }
    taken = {SAGEMAKER_PORT: "SageMaker's port"}
    for name, (allowed, port, default) in listeners.items():
        place = (*location, f"{name}_port")
        if port is not None and not allowed:
            yield Finding(
                location=place,
                found=str(port),
                allowed=f"null while allow_{name} is not true",
                advice=f"Set allow_{name}: true or remove the field.",
            )
        used = port or default
        if allowed and used in taken:
            yield Finding(location=place, found=str(used), allowed=f"a port other than {used}: it is {taken[used]}")
        taken.setdefault(used, f"the {name} port")


def _check_further_variables(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    known = load_catalogue().serve_variables
    for name in endpoint.container.environment:
        if not name.upper().startswith(RESERVED_PREFIX):
            continue
        variable = known.get(name.upper())
        if variable is None:
            allowed, advice = "a name without that prefix: no release's serve script reads this one", "Remove it."
        elif variable.field is None:
            allowed, advice = "a name without that prefix: SageMaker sets this one itself", "Remove it."
        else:
            allowed, advice = "a name without that prefix", f"Set container.{variable.field} instead."
        yield Finding(
            location=(*location, "environment", name), found=f"the variable {name}", allowed=allowed, advice=advice
        )


def _check_limits(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    rendered = endpoint.container_environment()
    place = (*location, "environment")
    if len(rendered) > MOST_VARIABLES:
        yield Finding(
            location=place,
            found=f"{len(rendered)} variables, those of the typed fields included",
            allowed=f"at most {MOST_VARIABLES}",
        )
    sizes = {name: (len(name.encode()), len(value.encode())) for name, value in rendered.items()}
    for name, size in sizes.items():
        if max(size) > MOST_BYTES_EACH:
            yield Finding(
                location=(*place, name) if name in endpoint.container.environment else (*location, "additional_args"),
                found=f"{name} with {max(size)} bytes",
                allowed=f"at most {MOST_BYTES_EACH} bytes for a name and for a value",
            )
    total = sum(sum(size) for size in sizes.values())
    if total > MOST_BYTES:
        yield Finding(
            location=place, found=f"{total} bytes in all", allowed=f"at most {MOST_BYTES} bytes for names and values"
        )


def _check_shared_memory(
    *, container: ContainerSettings, instance: InstanceType, location: Location
) -> Iterator[Finding]:
    """SageMaker offers up to half of the instance's memory as shared memory (developer guide, Triton)."""
    half = int(instance.memory_gib * 1024**3 / 2)
    allowed = (
        f"at most {half} bytes: SageMaker gives {instance.name} half of its {instance.memory_gib:g} GiB as /dev/shm"
    )
    if container.shm_default_bytes > half:
        yield Finding(
            location=(*location, "shm_default_bytes"), found=f"{container.shm_default_bytes}", allowed=allowed
        )
    elif container.shm_default_bytes + container.shm_growth_bytes > half:
        yield Finding(
            location=(*location, "shm_growth_bytes"),
            found=f"{container.shm_growth_bytes} on top of shm_default_bytes {container.shm_default_bytes}",
            allowed=f"{allowed}, so that one step of growth fits",
        )
