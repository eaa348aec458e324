"""What shall serve an archive: the release, the instance and the endpoint that the linter checks it for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tritonstack.catalogue import InstanceType, TritonRelease, load_catalogue
from tritonstack.config import Endpoint
from tritonstack.errors import InputError, Problem


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where an archive shall be served. What is not known is None, and nothing is checked against it.

    Attributes:
        name: how findings call it: ``endpoint digits of local``, ``release 24.09``; empty for none.
        release: the Triton release.
        instance: the instance type.
        multi_model: whether the endpoint is in multi-model mode.
        backends: the backends that there are.
        shm_bytes: the shared memory that each Python instance starts with, bytes.
        volume_gb: the EBS volume of an instance without local NVMe, GB.
        default_model: single-model mode: the model that SAGEMAKER_TRITON_DEFAULT_MODEL_NAME names.
        names_ensemble: single-model mode: whether that variable names the archive's only ensemble where nobody set it,
            as synthesis does for an endpoint of the settings; a container by itself does not.
        unpacked_bytes: the size of the archive's content as built; without it the files that are there count.
    """

    name: str = ""
    release: TritonRelease | None = None
    instance: InstanceType | None = None
    multi_model: bool | None = None
    backends: frozenset[str] | None = None
    shm_bytes: int | None = None
    volume_gb: int | None = None
    default_model: str | None = None
    names_ensemble: bool = False
    unpacked_bytes: int | None = None

    @classmethod
    def of_endpoint(cls, endpoint: Endpoint, environment: str) -> Target:
        """An endpoint of an environment's settings."""
        release = load_catalogue().release(endpoint.release)
        return cls(
            name=f"endpoint {endpoint.name} of {environment}",
            release=release,
            instance=load_catalogue().instance(endpoint.instance_type),
            multi_model=endpoint.multi_model,
            backends=release.backends | set(endpoint.additional_backends) if release else None,
            shm_bytes=endpoint.container.shm_default_bytes,
            volume_gb=endpoint.volume_size_gb,
            default_model=endpoint.container.default_model_name,
            names_ensemble=True,
        )

    @classmethod
    def of_names(cls, *, release: str | None, instance_type: str | None) -> Target:
        """A release and an instance type by their names. Raises :class:`InputError` where there is no such thing."""
        found = load_catalogue().release(release) if release else None
        instance = load_catalogue().instance(instance_type) if instance_type else None
        problems = []
        if release and found is None:
            problems.append(_unknown("--release", release, load_catalogue().releases))
        if instance_type and instance is None:
            problems.append(_unknown("--instance-type", instance_type, load_catalogue().instances))
        if problems:
            raise InputError(problems)
        return cls(
            name=" on ".join(part for part in (f"release {release}" if release else "", instance_type or "") if part),
            release=found,
            instance=instance,
            backends=found.backends if found else known_backends(),
        )


def known_backends() -> frozenset[str]:
    """Every backend that some release of the catalogue has."""
    return frozenset(load_catalogue().backends)


def _unknown(option: str, value: str, known: Iterable[str]) -> Problem:
    return Problem(field=option, found=value, allowed=", ".join(known))
