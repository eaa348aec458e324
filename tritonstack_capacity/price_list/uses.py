"""Which instance types a project's environments use, and at what price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tritonstack.catalogue.prices import HostingPrice
from tritonstack.settings import Environment


@dataclass(frozen=True, kw_only=True)
class Use:
    """One endpoint's instance type.

    Attributes:
        environment: its name.
        endpoint: its name in the environment.
        region: the environment's.
        instance_type: ``ml.g4dn.xlarge``.
        price: of the environment's file, else of ``prices.json``, else of the catalogue; None: nobody gives it.
    """

    environment: str
    endpoint: str
    region: str
    instance_type: str
    price: HostingPrice | None


def uses_of(environments: Iterable[Environment]) -> tuple[Use, ...]:
    """Every endpoint of the environments. Raises InputError where the project's price file is wrong."""
    return tuple(
        Use(
            environment=environment.environment,
            endpoint=endpoint.name,
            region=environment.region,
            instance_type=endpoint.instance_type,
            price=environment.price(endpoint.instance_type),
        )
        for environment in environments
        for endpoint in environment.endpoints
    )
