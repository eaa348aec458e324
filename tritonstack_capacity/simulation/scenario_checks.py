"""Checks of a scenario beyond its schema: fields against each other and against the catalogue."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError, create_model

from tritonstack.catalogue import load_catalogue
from tritonstack.config.scaling import Scaling, limits_and_targets
from tritonstack.errors import Problem
from tritonstack_capacity.simulation.scenario import MIB, MOST_CALLS, MOST_MODELS, Arrivals, Instance, ModelGroup
from tritonstack_capacity.simulation.trace import MINUTE, expected_calls, model_names

Part = TypeVar("Part", bound=BaseModel)


def whole(model: type[Part], raw: object) -> Part | None:
    """``raw`` as a ``model``; None where anything in it is wrong."""
    try:
        return model.model_validate(raw)
    except ValidationError:
        return None


def readable(model: type[Part], raw: object) -> Part | None:
    """``raw`` as a ``model`` without the fields that are wrong or missing; None where it is no mapping.

    To look at a field that it is without is an ``AttributeError``: see ``as_far_as_readable``.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        if not isinstance(raw, dict):
            return None
        wrong = {str(each["loc"][0]) for each in error.errors(include_url=False) if each["loc"]}
    rest = {name: value for name, value in raw.items() if name not in wrong}
    found = whole(_without_required(model), rest)
    if found is not None:
        for name in wrong:
            vars(found).pop(name, None)
    return found


def has(part: BaseModel, *fields: str) -> bool:
    """Whether those fields could be read."""
    return all(field in vars(part) for field in fields)


def as_far_as_readable(findings: Iterator[Problem]) -> Iterator[Problem]:
    """A check's findings, until it looks at a field that could not be read."""
    try:
        yield from findings
    except AttributeError as error:
        if not (isinstance(error.obj, BaseModel) and error.name in type(error.obj).model_fields):
            raise


@cache
def _without_required(model: type[Part]) -> type[Part]:
    required: dict[str, Any] = {
        name: (field.annotation, None) for name, field in model.model_fields.items() if field.is_required()
    }
    return create_model(model.__name__, __base__=model, **required)


# Parts of the file come as far as they can be read (``readable``), and each check stands alone, so that a wrong field
# hides no other mistake.
GIGABYTE = 10**9
Groups = Sequence[tuple[int, ModelGroup]]
"""Groups that could be read, each with its place in the file."""


def memory_for_models(instance: Instance) -> int | None:
    """GPU memory less what is reserved, bytes; None where the type is unknown."""
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


def start_of(arrivals: Arrivals) -> dt.datetime | None:
    """Minute 0 in UTC; None where it is not set, or not a moment."""
    try:
        return None if arrivals.starts is None else dt.datetime.fromisoformat(arrivals.starts).replace(tzinfo=dt.UTC)
    except ValueError:
        return None


def check_instance(instance: Instance) -> Iterator[Problem]:
    """Type, region, and what the catalogue does not have of the type."""
    for check in (_check_type, _check_region, _check_disk, _check_memory):
        yield from as_far_as_readable(check(instance))


def _check_type(instance: Instance) -> Iterator[Problem]:
    catalogue = load_catalogue()
    if catalogue.instance(instance.type) is None:
        allowed = f"a GPU instance type of the catalogue: {', '.join(list(catalogue.instances)[:6])}, …"
        yield Problem(location=("instance", "type"), found=instance.type, allowed=allowed)


def _check_region(instance: Instance) -> Iterator[Problem]:
    regions = load_catalogue().regions
    if instance.region not in regions:
        yield Problem(location=("instance", "region"), found=instance.region, allowed=", ".join(regions))


def _check_disk(instance: Instance) -> Iterator[Problem]:
    if disk_for_models(instance) is None and load_catalogue().instance(instance.type) is not None:
        advice = f"{instance.type} has no disk of its own: write the size of its volume."
        location = ("instance", "disk_mib")
        yield Problem(location=location, found="nothing", allowed="MiB of disk for models", advice=advice)


def _check_memory(instance: Instance) -> Iterator[Problem]:
    memory = memory_for_models(instance)
    if memory is not None and memory <= 0:
        reserved, location = instance.reserved_gpu_memory_mib, ("instance", "reserved_gpu_memory_mib")
        allowed = f"less than the GPU's memory, {memory / MIB + reserved:g} MiB"
        yield Problem(location=location, found=f"{reserved:g}", allowed=allowed)


