"""What the endpoints of an environment need in the bucket: what they serve, and what their release records name.

The function of the builds stack works the same out for one endpoint of a deployment, from the build set: the release
set, and every recorded digest, for callers may use it until the deployment moves the record.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import Session
from tritonstack.engines.order import Order, OrderedArchive, build_set
from tritonstack.errors import WorkFailedError
from tritonstack.naming import DIGEST_LENGTH, NAME_PATTERN, ArchiveName, release_parameter

if TYPE_CHECKING:
    from tritonstack.engines.served import Served
    from tritonstack.settings import Endpoint

_DIGEST = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}")


def orders_of(served: Served, endpoints: Sequence[Endpoint], *, session: Session) -> tuple[Order, ...]:
    """An order for each endpoint: its build set, and the digests that its release records name.

    Args:
        served: a matched environment.
        endpoints: some of its endpoints.
        session: makes the client of SSM, where the records are.

    Raises:
        WorkFailedError: SSM refuses.
    """
    return tuple(
        with_recorded(
            build_set(served, endpoint),
            recorded_digests(session, environment=served.environment.environment, endpoint=endpoint.name),
        )
        for endpoint in endpoints
    )


def with_recorded(order: Order, recorded: Mapping[str, str]) -> Order:
    """An order with the archives of recorded digests (model → digest) that it does not name yet."""
    named = {row.name for row in order.archives}
    more = [
        OrderedArchive(name=name, dependency=None)
        for name in (ArchiveName(model=model, digest=digest) for model, digest in recorded.items())
        if name not in named
    ]
    return dataclasses.replace(order, archives=tuple(sorted([*order.archives, *more], key=lambda row: row.name)))


def recorded_digests(session: Session, *, environment: str, endpoint: str) -> dict[str, str]:
    """Model → the digest that its release record names; what is no record of a digest is left out.

    Raises :class:`WorkFailedError` where SSM refuses.
    """
    folder = release_parameter(environment=environment, endpoint=endpoint, model="")
    found: dict[str, str] = {}
    try:
        pages = session.client("ssm").get_paginator("get_parameters_by_path").paginate(Path=folder)
        for page in pages:
            found |= {row["Name"].removeprefix(folder): row["Value"] for row in page["Parameters"]}
    except (BotoCoreError, ClientError) as error:
        raise WorkFailedError(f"could not read the release records below {folder}: {error}") from error
    return {
        model: digest for model, digest in found.items() if re.search(NAME_PATTERN, model) and _DIGEST.fullmatch(digest)
    }
