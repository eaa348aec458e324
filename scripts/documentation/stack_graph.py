"""The stacks of an environment as its snapshot has them: constructs, what they are made of, and what they read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tritonstack.paths import repository_path
from tritonstack.review.intrinsics import references
from tritonstack.review.snapshot import EnvironmentSnapshot, StackSnapshot
from tritonstack.review.stored import read_snapshots

SHOWN = "prod"
"""The environment with the most kinds of stack; of the committed ones only `staging` has another, `load-test`."""
SHOWN_SERVING = "serving-inception"
"""The one of its serving stacks that is drawn, with the most constructs; the others are like it."""
CONTRACT = "Outputs"
"""The parameter that tells other pipelines of a stack; it reads nearly everything, so its lines are not drawn."""
HANDLER = "/Handler/"
"""A function with role and log group; what it belongs to is a construct of its own."""


@dataclass(frozen=True)
class StackGraph:
    """One environment."""

    types: Mapping[str, Mapping[str, Counter[str]]]  # stack → construct → its resources: type → how many
    inner: Mapping[str, frozenset[tuple[str, str]]]  # stack → (construct, the one that it refers to)
    # (stack, the one that it reads) → the last parts of the parameters' names
    outer: Mapping[tuple[str, str], frozenset[str]]


def shown_environment() -> EnvironmentSnapshot:
    """The snapshot that the architecture page shows, with one of its serving stacks."""
    environment = read_snapshots(repository_path("snapshots")).environments[SHOWN]
    shown = {
        name: stack
        for name, stack in environment.stacks.items()
        if not name.startswith("serving-") or name == SHOWN_SERVING
    }
    return replace(environment, stacks=shown)


def stack_graph(environment: EnvironmentSnapshot) -> StackGraph:
    """Read an environment's snapshot."""
    types: dict[str, dict[str, Counter[str]]] = {}
    inner: dict[str, frozenset[tuple[str, str]]] = {}
    writers = {
        str(resource.properties.get("Name")): stack.name
        for stack in environment.stacks.values()
        for resource in stack.of_type("AWS::SSM::Parameter")
    }
    outer: dict[tuple[str, str], frozenset[str]] = {}
    for stack in environment.stacks.values():
        types[stack.name] = {}
        for resource in stack.resources.values():
            counted = types[stack.name].setdefault(construct_of(stack, resource.path), Counter())
            counted[resource.type.removeprefix("AWS::").replace("::", " ")] += 1
        inner[stack.name] = frozenset(_inner(stack))
        for parameter in stack.template.get("Parameters", {}).values():
            name = str(parameter.get("Default", ""))
            if name in writers:
                key = (stack.name, writers[name])
                outer[key] = outer.get(key, frozenset()) | {name.rpartition("/")[2]}
    return StackGraph(types=types, inner=inner, outer=outer)


def construct_of(stack: StackSnapshot, path: str) -> str:
    """The construct that a resource is counted to: what has a function of its own, else the first of its path."""
    owners = {each.path.partition(HANDLER)[0] for each in stack.resources.values() if HANDLER in each.path}
    within = [owner for owner in owners if f"{path}/".startswith(f"{owner}/")]
    return max(within, key=len) if within else path.partition("/")[0]


def _inner(stack: StackSnapshot) -> Iterator[tuple[str, str]]:
    for resource in stack.resources.values():
        source = construct_of(stack, resource.path)
        waits = resource.attributes.get("DependsOn", [])
        named = {*references(resource.properties), *([waits] if isinstance(waits, str) else waits)}
        for name in named & set(stack.resources):
            target = construct_of(stack, stack.resources[name].path)
            if source not in (target, CONTRACT):
                yield source, target
