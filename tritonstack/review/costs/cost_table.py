"""Costs of an environment before and after a change: idle and at most, row by row, from its templates.

A resource type that has no row, and may be billed by time, is in the row "other resources", without a price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tritonstack import aws_names
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.data_file import read_data
from tritonstack.review.change import Update
from tritonstack.review.costs.amounts import Amount, moved_text, total
from tritonstack.review.costs.price_book import PriceBook, Prices
from tritonstack.review.document import AmountEntry, CostRowEntry, CostTableEntry, TrafficEntry
from tritonstack.review.endpoints import Count, SnapshotEndpoint, endpoints_of
from tritonstack.review.snapshot import EnvironmentSnapshot, Resource

LIST_PRICES = (
    "On-demand list prices; those of other resources than instances are from public documents. Without what is billed "
    "by use (requests, data, storage, builds), free allowances and taxes (tritonstack docs prices)."
)
_TARGET_TRACKING_ALARMS = 2
"""AlarmHigh and AlarmLow, which Application Auto Scaling makes for each target tracking policy and CloudWatch bills."""
_HIGH_RESOLUTION_SECONDS = 60
"""An alarm on a shorter period is a high-resolution one."""
_OTHERS = "other resources"
_REGION_LATER = "a region that is decided when it is deployed"
_ALARM, _COMPOSITE_ALARM = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
_SCALING_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_TYPES = read_data("resource_types.json")


@dataclass(frozen=True, kw_only=True)
class CostLine:
    """One row of the table on one side of a change."""

    quantity: str  # how many, in words
    idle: Amount  # with the fewest instances and no request
    most: Amount  # with the most instances that scaling or a schedule allows, without what is billed by use
    reasons: tuple[str, ...] = ()  # why parts of an endpoint's cost are unknown, each once


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """One row of an environment's table: an endpoint, or another billed resource."""

    name: str  # ``endpoint prod-digits``, ``NAT gateways``
    before: CostLine | None  # None for what is new
    after: CostLine | None  # None for what is removed
    endpoint: str = ""  # its SageMaker name, after the change or before it for a removed one; empty of other rows
    sentences: tuple[str, ...] = ()  # why a part is unknown, and what both fleets cost in an update

    @property
    def changed(self) -> bool:
        """Whether an amount changes, or its unknown part."""
        sides = [None if each is None else (each.idle, each.most) for each in (self.before, self.after)]
        return sides[0] != sides[1]


@dataclass(frozen=True, kw_only=True)
class CostTotals:
    """The sums of some rows before and after a change, with the fewest and with the most instances."""

    idle: tuple[Amount, Amount]
    most: tuple[Amount, Amount]

    @classmethod
    def of(cls, rows: Sequence[CostRow]) -> CostTotals:
        """The sum of rows; zero without rows."""
        old = [each.before for each in rows if each.before is not None]
        new = [each.after for each in rows if each.after is not None]
        return cls(
            idle=(total(each.idle for each in old), total(each.idle for each in new)),
            most=(total(each.most for each in old), total(each.most for each in new)),
        )

    @property
    def falls(self) -> bool:
        """Whether the cost is known to fall or to stay at both ends."""
        return all(
            new.known <= old.known and all(count <= old.unknown.get(name, 0) for name, count in new.unknown.items())
            for old, new in (self.idle, self.most)
        )

    @property
    def sentence(self) -> str:
        """Both ends, before and after, on one line; once where they are the same."""
        minimum, maximum = moved_text(*self.idle), moved_text(*self.most)
        return minimum if self.idle == self.most else f"at minimum {minimum}; at maximum {maximum}"

    @property
    def moved(self) -> str:
        """The ends that change, before and after."""
        ends = {"": self.idle} if self.idle == self.most else {"at minimum ": self.idle, "at maximum ": self.most}
        return "; ".join(f"{end}{moved_text(*sides)}" for end, sides in ends.items() if sides[0] != sides[1])


def cost_rows(
    before: EnvironmentSnapshot,
    after: EnvironmentSnapshot,
    *,
    prices: Prices,
    traffic: Mapping[tuple[str, str], TrafficEntry] | None = None,
) -> tuple[CostRow, ...]:
    """The table of an environment: every endpoint by stack and logical id, then the other billed resources.

    ``traffic``: stack and logical id of an endpoint → what happens to its traffic.
    """
    beside = _beside(before, prices.before), _beside(after, prices.after)
    every = (*(kind.name for kind in _KINDS), _OF_INSTANCES, _DETAILED, _OTHERS)
    names = [name for name in every if name in beside[0] | beside[1]]
    rows = [CostRow(name=name, before=beside[0].get(name), after=beside[1].get(name)) for name in names]
    return (*_endpoints(before, after, prices, traffic or {}), *rows)


