"""Which instance types a project's environments use, and at what price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

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
        own: USD an hour, where the environment's file sets it: it goes before the listed one.
        listed: of ``prices.json``, else of the catalogue.
    """

    environment: str
    endpoint: str
    region: str
    instance_type: str
    own: Decimal | None
    listed: HostingPrice | None

    @property
    def unknown(self) -> bool:
        """Whether nobody gives the price."""
        return self.own is None and self.listed is None


def uses_of(environments: Iterable[Environment]) -> tuple[Use, ...]:
    """Every endpoint of the environments. Raises InputError where the project's price file is wrong."""
    return tuple(
        Use(
            environment=environment.environment,
            endpoint=endpoint.name,
            region=environment.region,
            instance_type=endpoint.instance_type,
            own=_own(environment, endpoint.instance_type),
            listed=environment.listed_price(endpoint.instance_type),
        )
        for environment in environments
        for endpoint in environment.endpoints
    )


def _own(environment: Environment, instance_type: str) -> Decimal | None:
    own = environment.prices.get(instance_type)
    return None if own is None else Decimal(str(own))
