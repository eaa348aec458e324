"""Which digest a record moves back to, and the refusals before anything is done."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.naming import DIGEST_LENGTH
from tritonstack.releases.deployed import DeployedSet, stack_name
from tritonstack.releases.record import Record

_DIGEST = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}")


def require_movable(record: Record, deployed: DeployedSet | None, *, environment: str) -> DeployedSet:
    """What is deployed of a record's endpoint.

    Raises:
        InputError: there is no such endpoint, or it has one model, which its Model names and not the record.
        WorkFailedError: a deployment is under way, which may move the record too.
    """
    name = f"{record.endpoint}/{record.model}"
    if deployed is None:
        stack = stack_name(environment=environment, endpoint=record.endpoint)
        advice = f"cdk deploy '{environment}/*'"
        raise InputError([Problem(field=name, found=f"no stack {stack}", allowed="a deployed endpoint", advice=advice)])
    if not deployed.multi_model:
        found = f"{record.endpoint} is a single-model endpoint: its archive is fixed by the deployment"
        problem = Problem(
            field=name,
            found=found,
            allowed="a model of a multi-model endpoint",
            advice=f"revert the model's commit, then cdk deploy '{environment}/serving-{record.endpoint}'",
        )
        raise InputError([problem])
    if deployed.in_progress:
        raise WorkFailedError(f"the stack {deployed.stack} is {deployed.status}; wait until its deployment has ended")
    return deployed


def chosen_digest(record: Record, *, to: str | None, stored: Sequence[str]) -> str:
    """The digest to move to: ``to``, else the last value of the record that is not the current one.

    ``stored``: the digests of the model whose archives lie under any platform of the endpoint. Raises
    :class:`InputError` for the current digest, an unknown one, and where there is no earlier one.
    """
    name = f"{record.endpoint}/{record.model}"
    known = tuple(dict.fromkeys([*record.digests, *stored]))
    others = [digest for digest in known if digest != record.digest]
    listed = ", ".join(others) or "none: no other digest was ever recorded or published"
    if to is None:
        earlier = [digest for digest in record.digests if digest != record.digest]
        if earlier:
            return earlier[0]
        found = f"no earlier digest in the history of {name}"
        raise InputError([Problem(field="--to", found=found, allowed=listed)])
    if to == record.digest:
        found = f"{to}, which is the current digest of {name}"
        raise InputError([Problem(field="--to", found=found, allowed=listed)])
    if not _DIGEST.fullmatch(to) or to not in known:
        found = f"{to!r}, which {name} never had"
        raise InputError([Problem(field="--to", found=found, allowed=listed)])
    return to