_BOTH_FLEETS = {Update.ALL_AT_ONCE, Update.CANARY, Update.LINEAR, Update.UNKNOWN}


def _endpoints(
    before: EnvironmentSnapshot,
    after: EnvironmentSnapshot,
    prices: Prices,
    traffic: Mapping[tuple[str, str], TrafficEntry],
) -> Iterator[CostRow]:
    """A row for every endpoint of either side."""
    old = {(each.stack, each.logical_id): each for each in endpoints_of(before)}
    new = {(each.stack, each.logical_id): each for each in endpoints_of(after)}
    for key, present in sorted({**old, **new}.items()):
        was = _endpoint(old[key], prices.before) if key in old else None
        now = _endpoint(new[key], prices.after) if key in new else None
        yield CostRow(
            name=f"endpoint {present.endpoint}",
            endpoint=present.endpoint,
            before=was,
            after=now,
            sentences=tuple(_sentences(present.endpoint, was, now, traffic.get(key))),
        )


def _sentences(name: str, old: CostLine | None, new: CostLine | None, traffic: TrafficEntry | None) -> Iterator[str]:
    for reason in dict.fromkeys(reason for side in (old, new) if side is not None for reason in side.reasons):
        yield f"Unknown of {name}: {reason}."
    if traffic is None or old is None or new is None:
        return
    if traffic.update in _BOTH_FLEETS:
        run = "may run" if traffic.touched is None else "run"
        both = old.most + new.most
        yield f"While {name} is updated both fleets {run}: at most {both.text}."
    elif traffic.update == Update.ROLLING:  # it adds one batch at a time: no figure
        yield f"While {name} is updated one more batch of instances runs in addition to the fleet."


def _endpoint(endpoint: SnapshotEndpoint, book: PriceBook) -> CostLine:
    """One endpoint on one side, at its fewest and at its most instances, schedules included."""
    if not endpoint.variants:
        reason = f"the configuration of {endpoint.endpoint} lies outside its template"
        unknown = Amount(unknown={reason: 1})
        return CostLine(quantity="unknown", idle=unknown, most=unknown, reasons=(reason,))
    minimum, maximum, reasons, quantities = Amount(), Amount(), [], []
    for variant in endpoint.variants:
        key = f"{variant.kind or f'{endpoint.endpoint}: {variant.reason}'} in {endpoint.region}"
        # Of instance pools the cheapest type at the fewest instances, and the dearest at the most: a range.
        types = variant.pools or ((variant.instance_type,) if variant.instance_type is not None else ())
        prices = [book.price(each, endpoint.region) for each in types] or [variant.reason]
        unknown_price = next((each for each in prices if isinstance(each, str)), None)
        known = [each for each in prices if not isinstance(each, str)] if unknown_price is None else []
        counts = [each for each in (variant.minimum, variant.maximum) if isinstance(each, str)]
        uncounted = f"how many instances {variant.name} of {endpoint.endpoint} has: {counts[0]}" if counts else ""
        reasons += [reason for reason in (uncounted if unknown_price is None else unknown_price,) if reason]
        ends = (min(known, default=None), max(known, default=None))
        minimum += _times(variant.minimum, ends[0], key=key, uncounted=f"{uncounted} of {key}")
        maximum += _times(variant.maximum, ends[1], key=key, uncounted=f"{uncounted} of {key}")
        most = f" to {variant.maximum}" if variant.minimum != variant.maximum else ""
        quantities.append(f"{variant.minimum}{most} of {variant.kind or variant.reason}")
    return CostLine(quantity=", ".join(quantities), idle=minimum, most=maximum, reasons=tuple(dict.fromkeys(reasons)))


def _times(count: Count, usd: Decimal | None, *, key: str, uncounted: str) -> Amount:
    """``usd``: of one; None: unknown. ``key``, ``uncounted``: names of what is unknown, the price or how many."""
    if isinstance(count, str):
        return Amount(unknown={uncounted: 1})
    if count == 0:
        return Amount()
    return Amount(unknown={key: count}) if usd is None else Amount(known=count * usd)


