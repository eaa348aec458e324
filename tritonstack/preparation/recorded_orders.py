"""Orders of an environment's endpoints with the digests that release records name: clients may still use those."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tritonstack.aws.session import Session, parameters_below
from tritonstack.naming import DIGEST_PATTERN, NAME_PATTERN, release_parameter
from tritonstack.preparation.build_order import Order, OrderedArchive, build_set
from tritonstack.served import Served

if TYPE_CHECKING:
    from tritonstack.config import EndpointSettings


def orders_of(served: Served, endpoints: Sequence[EndpointSettings], *, session: Session) -> tuple[Order, ...]:
    """An order for each platform of each endpoint: its build set, and the digests of its release records.

    Clients may use a recorded digest until a deployment moves the record. ``lambda/model_builds`` does the same for one
    endpoint of a deployment. Raises :class:`WorkFailedError` where SSM refuses.
    """
    environment = served.environment.environment
    return tuple(
        with_recorded(
            build_set(served, endpoint), recorded_digests(session, environment=environment, endpoint=endpoint.name)
        )
        for each in endpoints
        for endpoint in each.platform_settings
    )


def with_recorded(order: Order, recorded: Mapping[str, str]) -> Order:
    """An order with the archives of recorded digests (model → digest) that it does not name yet."""
    named = {(row.model, row.digest) for row in order.archives}
    more = (OrderedArchive(model=model, digest=digest) for model, digest in recorded.items() - named)
    return order.with_archives([*order.archives, *more])


def recorded_digests(session: Session, *, environment: str, endpoint: str) -> dict[str, str]:
    """Model → the digest that its release record names; other values are left out.

    Raises :class:`WorkFailedError` where SSM refuses.
    """
    folder = release_parameter(environment=environment, endpoint=endpoint, model="")
    return {
        model: digest
        for model, digest in parameters_below(session, folder).items()
        if re.search(NAME_PATTERN, model) and re.fullmatch(DIGEST_PATTERN, digest)
    }
