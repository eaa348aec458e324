"""Results in the published table's column names, as `tritonstack capacity size --measurements` reads them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

from tritonstack.archives.pbtxt import Message, PbtxtError, Scalar, parse
from tritonstack.catalogue import load_catalogue
from tritonstack.measurement_columns import CONFIGURATION, GPUS, INSTANCE_TYPE, LATENCY, RATE
from tritonstack_capacity.bench.document import BenchDocument, PointPart, ResultPart

COLUMNS = (
    CONFIGURATION,
    "model_optimization",
    "dynamic_batching",
    "instance_group_config",
    INSTANCE_TYPE,
    "vcpus",
    GPUS,
    RATE,
    LATENCY,
    # what the published table does not say of its own
    "latency_percentile",
    "load",
    "stable",
    "payload_format",
    "way",
)
ABSENT = "NA"


def measurements_csv(document: BenchDocument) -> str:
    """A row for each model and format that was measured: the load that answered most, among those within the limit.

    Where a stop latency was set, only loads within it count, and a result without one has the row of its lowest
    latency: `tritonstack capacity size` then says that it misses the limit.
    """
    stop = document.settings["stop"]
    percentile = f"{document.settings['rule']['percentile']:g}"
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for result in document.results:
        point = best_point(result, percentile=percentile, limit_ms=stop["latency_ms"])
        if point is not None:
            several = sum(each.configuration == result.configuration for each in document.results) > 1
            name = f"{result.configuration}-{result.payload_format}" if several else result.configuration
            writer.writerow(dict(_row(result, point, name=name, percentile=percentile)))
    return text.getvalue()


def best_point(result: ResultPart, *, percentile: str, limit_ms: float | None) -> PointPart | None:
    """The load that answered most within the limit, else the one with the lowest latency; None without answers."""
    answered = [point for point in result.points if point.all.percentiles_ms]
    latency = {id(point): point.all.percentiles_ms[percentile] for point in answered}
    within = [point for point in answered if limit_ms is None or latency[id(point)] <= limit_ms]
    if within:
        return max(within, key=lambda point: point.all.per_minute)
    return min(answered, key=lambda point: latency[id(point)], default=None)


def _row(result: ResultPart, point: PointPart, *, name: str, percentile: str) -> Iterator[tuple[str, str]]:
    instance = load_catalogue().instance(result.instance_type)
    told = _told(addressed_config(result.config, result.name))
    yield CONFIGURATION, name
    yield from told.items()
    yield INSTANCE_TYPE, result.instance_type
    yield "vcpus", ABSENT if instance is None else str(instance.vcpu)
    yield GPUS, ABSENT if instance is None else str(instance.gpu_count)
    yield RATE, f"{point.all.per_minute / result.instance_count:.1f}"
    yield LATENCY, f"{point.all.percentiles_ms[percentile]:.2f}"
    yield "latency_percentile", f"p{percentile} end to end"
    yield "load", point.load
    yield "stable", "Yes" if point.stable else "No"
    yield "payload_format", result.payload_format
    yield "way", result.way


def addressed_config(config: Mapping[str, str], name: str) -> str:
    """The addressed model's ``config.pbtxt``: that of its own name, else the first; empty where none is known."""
    return config.get(name.rpartition("/")[2], next(iter(config.values()), ""))


def _told(config: str) -> dict[str, str]:
    """What a ``config.pbtxt`` says of backend, batching and instances."""
    try:
        message = parse(config)
    except PbtxtError:
        return {"model_optimization": ABSENT, "dynamic_batching": ABSENT, "instance_group_config": ABSENT}
    groups = [field.value for field in message.all("instance_group") if isinstance(field.value, Message)]
    counts = [count for group in groups if (count := _text(group, "count")) is not None]
    known = bool(message.fields)
    return {
        "model_optimization": _text(message, "platform") or _text(message, "backend") or ABSENT,
        "dynamic_batching": ("Yes" if message.all("dynamic_batching") else "No") if known else ABSENT,
        "instance_group_config": counts[0] if counts else ABSENT,
    }


def _text(message: Message, name: str) -> str | None:
    values = [field.value.value for field in message.all(name) if isinstance(field.value, Scalar)]
    return str(values[-1]) if values else None