def check_models(groups: Groups, *, instance: Instance | None) -> Iterator[Problem]:
    """Names, sizes and times of the groups, and whether each model fits."""
    yield from _check_names(groups)
    for place, group in groups:
        for check in (_check_service, _check_delay, _check_files, _check_cold):
            yield from as_far_as_readable(check(place, group))
        if instance is not None:
            yield from as_far_as_readable(_check_memory_of(place, group, instance=instance))
            yield from as_far_as_readable(_check_disk_of(place, group, instance=instance))
    count = sum(group.count for _, group in groups if has(group, "count"))
    if count > MOST_MODELS:
        yield Problem(location=("models",), found=f"{count} models", allowed=f"at most {MOST_MODELS}")
    if instance is not None and count > 1:
        yield from as_far_as_readable(_check_gpus(instance))


def _check_names(groups: Groups) -> Iterator[Problem]:
    """Of groups, and where those differ of the models that they come to."""
    named = [(place, group) for place, group in groups if has(group, "name")]
    repeated = [name for name, times in Counter(group.name for _, group in named).items() if times > 1]
    for place, group in named:
        if group.name in repeated:
            yield Problem(location=("models", place, "name"), found=group.name, allowed="a name of its own")
    counted = tuple(group for _, group in named if has(group, "count"))
    if repeated or sum(group.count for group in counted) > MOST_MODELS:
        return
    equal = [name for name, times in Counter(model_names(counted)).items() if times > 1]
    if equal:
        called = ", ".join(equal[:3]) + (f" and {len(equal) - 3} more" if len(equal) > 3 else "")
        yield Problem(location=("models",), found=f"two models called {called}", allowed="different names")


def _check_gpus(instance: Instance) -> Iterator[Problem]:
    found = load_catalogue().instance(instance.type)
    if found is not None and found.gpu_count > 1:
        several = f"{found.name} with {found.gpu_count} GPUs, for several models"
        allowed = "a type with one GPU: multi-model endpoints take no other"
        yield Problem(location=("instance", "type"), found=several, allowed=allowed)


def _check_service(place: int, group: ModelGroup) -> Iterator[Problem]:
    if group.service.fixed_ms + group.service.per_item_ms <= 0:
        yield Problem(location=("models", place, "service"), found="no time at all", allowed="fixed_ms or per_item_ms")


def _check_delay(place: int, group: ModelGroup) -> Iterator[Problem]:
    if group.max_queue_delay_ms and group.max_batch == 1:
        found, allowed = f"{group.max_queue_delay_ms:g} with max_batch 1", "a delay only where requests are batched"
        yield Problem(location=("models", place, "max_queue_delay_ms"), found=found, allowed=allowed)


def _check_files(place: int, group: ModelGroup) -> Iterator[Problem]:
    if group.disk_mib is None and group.manifest is None:
        allowed = "disk_mib, or a manifest that tells it"
        advice = "`tritonstack build --environment NAME` writes them; a scenario with that environment finds its own."
        yield Problem(location=("models", place, "disk_mib"), found="nothing", allowed=allowed, advice=advice)


def _check_cold(place: int, group: ModelGroup) -> Iterator[Problem]:
    if group.cold_seconds is not None and group.load_seconds is not None:
        found = f"{group.load_seconds:g} beside {'cold_results' if group.cold_results else 'cold_seconds'}"
        allowed = "one of the two: cold_seconds is download and load together"
        yield Problem(location=("models", place, "load_seconds"), found=found, allowed=allowed)


def _check_memory_of(place: int, group: ModelGroup, *, instance: Instance) -> Iterator[Problem]:
    memory = memory_for_models(instance)
    if memory is not None and 0 < memory < group.gpu_memory_mib * MIB:
        location, found = ("models", place, "gpu_memory_mib"), f"{group.gpu_memory_mib:g}"
        allowed = f"at most {memory / MIB:g} MiB, the GPU memory for models of {instance.type}"
        yield Problem(location=location, found=found, allowed=allowed, advice="Take a larger instance type.")


def _check_disk_of(place: int, group: ModelGroup, *, instance: Instance) -> Iterator[Problem]:
    disk = disk_for_models(instance)
    if disk is not None and group.disk_mib is not None and group.disk_mib * MIB > disk:
        allowed = f"at most {disk / MIB:g} MiB, the disk for models of {instance.type}"
        yield Problem(location=("models", place, "disk_mib"), found=f"{group.disk_mib:g} MiB", allowed=allowed)


def check_arrivals(arrivals: Arrivals, *, traced: bool) -> Iterator[Problem]:
    """One source of calls, in order, with calls in it. ``traced``: --trace was given."""
    for check in (_check_starts,) if traced else (_check_starts, _check_source, _check_curve, _check_number):
        yield from as_far_as_readable(check(arrivals))


def _check_starts(arrivals: Arrivals) -> Iterator[Problem]:
    if arrivals.starts is not None and start_of(arrivals) is None:
        allowed = "a moment that there is, as yyyy-mm-ddThh:mm:ss"
        yield Problem(location=("arrivals", "starts"), found=arrivals.starts, allowed=allowed)


