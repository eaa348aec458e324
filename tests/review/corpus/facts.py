"""Facts of a review's report, as the corpus keeps them: kinds, addresses and numbers, no sentences."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tritonstack.review.document import AmountEntry, EnvironmentEntry

COUNTED = {"changed in place", "may change in place"}
"""Effects whose resources are counted; of others each is named."""


def facts(environment: EnvironmentEntry) -> dict[str, Any]:
    """The facts of one environment; empty parts are left out."""
    cost = environment.cost
    ends = (cost.minimum_before, cost.minimum_after, cost.maximum_before, cost.maximum_after)
    findings = Counter(each.change for each in environment.findings)
    parts: dict[str, Any] = {
        "level": environment.level.value,
        "stacks": {each.name: each.effect.value for each in environment.stacks if each.effect != "changed in place"},
        "resources": _resources(environment),
        "replaced by": sorted(
            {
                f"{each.path} {entry.name.partition('.')[0].partition('[')[0]}"
                for each in environment.resources
                for entry in each.properties
                if entry.replaces == "yes" and entry.follows is None
            }
        ),
        "traffic": {each.endpoint: f"{each.touched}, {each.update}" for each in environment.traffic},
        "permissions": dict(sorted(Counter(each.kind for each in environment.permissions).items())),
        "wildcards": sum(bool(each.wildcards) for each in environment.permissions),
        "other accounts": sorted({one for each in environment.permissions for one in each.other_accounts}),
        "openings": sorted(f"{each.kind} {each.stack}/{each.name}" for each in environment.openings),
        "models": {each.model: f"{each.kind} on {each.endpoint}" for each in environment.models},
        "engines": [f"{each.model} {each.platform}" for each in environment.engines],
        "usd per hour": [_usd(each) for each in ends] if environment.verdict and _moved(environment) else [],
        "findings": dict(sorted(findings.items())),
    }
    return {name: part for name, part in parts.items() if part}


def _resources(environment: EnvironmentEntry) -> dict[str, dict[str, Any]]:
    """Stack → effect → construct paths, or how many; without stacks that come or go whole."""
    whole = {each.name for each in environment.stacks if each.effect != "changed in place"}
    found: dict[str, dict[str, Any]] = {}
    for each in environment.resources:
        if each.stack not in whole:
            found.setdefault(each.stack, {}).setdefault(each.effect.value, []).append(each.path)
    return {
        stack: {effect: len(paths) if effect in COUNTED else sorted(paths) for effect, paths in effects.items()}
        for stack, effects in found.items()
    }


def _moved(environment: EnvironmentEntry) -> bool:
    cost = environment.cost
    return (cost.minimum_before, cost.maximum_before) != (cost.minimum_after, cost.maximum_after)


def _usd(amount: AmountEntry | None) -> float | None:
    return None if amount is None else amount.usd_per_hour