def _beside(environment: EnvironmentSnapshot, book: PriceBook) -> dict[str, CostLine]:
    """Name of a row → the row."""
    found = {kind.name: _line(kind, environment, book) for kind in _KINDS}
    found[_OF_INSTANCES], found[_DETAILED] = _metrics_of_instances(environment, book), _detailed(environment)
    found[_OTHERS] = _others(environment)
    return {name: line for name, line in found.items() if line is not None}


def beside_endpoints(environment: EnvironmentSnapshot, *, book: PriceBook) -> Amount:
    """USD an hour of everything but endpoints, without resources billed by use."""
    return total(line.most for line in _beside(environment, book).values())


Billed = Mapping[str, Count]
"""Name of a price → how many times a resource is billed by it; empty for a free one."""


@dataclass(frozen=True)
class _BilledRow:
    """A row besides the endpoints: its name, and what resources of its types are billed by."""

    name: str
    types: tuple[str, ...]
    read: Callable[[Resource], Billed]


def _line(kind: _BilledRow, environment: EnvironmentSnapshot, book: PriceBook) -> CostLine | None:
    """The row of one kind; None where the environment has nothing of it."""
    billed = [
        (name, units, stack)
        for stack in environment.stacks.values()
        for each in stack.of_type(*kind.types)
        for name, units in kind.read(each).items()
    ]
    if not billed:
        return None
    amount = Amount()
    for name, units, stack in billed:
        key, usd = f"{name} in {stack.region or _REGION_LATER}", None if units == 0 else book.hourly(name, stack.region)
        amount += _times(units, usd, key=key, uncounted=f"how many times {key} is billed ({units})")
    counts = [units for _, units, _ in billed if isinstance(units, int)]
    return CostLine(quantity=f"{sum(counts)}" if len(counts) == len(billed) else "unknown", idle=amount, most=amount)


def _vpc_endpoint(resource: Resource) -> Billed:
    """Interface endpoints are billed in each zone, which has one subnet of theirs; gateways are free."""
    kind = resource.properties.get("VpcEndpointType", "Gateway")
    if kind == "Gateway":
        return {}
    subnets = resource.properties.get("SubnetIds")
    zones: Count = len(subnets) if isinstance(subnets, list) else "its subnets are known only when it is deployed"
    return {"interface-endpoint" if kind == "Interface" else f"{kind} VPC endpoint": zones}


def _alarm(resource: Resource) -> Billed:
    """Billed for each metric that it reads."""
    if resource.type == _COMPOSITE_ALARM:
        return {"composite-alarm": 1}
    if resource.type == _SCALING_POLICY:
        tracking = resource.properties.get("TargetTrackingScalingPolicyConfiguration")
        if tracking is None:
            return {}
        read = len(_metrics(tracking.get("CustomizedMetricSpecification", {}))) or 1
        return {"alarm-metric": _TARGET_TRACKING_ALARMS * read}
    given = resource.properties
    metrics = _metrics(given)
    periods = [each.get("Period") for each in (*metrics, given) if each.get("Period") is not None]
    if "ThresholdMetricId" in given or not (metrics or "MetricName" in given):
        return {"alarm of another kind": 1}
    fine = any(isinstance(each, int) and each < _HIGH_RESOLUTION_SECONDS for each in periods)
    return {"high-resolution-alarm-metric" if fine else "alarm-metric": len(metrics) or 1}