def _check_source(arrivals: Arrivals) -> Iterator[Problem]:
    if bool(arrivals.curve) == (arrivals.trace is not None):
        found = "both a curve and a trace" if arrivals.curve else "neither a curve nor a trace"
        yield Problem(location=("arrivals",), found=found, allowed="one of curve and trace")


def _check_curve(arrivals: Arrivals) -> Iterator[Problem]:
    minutes = [point.minute for point in arrivals.curve]
    if minutes and minutes[0] != 0:
        location = ("arrivals", "curve", 0, "minute")
        yield Problem(location=location, found=f"{minutes[0]:g}", allowed="0: what holds at the beginning")
    for place, (before, minute) in enumerate(pairwise(minutes), 1):
        if minute <= before:
            location, allowed = ("arrivals", "curve", place, "minute"), f"more than {before:g}, the point before"
            yield Problem(location=location, found=f"{minute:g}", allowed=allowed)


def _check_number(arrivals: Arrivals) -> Iterator[Problem]:
    """How many calls a curve comes to."""
    if not arrivals.curve:
        return
    if arrivals.duration_minutes is None:
        yield Problem(location=("arrivals", "duration_minutes"), found="nothing", allowed="minutes, above zero")
        return
    if arrivals.curve[0].minute != 0:
        return
    calls = expected_calls(arrivals.curve, seconds=arrivals.duration_minutes * MINUTE)
    if calls < 1:
        found = f"{calls:g} calls in all"
        yield Problem(location=("arrivals", "curve"), found=found, allowed="a load: one call at least")
    elif calls > MOST_CALLS:
        allowed = f"at most {MOST_CALLS:,}"
        yield Problem(location=("arrivals", "curve"), found=f"{calls:,.0f} calls", allowed=allowed)


def check_scaling(scaling: Scaling, *, instance: Instance | None, arrivals: Arrivals | None) -> Iterator[Problem]:
    """As in an environment file, and what a scenario needs for it."""
    for check in limits_and_targets(scaling, location=("scaling",), production=False):
        yield from as_far_as_readable(check)
    if arrivals is not None:
        yield from as_far_as_readable(_check_beginning(scaling, arrivals))
    if instance is not None:
        yield from as_far_as_readable(_check_count(scaling, instance))


def _check_beginning(scaling: Scaling, arrivals: Arrivals) -> Iterator[Problem]:
    if scaling.schedules and arrivals.starts is None:
        allowed = "when minute 0 is, in UTC (2026-11-23T06:00:00): scaling has schedules"
        yield Problem(location=("arrivals", "starts"), found="nothing", allowed=allowed)


def _check_count(scaling: Scaling, instance: Instance) -> Iterator[Problem]:
    if scaling.minimum <= scaling.maximum and not scaling.minimum <= instance.count <= scaling.maximum:
        allowed = f"{scaling.minimum} to {scaling.maximum}, as scaling says"
        yield Problem(location=("instance", "count"), found=str(instance.count), allowed=allowed)


def check_warm_up(minutes: float, *, seconds: float) -> Iterator[Problem]:
    """A warm-up that leaves no call of those that come for so many ``seconds``."""
    if minutes * MINUTE >= seconds:
        allowed = f"less than {seconds / MINUTE:g} minutes, how long calls come"
        yield Problem(location=("warm_up_minutes",), found=f"{minutes:g}", allowed=allowed)


def check_limit(limit_ms: float, groups: Groups) -> Iterator[Problem]:
    """A limit that even calls that meet nothing else would miss; see ``as_far_as_readable``."""
    shares = [(group, group.count if group.share is None else group.share) for _, group in groups]
    late = sum(share * _late(group, limit_ms) for group, share in shares)
    if late <= 0.05 * sum(share for _, share in shares):
        return
    slowest = max(_alone_ms(group) for group, _ in shares)
    found = f"{limit_ms:g} ms, which nothing keeps: more than 5 % of the calls take longer alone on a warm instance"
    allowed = f"{slowest:g} ms or more, the slowest group's own time"
    advice = "Raise the limit, or take models or an instance type that execute faster."
    yield Problem(location=("latency_limit_ms",), found=found, allowed=allowed, advice=advice)


def _alone_ms(group: ModelGroup) -> float:
    delay = group.max_queue_delay_ms if group.max_batch > 1 else 0.0
    return delay + group.service.fixed_ms + group.service.per_item_ms


def _late(group: ModelGroup, limit_ms: float) -> float:
    """The share of a group's calls that would be too late alone."""
    if group.service.distribution == "constant":
        return float(_alone_ms(group) > limit_ms)
    delay = group.max_queue_delay_ms if group.max_batch > 1 else 0.0
    mean = group.service.fixed_ms + group.service.per_item_ms
    return 1.0 if limit_ms <= delay else math.exp(-(limit_ms - delay) / mean) if mean else 0.0
