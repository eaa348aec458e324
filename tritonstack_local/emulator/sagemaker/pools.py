"""Instance pools of a production variant: what its instances may be of, and which types they landed on.

Sources: developer guide, "Deploy to multiple instance types with instance pools" (by priority, the next pool where AWS
lacks capacity; scale-in from the lowest priority); API reference, InstancePool and InstancePoolSummary. The refusals'
sentences are UNVERIFIED, and so is whether the instances of one request may land on two types: here they land on one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tritonstack_local.emulator.request_validation import RefusedError

Variant = Mapping[str, Any]
FEWEST = 2
_PAGE = "SageMaker developer guide, Deploy to multiple instance types with instance pools"


def pools_of(variant: Variant) -> list[dict[str, Any]]:
    """The pools of a ProductionVariant, the preferred one first; none where it has one instance type."""
    return sorted(variant.get("InstancePools") or (), key=lambda pool: pool["Priority"])


def types_of(variant: Variant) -> tuple[str, ...]:
    """Every instance type that a ProductionVariant may run on, the preferred one first."""
    return tuple(pool["InstanceType"] for pool in pools_of(variant)) or (variant.get("InstanceType", ""),)


def models_of(variant: Variant) -> Iterator[str]:
    """The names of every Model that a ProductionVariant may run."""
    if "ModelName" in variant:
        yield variant["ModelName"]
    yield from (pool["ModelNameOverride"] for pool in pools_of(variant) if "ModelNameOverride" in pool)


def check_pools(variant: Variant, *, multi_model: bool) -> None:
    """Refuse pools that SageMaker refuses."""
    name, pools = variant["VariantName"], pools_of(variant)
    problem = ""
    if pools and "InstanceType" in variant:
        problem = "InstanceType and InstancePools cannot both be specified"
    elif pools and len(pools) < FEWEST:
        problem = f"InstancePools must have {FEWEST} pools or more"
    elif len(set(types_of(variant))) < len(pools):
        problem = "the instance types of InstancePools must differ"
    elif len({pool["Priority"] for pool in pools}) < len(pools):
        problem = "the priorities of InstancePools must differ"
    elif pools and multi_model:
        problem = "InstancePools are not supported for multi-model endpoints"
    if problem:
        raise RefusedError("ValidationException", f"Variant {name}: {problem}.", source=_PAGE)


def landing(variant: Variant, *, short: Callable[[str], bool]) -> str | None:
    """The instance type that further instances land on; None where AWS is ``short`` of every one."""
    return next((kind for kind in types_of(variant) if not short(kind)), None)


def summaries(variant: Variant, counts: Mapping[str, int]) -> dict[str, Any]:
    """``InstancePools`` as DescribeEndpoint shows them; no such member without pools."""
    if not pools_of(variant):
        return {}
    rows = [{"InstanceType": kind, "CurrentInstanceCount": counts.get(kind, 0)} for kind in types_of(variant)]
    return {"InstancePools": rows}


def scaled(pools: Sequence[Mapping[str, Any]], *, to: int, added: str | None) -> list[dict[str, Any]]:
    """Pools with ``to`` instances together: more of type ``added``, or fewer, from the lowest priority on."""
    rows = [dict(pool) for pool in pools]
    excess = sum(row["CurrentInstanceCount"] for row in rows) - to
    for row in reversed(rows):
        gone = min(max(excess, 0), row["CurrentInstanceCount"])
        row["CurrentInstanceCount"] -= gone
        excess -= gone
    for row in rows:
        if excess < 0 and row["InstanceType"] == added:
            row["CurrentInstanceCount"] -= excess
    return rows
