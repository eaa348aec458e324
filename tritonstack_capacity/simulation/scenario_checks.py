"""Checks of a scenario beyond its schema: fields against each other and against the catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tritonstack.catalogue import load_catalogue
from tritonstack.config.scaling import Scaling, limits_and_targets
from tritonstack.errors import Problem, listing, nearest
from tritonstack_capacity.simulation.scenario import (
    MIB,
    MOST_CALLS,
    MOST_MODELS,
    Arrivals,
    Instance,
    ModelGroup,
    Scenario,
)
from tritonstack_capacity.simulation.trace import MINUTE, expected_calls, model_names

GIGABYTE = 10**9


def memory_for_models(instance: Instance) -> int | None:
    """GPU memory without the reserved part, bytes; None where the type is unknown."""
    found = load_catalogue().instance(instance.type)
    whole = instance.gpu_memory_mib
    if whole is None:
        whole = None if found is None else float(found.gpu_memory_mib * found.gpu_count)
    return None if whole is None else round((whole - instance.reserved_gpu_memory_mib) * MIB)


def disk_for_models(instance: Instance) -> int | None:
    """Bytes; None where neither the file nor the catalogue has it."""
    if instance.disk_mib is not None:
        return round(instance.disk_mib * MIB)
    found = load_catalogue().instance(instance.type)
    return found.local_nvme_gb * GIGABYTE if found is not None and found.local_nvme_gb else None


def check_scenario(scenario: Scenario, *, traced: bool, seconds: float | None) -> Iterator[Problem]:
    """Contradictions. ``traced``: --trace was given; ``seconds``: how long requests come, None where unknown."""
    yield from _check_instance(scenario.instance)
    yield from _check_models(scenario.models, instance=scenario.instance)
    if not traced:
        yield from _check_arrivals(scenario.arrivals)
    if scenario.scaling is not None:
        yield from _check_scaling(scenario.scaling, instance=scenario.instance)
    if seconds is not None and scenario.warm_up_minutes * MINUTE >= seconds:
        allowed = f"less than {seconds / MINUTE:g} minutes, how long requests come"
        yield Problem(location=("warm_up_minutes",), found=f"{scenario.warm_up_minutes:g}", allowed=allowed)


def _check_instance(instance: Instance) -> Iterator[Problem]:
    """Check type and region, and that the scenario gives facts that the catalogue lacks."""
    catalogue = load_catalogue()
    known = catalogue.instance(instance.type) is not None
    if not known:
        allowed = f"a GPU instance type of the catalogue: {listing(catalogue.instances)}"
        advice = nearest(instance.type, catalogue.instances)
        yield Problem(location=("instance", "type"), found=instance.type, allowed=allowed, advice=advice)
    if instance.region not in catalogue.regions:
        yield Problem(
            location=("instance", "region"),
            found=instance.region,
            allowed=listing(catalogue.regions),
            advice=nearest(instance.region, catalogue.regions),
        )
    if known and disk_for_models(instance) is None:
        advice = f"{instance.type} has no disk of its own: write the size of its volume."
        location = ("instance", "disk_mib")
        yield Problem(location=location, found="nothing", allowed="MiB of disk for models", advice=advice)
    memory = memory_for_models(instance)
    if memory is not None and memory <= 0:
        reserved, location = instance.reserved_gpu_memory_mib, ("instance", "reserved_gpu_memory_mib")
        allowed = f"less than the GPU's memory, {memory / MIB + reserved:g} MiB"
        yield Problem(location=location, found=f"{reserved:g}", allowed=allowed)


def _check_models(groups: tuple[ModelGroup, ...], *, instance: Instance) -> Iterator[Problem]:
    """Names, sizes and times of the groups, and whether each model fits."""
    for place, group in enumerate(groups):
        yield from _check_group(place, group)
        yield from _check_fit(place, group, instance=instance)
    count = sum(group.count for group in groups)
    if count > MOST_MODELS:
        yield Problem(location=("models",), found=f"{count} models", allowed=f"at most {MOST_MODELS}")
    else:
        yield from _check_names(groups)
    found = load_catalogue().instance(instance.type)
    if count > 1 and found is not None and found.gpu_count > 1:
        several = f"{found.name} with {found.gpu_count} GPUs, for several models"
        allowed = "a type with one GPU: multi-model endpoints take no other"
        yield Problem(location=("instance", "type"), found=several, allowed=allowed)


def _check_names(groups: tuple[ModelGroup, ...]) -> Iterator[Problem]:
    """Of groups, and where those differ of the models that they come to."""
    repeated = _repeated([group.name for group in groups])
    for place, group in enumerate(groups):
        if group.name in repeated:
            yield Problem(location=("models", place, "name"), found=group.name, allowed="a name of its own")
    equal = [] if repeated else _repeated(model_names(groups))
    if equal:
        called = ", ".join(equal[:3]) + (f" and {len(equal) - 3} more" if len(equal) > 3 else "")
        yield Problem(location=("models",), found=f"two models called {called}", allowed="different names")


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _check_group(place: int, group: ModelGroup) -> Iterator[Problem]:
    if group.service.fixed_ms + group.service.per_item_ms <= 0:
        yield Problem(location=("models", place, "service"), found="no time at all", allowed="fixed_ms or per_item_ms")
    if group.max_queue_delay_ms and group.max_batch == 1:
        found, allowed = f"{group.max_queue_delay_ms:g} with max_batch 1", "a delay only where requests are batched"
        yield Problem(location=("models", place, "max_queue_delay_ms"), found=found, allowed=allowed)
    if group.disk_mib is None and group.manifest is None:
        allowed = "disk_mib, or a manifest that has it"
        advice = "`tritonstack build --environment NAME` writes them; a scenario with that environment finds its own."
        yield Problem(location=("models", place, "disk_mib"), found="nothing", allowed=allowed, advice=advice)
    if group.cold_seconds is not None and group.load_seconds is not None:
        found = f"{group.load_seconds:g} beside {'cold_results' if group.cold_results else 'cold_seconds'}"
        allowed = "one of the two: cold_seconds is download and load together"
        yield Problem(location=("models", place, "load_seconds"), found=found, allowed=allowed)


def _check_fit(place: int, group: ModelGroup, *, instance: Instance) -> Iterator[Problem]:
    memory, disk = memory_for_models(instance), disk_for_models(instance)
    if memory is not None and 0 < memory < group.gpu_memory_mib * MIB:
        location, found = ("models", place, "gpu_memory_mib"), f"{group.gpu_memory_mib:g}"
        allowed = f"at most {memory / MIB:g} MiB, the GPU memory for models of {instance.type}"
        yield Problem(location=location, found=found, allowed=allowed, advice="Take a larger instance type.")
    if disk is not None and group.disk_mib is not None and group.disk_mib * MIB > disk:
        allowed = f"at most {disk / MIB:g} MiB, the disk for models of {instance.type}"
        yield Problem(location=("models", place, "disk_mib"), found=f"{group.disk_mib:g} MiB", allowed=allowed)


def _check_arrivals(arrivals: Arrivals) -> Iterator[Problem]:
    """One source of requests, in order, with requests in it."""
    if bool(arrivals.curve) == (arrivals.trace is not None):
        found = "both a curve and a trace" if arrivals.curve else "neither a curve nor a trace"
        yield Problem(location=("arrivals",), found=found, allowed="one of curve and trace")
    minutes = [point.minute for point in arrivals.curve]
    if minutes and minutes[0] != 0:
        location = ("arrivals", "curve", 0, "minute")
        yield Problem(location=location, found=f"{minutes[0]:g}", allowed="0: what holds at the beginning")
    for place, (before, minute) in enumerate(pairwise(minutes), 1):
        if minute <= before:
            location, allowed = ("arrivals", "curve", place, "minute"), f"more than {before:g}, the point before"
            yield Problem(location=location, found=f"{minute:g}", allowed=allowed)
    if minutes and arrivals.duration_minutes is None:
        yield Problem(location=("arrivals", "duration_minutes"), found="nothing", allowed="minutes, above zero")
    elif minutes and minutes[0] == 0 and arrivals.duration_minutes is not None:
        calls = expected_calls(arrivals.curve, seconds=arrivals.duration_minutes * MINUTE)
        if not 1 <= calls <= MOST_CALLS:
            allowed = f"a load: one request at least, and at most {MOST_CALLS:,}"
            yield Problem(location=("arrivals", "curve"), found=f"{calls:,.12g} calls in all", allowed=allowed)


def _check_scaling(scaling: Scaling, *, instance: Instance) -> Iterator[Problem]:
    """Check scaling as in an environment file, and the initial instance count."""
    yield from limits_and_targets(scaling, location=("scaling",), production=False)
    if scaling.cpu_utilization is not None:
        allowed = "null: a scenario says how long models take the GPU, not the vCPUs"
        advice = "Write scaling without it in the scenario: that replaces the scaling of its environment."
        location, found = ("scaling", "cpu_utilization"), f"{scaling.cpu_utilization:g}"
        yield Problem(location=location, found=found, allowed=allowed, advice=advice)
    if scaling.minimum <= scaling.maximum and not scaling.minimum <= instance.count <= scaling.maximum:
        allowed = f"{scaling.minimum} to {scaling.maximum}, as scaling says"
        yield Problem(location=("instance", "count"), found=str(instance.count), allowed=allowed)