def _metrics(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The metrics of metric math; none where one metric is named."""
    return [each["MetricStat"] for each in given.get("Metrics", []) if "MetricStat" in each]


_KINDS = (
    _BilledRow("NAT gateways", ("AWS::EC2::NatGateway",), lambda _: {"nat-gateway": 1}),
    _BilledRow("public IPv4 addresses", ("AWS::EC2::EIP",), lambda _: {"public-ipv4": 1}),
    _BilledRow("interface VPC endpoints, by zone", ("AWS::EC2::VPCEndpoint",), _vpc_endpoint),
    _BilledRow("KMS keys", ("AWS::KMS::Key",), lambda _: {"kms-key": 1}),
    _BilledRow("CloudWatch alarms, by metric", (_ALARM, _COMPOSITE_ALARM, _SCALING_POLICY), _alarm),
    _BilledRow("CloudWatch dashboards", ("AWS::CloudWatch::Dashboard",), lambda _: {"dashboard": 1}),
)
_PRICED = {each for kind in _KINDS for each in kind.types}


_OF_INSTANCES = "CloudWatch metrics by instance and GPU"
_DETAILED = "detailed observability of endpoints"
_INSTANCE_METRICS, _GPU_METRICS = 3, 2
"""CPU, memory and disk of an instance; utilization and memory of each GPU."""


def _metrics_of_instances(environment: EnvironmentSnapshot, book: PriceBook) -> CostLine | None:
    """Metrics with further dimensions, each billed as one of its own in the hours in which it is written.

    Without requests an instance writes what it uses, and no request metrics (developer guide, "enhanced metrics").
    """
    idle, most, fewest, highest = Amount(), Amount(), 0, 0
    endpoints = [each for each in endpoints_of(environment) if each.metrics.get("EnableEnhancedMetrics") is True]
    for endpoint in endpoints:
        usd = book.hourly("custom-metric", endpoint.region)
        key = f"custom-metric in {endpoint.region or _REGION_LATER}"
        for variant in endpoint.variants:
            row = load_catalogue().instance(variant.instance_type or "")
            if row is None or isinstance(variant.minimum, str) or isinstance(variant.maximum, str):
                unknown = Amount(unknown={f"metrics of the instances of {variant.name} of {endpoint.endpoint}": 1})
                idle, most = idle + unknown, most + unknown
                continue
            used = _INSTANCE_METRICS + _GPU_METRICS * row.gpu_count
            counts = variant.minimum * used, variant.maximum * (used + len(aws_names.OF_INSTANCES))
            idle, most = (
                amount + _times(count, usd, key=key, uncounted="")
                for amount, count in zip((idle, most), counts, strict=True)
            )
            fewest, highest = fewest + counts[0], highest + counts[1]
    return CostLine(quantity=f"{fewest} to {highest}", idle=idle, most=most) if endpoints else None


def _detailed(environment: EnvironmentSnapshot) -> CostLine | None:
    """OpenTelemetry metrics, billed by the gigabyte; no page of AWS states how many an endpoint writes."""
    names = [
        each.endpoint for each in endpoints_of(environment) if each.metrics.get("EnableDetailedObservability") is True
    ]
    amount = total(Amount(unknown={f"OpenTelemetry metrics of {name}, by the gigabyte": 1}) for name in names)
    return CostLine(quantity=f"{len(names)}", idle=amount, most=amount) if names else None


def _others(environment: EnvironmentSnapshot) -> CostLine | None:
    """Resources that have no row and may be billed by time: their price is unknown, not zero."""
    free, prefixes = {*_PRICED, *_TYPES["not_billed_by_time"]}, tuple(_TYPES["not_billed_by_time_prefixes"])
    others = [
        f"{each.type} in {stack.region or _REGION_LATER}"
        for stack in environment.stacks.values()
        for each in stack.resources.values()
        if each.type not in free and not each.type.startswith(prefixes)
    ]
    if not others:
        return None
    amount = total(Amount(unknown={each: 1}) for each in others)
    return CostLine(quantity=f"{len(others)}", idle=amount, most=amount)


def table_entry(rows: Sequence[CostRow]) -> CostTableEntry:
    """The rows with their sums."""
    totals = CostTotals.of(rows)
    idle, most = (tuple(map(amount_entry, sides)) for sides in (totals.idle, totals.most))
    return CostTableEntry(
        rows=tuple(map(_row_entry, rows)),
        idle_before=idle[0],
        idle_after=idle[1],
        most_before=most[0],
        most_after=most[1],
        unknown=tuple(sorted({name for amount in (*idle, *most) for name in amount.unknown})),
    )


def table_of(environment: EnvironmentSnapshot, *, book: PriceBook) -> CostTableEntry:
    """The table of an environment that nothing is compared with: the same before and after."""
    return table_entry(cost_rows(environment, environment, prices=Prices(before=book, after=book)))


def _row_entry(row: CostRow) -> CostRowEntry:
    members: dict[str, Any] = {}
    for side, line in (("before", row.before), ("after", row.after)):
        members[f"quantity_{side}"] = line and line.quantity
        members[f"idle_{side}"] = line and amount_entry(line.idle)
        members[f"most_{side}"] = line and amount_entry(line.most)
    return CostRowEntry.model_validate({"name": row.name, "endpoint": row.endpoint, "changed": row.changed, **members})


def amount_entry(amount: Amount) -> AmountEntry:
    """An amount as data."""
    whole = amount.usd_per_hour
    return AmountEntry(
        usd_per_hour=None if whole is None else float(whole),
        at_least=float(amount.known),
        unknown=tuple(sorted(amount.unknown)),
        text=amount.text,
    )
