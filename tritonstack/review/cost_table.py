"""Costs of an environment before and after a change: idle, at most, and billed by use, row by row, from its templates.

A resource type that has no row, and that is not known to be free, is in the row "other resources", without a price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tritonstack.review.change import Update
from tritonstack.review.cost import Amount, PriceBook, Prices, moved_text, total
from tritonstack.review.document import AmountEntry, CostRowEntry, CostTableEntry, TrafficEntry
from tritonstack.review.snapshot import EnvironmentSnapshot, Resource, StackSnapshot
from tritonstack.review.traffic import CONFIG, Count, Fleet, fleets_of

LIST_PRICES = (
    "On-demand list prices, beside instances as public documents quote them; without free allowances, data transfer "
    "and taxes (docs/prices.md)."
)
_TARGET_TRACKING_ALARMS = 2
"""AlarmHigh and AlarmLow, which Application Auto Scaling makes for each target tracking policy and CloudWatch bills."""
_HIGH_RESOLUTION_SECONDS = 60
"""An alarm on a shorter period is a high-resolution one."""
_OTHERS = "other resources"
_ALARM, _COMPOSITE_ALARM = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
_SCALING_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_MACHINES = {"LINUX_CONTAINER": "general1", "LINUX_GPU_CONTAINER": "gpu1"}
"""CodeBuild's environment type → the machines' name in its price list."""
_FREE_PREFIXES = ("AWS::IAM::", "AWS::CloudFormation::", "AWS::CDK::", "Custom::")
_FREE = {
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::EC2::FlowLog",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::Route",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::Subnet",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPC",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::Events::Rule",
    "AWS::KMS::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Permission",
    "AWS::S3::BucketPolicy",
    "AWS::SageMaker::Endpoint",
    "AWS::SageMaker::Model",
    "AWS::SNS::Subscription",
    "AWS::SNS::TopicPolicy",
    "AWS::SSM::Parameter",
    "AWS::SQS::QueuePolicy",
}


@dataclass(frozen=True, kw_only=True)
class CostLine:
    """One row of the table on one side of a change."""

    quantity: str  # how many, in words
    idle: Amount | None = None  # with the fewest instances and no request; None where nothing is billed by time
    # with the most instances that scaling or a schedule allows, without what is billed by use; None likewise
    most: Amount | None = None
    grows: tuple[str, ...] = ()  # what is billed by use, each with its price where that is known
    use: str = ""  # the same in a word or two
    reasons: tuple[str, ...] = ()  # why parts of an endpoint's cost are unknown, each once


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """One row of an environment's table: an endpoint, or what stands besides the endpoints."""

    name: str  # ``endpoint prod-digits``, ``NAT gateways``
    before: CostLine | None  # None for what is new
    after: CostLine | None  # None for what is removed
    endpoint: str = ""  # its SageMaker name, after the change or before it for a removed one; empty of other rows
    sentences: tuple[str, ...] = ()  # why a part is unknown, and what both fleets cost in an update

    @property
    def changed(self) -> bool:
        """Whether an amount by time changes, or what is unknown of it."""
        sides = [None if each is None else (each.idle, each.most) for each in (self.before, self.after)]
        return sides[0] != sides[1]


@dataclass(frozen=True, kw_only=True)
class CostTotals:
    """The sums of some rows, with the fewest and with the most instances."""

    idle_before: Amount
    idle_after: Amount
    most_before: Amount
    most_after: Amount

    @classmethod
    def of(cls, rows: Sequence[CostRow]) -> CostTotals:
        """Of rows; zero of none."""

        def end(name: str, lines: Iterable[CostLine | None]) -> Amount:
            amounts: list[Amount | None] = [getattr(each, name) for each in lines if each is not None]
            return total(each for each in amounts if each is not None)

        old, new = [each.before for each in rows], [each.after for each in rows]
        return cls(
            idle_before=end("idle", old),
            idle_after=end("idle", new),
            most_before=end("most", old),
            most_after=end("most", new),
        )

    @property
    def falls(self) -> bool:
        """Whether the cost is known to fall or to stay at both ends."""
        ends = ((self.idle_before, self.idle_after), (self.most_before, self.most_after))
        return all(
            new.known <= old.known and all(count <= old.unknown.get(name, 0) for name, count in new.unknown.items())
            for old, new in ends
        )

    @property
    def sentence(self) -> str:
        """Both ends, before and after, on one line; once where they are the same."""
        minimum = moved_text(self.idle_before, self.idle_after)
        if (self.idle_before, self.idle_after) == (self.most_before, self.most_after):
            return minimum
        return f"at minimum {minimum}; at maximum {moved_text(self.most_before, self.most_after)}"

    @property
    def moved(self) -> str:
        """The ends that change, before and after."""
        minimum, maximum = (self.idle_before, self.idle_after), (self.most_before, self.most_after)
        ends = {"": minimum} if minimum == maximum else {"at minimum ": minimum, "at maximum ": maximum}
        return "; ".join(f"{end}{moved_text(*sides)}" for end, sides in ends.items() if sides[0] != sides[1])


def cost_rows(
    before: EnvironmentSnapshot,
    after: EnvironmentSnapshot,
    *,
    prices: Prices,
    traffic: Mapping[tuple[str, str], TrafficEntry] | None = None,
) -> tuple[CostRow, ...]:
    """The table of an environment: every endpoint by stack and logical id, then what stands besides them.

    ``traffic``: stack and logical id of an endpoint → what happens to its traffic.
    """
    beside = _beside(before, prices.before), _beside(after, prices.after)
    names = [name for name in (*(kind.name for kind in _KINDS), _OTHERS) if name in beside[0] | beside[1]]
    rows = [CostRow(name=name, before=beside[0].get(name), after=beside[1].get(name)) for name in names]
    return (*_endpoints(before, after, prices, traffic or {}), *rows)


# Endpoints.
_BOTH_FLEETS = {Update.ALL_AT_ONCE, Update.CANARY, Update.LINEAR, Update.UNKNOWN}


def _endpoints(
    before: EnvironmentSnapshot,
    after: EnvironmentSnapshot,
    prices: Prices,
    traffic: Mapping[tuple[str, str], TrafficEntry],
) -> Iterator[CostRow]:
    """A row for every endpoint of either side."""
    old = {(each.stack, each.logical_id): each for each in fleets_of(before)}
    new = {(each.stack, each.logical_id): each for each in fleets_of(after)}
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
        both = total(each.most for each in (old, new) if each.most is not None)
        yield f"While {name} is updated both fleets {run}: at most {both.text}."
    elif traffic.update == Update.ROLLING:  # it adds one batch at a time: no figure
        yield f"While {name} is updated one more batch of instances runs beside the fleet."


def _endpoint(fleet: Fleet, book: PriceBook) -> CostLine:
    """One endpoint on one side, at its fewest and at its most instances, schedules included."""
    grows = ("data in and out of the instances",)
    if not fleet.variants:
        reason = f"the configuration of {fleet.endpoint} lies outside its template"
        unknown = Amount(unknown={reason: 1})
        return CostLine(quantity="unknown", idle=unknown, most=unknown, grows=grows, reasons=(reason,))
    minimum, maximum, reasons, quantities = Amount(), Amount(), [], []
    for variant in fleet.variants:
        key = f"{variant.instance_type or f'{fleet.endpoint}: {variant.reason}'} in {fleet.region}"
        price: Decimal | str = variant.reason
        if variant.instance_type is not None:
            price = book.price(variant.instance_type, fleet.region)
        counts = [each for each in (variant.minimum, variant.maximum) if isinstance(each, str)]
        uncounted = f"how many instances {variant.name} of {fleet.endpoint} has: {counts[0]}" if counts else ""
        reasons += [reason for reason in (price if isinstance(price, str) else uncounted,) if reason]
        usd = None if isinstance(price, str) else price
        minimum += _times(variant.minimum, usd, key=key, uncounted=f"{uncounted} of {key}")
        maximum += _times(variant.maximum, usd, key=key, uncounted=f"{uncounted} of {key}")
        most = f" to {variant.maximum}" if variant.minimum != variant.maximum else ""
        quantities.append(f"{variant.minimum}{most} of {variant.instance_type or variant.reason}")
    return CostLine(
        quantity=", ".join(quantities), idle=minimum, most=maximum, grows=grows, reasons=tuple(dict.fromkeys(reasons))
    )


def _times(count: Count, usd: Decimal | None, *, key: str, uncounted: str) -> Amount:
    """``usd``: of one; None: unknown. ``key``, ``uncounted``: names of what is unknown, the price or how many."""
    if isinstance(count, str):
        return Amount(unknown={uncounted: 1})
    if count == 0:
        return Amount()
    return Amount(unknown={key: count}) if usd is None else Amount(known=count * usd)


# What stands besides the endpoints.


def _beside(environment: EnvironmentSnapshot, book: PriceBook) -> dict[str, CostLine]:
    """Name of a row → the row."""
    found = {kind.name: _line(kind, environment, book) for kind in _KINDS}
    found[_OTHERS] = _others(environment)
    return {name: line for name, line in found.items() if line is not None}


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What one resource is billed for.

    ``fixed``: name of a price → how many times, by time. ``grows``: what is billed by use → name of its price; None
    where the catalogue has none. ``count``: how many such things the resource stands for.
    """

    fixed: Mapping[str, Count] = field(default_factory=dict)
    grows: Mapping[str, str | None] = field(default_factory=dict)
    count: int = 1


@dataclass(frozen=True)
class _Kind:
    """A row besides the endpoints.

    ``read``: what a resource of the types is billed for; None for a free one. ``billed``: by what, if several times.
    """

    name: str
    types: tuple[str, ...]
    read: Callable[[Resource], _Found | None]
    use: str = ""
    billed: str = ""


def _line(kind: _Kind, environment: EnvironmentSnapshot, book: PriceBook) -> CostLine | None:
    """The row of one kind; None where the environment has nothing of it."""
    read = [
        (found, stack)
        for stack in environment.stacks.values()
        for each in stack.of_type(*kind.types)
        if (found := kind.read(each)) is not None
    ]
    if not read:
        return None
    fixed = [(name, units, stack) for found, stack in read for name, units in found.fixed.items()]
    grows = {what: (price, stack) for found, stack in read for what, price in found.grows.items()}
    amount = total(_amount(name, units, stack, book) for name, units, stack in fixed) if fixed else None
    count, times = sum(found.count for found, _ in read), sum(units for _, units, _ in fixed if isinstance(units, int))
    return CostLine(
        quantity=f"{count}, billed {kind.billed}: {times}" if kind.billed and times != count else f"{count}",
        idle=amount,
        most=amount,
        grows=tuple(_by_use(what, price, stack, book) for what, (price, stack) in grows.items()),
        use=kind.use,
    )


def _amount(name: str, units: Count, stack: StackSnapshot, book: PriceBook) -> Amount:
    rate = book.rate(name, stack.region)
    key = f"{name} in {stack.region or 'a region that is decided when it is deployed'}"
    usd = None if rate is None or units == 0 else rate.usd_per_hour
    return _times(units, usd, key=key, uncounted=f"how many times {key} is billed ({units})")


def _by_use(what: str, price: str | None, stack: StackSnapshot, book: PriceBook) -> str:
    if price is None:
        return what
    rate = book.rate(price, stack.region)
    return f"{what}: {'price unknown' if rate is None else rate.text}"


def _always(price: str = "", **grows: str | None) -> Callable[[Resource], _Found]:
    """The same for each resource. ``price``: by time; empty: by use alone. ``grows``: with underscores for spaces."""
    found = _Found(
        fixed={price: 1} if price else {}, grows={what.replace("_", " "): name for what, name in grows.items()}
    )
    return lambda _resource: found


def _vpc_endpoint(resource: Resource) -> _Found | None:
    """Interface endpoints are billed in each zone, which has one subnet of theirs; gateways are free."""
    kind = resource.properties.get("VpcEndpointType", "Gateway")
    if kind == "Gateway":
        return None
    subnets = resource.properties.get("SubnetIds")
    zones: Count = len(subnets) if isinstance(subnets, list) else "its subnets are known only when it is deployed"
    if kind != "Interface":
        return _Found(fixed={f"{kind} VPC endpoint": zones})
    return _Found(fixed={"interface-endpoint": zones}, grows={"data through them": "interface-endpoint-data"})


def _alarm(resource: Resource) -> _Found | None:
    """Billed for each metric that it reads."""
    if resource.type == _COMPOSITE_ALARM:
        return _Found(fixed={"composite-alarm": 1})
    if resource.type == _SCALING_POLICY:
        tracking = resource.properties.get("TargetTrackingScalingPolicyConfiguration")
        if tracking is None:
            return None
        read = len(_metrics(tracking.get("CustomizedMetricSpecification", {}))) or 1
        return _Found(fixed={"alarm-metric": _TARGET_TRACKING_ALARMS * read}, count=_TARGET_TRACKING_ALARMS)
    given = resource.properties
    metrics = _metrics(given)
    periods = [each.get("Period") for each in (*metrics, given) if each.get("Period") is not None]
    if "ThresholdMetricId" in given or not (metrics or "MetricName" in given):
        return _Found(fixed={"alarm of another kind": 1})
    fine = any(isinstance(each, int) and each < _HIGH_RESOLUTION_SECONDS for each in periods)
    return _Found(fixed={"high-resolution-alarm-metric" if fine else "alarm-metric": len(metrics) or 1})


def _metrics(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The metrics of metric math; none where one metric is named."""
    return [each["MetricStat"] for each in given.get("Metrics", []) if "MetricStat" in each]


def _project(resource: Resource) -> _Found:
    environment = resource.properties.get("Environment", {})
    kind, size = environment.get("Type"), environment.get("ComputeType")
    size = size.rpartition("_")[2].lower() if isinstance(size, str) else "unknown size"
    machine = f"{_MACHINES.get(kind, str(kind))}.{size}"
    gpu = " (GPU)" if kind == "LINUX_GPU_CONTAINER" else ""
    return _Found(grows={f"builds on {machine}{gpu}": f"codebuild-{machine}"})


def _config(resource: Resource) -> _Found | None:
    """What an endpoint's configuration adds to its instances."""
    metrics = resource.properties.get("MetricsConfig", {})
    grows: dict[str, str | None] = {}
    if metrics.get("EnableEnhancedMetrics") is True:
        grows["each metric of an instance or GPU"] = "metric"
    if metrics.get("EnableDetailedObservability") is not False:  # SageMaker's default, with no published price
        grows["detailed observability"] = None
    return _Found(grows=grows) if grows else None


def _key(resource: Resource) -> _Found:
    rotated = {"each rotated version": "kms-key"} if resource.properties.get("EnableKeyRotation") is True else {}
    return _Found(fixed={"kms-key": 1}, grows={"requests": "kms-requests", **rotated})


_KINDS = (
    _Kind("NAT gateways", ("AWS::EC2::NatGateway",), _always("nat-gateway", data="nat-gateway-data"), "NAT data"),
    _Kind("public IPv4 addresses", ("AWS::EC2::EIP",), _always("public-ipv4")),
    _Kind(
        "interface VPC endpoints", ("AWS::EC2::VPCEndpoint",), _vpc_endpoint, "VPC endpoint data", billed="in each zone"
    ),
    _Kind("KMS keys", ("AWS::KMS::Key",), _key, "KMS requests"),
    _Kind("CloudWatch alarms", (_ALARM, _COMPOSITE_ALARM, _SCALING_POLICY), _alarm, billed="by metric"),
    _Kind("CloudWatch dashboards", ("AWS::CloudWatch::Dashboard",), _always("dashboard")),
    _Kind("configurations of endpoints", (CONFIG,), _config, "metrics"),
    _Kind("S3 buckets", ("AWS::S3::Bucket",), _always(storage="s3-storage", requests=None), "S3"),
    _Kind(
        "log groups",
        ("AWS::Logs::LogGroup", "Custom::EndpointLogGroup"),
        _always(ingested="log-data", stored="log-storage"),
        "logs",
    ),
    _Kind("CodeBuild projects", ("AWS::CodeBuild::Project",), _project, "builds"),
    _Kind("pipelines", ("AWS::CodePipeline::Pipeline",), _always(minutes_of_actions=None), "pipeline actions"),
    _Kind("Lambda functions", ("AWS::Lambda::Function",), _always(requests_and_duration=None), "functions"),
    _Kind("state machines", ("AWS::StepFunctions::StateMachine",), _always(transitions=None), "load tests"),
    _Kind("queues and topics", ("AWS::SQS::Queue", "AWS::SNS::Topic"), _always(messages=None)),
)
_PRICED = {each for kind in _KINDS for each in kind.types}


def _others(environment: EnvironmentSnapshot) -> CostLine | None:
    """Resources that have no row and are not known to be free: their price is unknown, not zero."""
    others = [
        f"{each.type} in {stack.region or 'a region that is decided when it is deployed'}"
        for stack in environment.stacks.values()
        for each in stack.resources.values()
        if each.type not in _PRICED | _FREE and not each.type.startswith(_FREE_PREFIXES)
    ]
    if not others:
        return None
    amount = total(Amount(unknown={each: 1}) for each in others)
    return CostLine(quantity=f"{len(others)}", idle=amount, most=amount)


# The table as data.


def table_entry(rows: Sequence[CostRow]) -> CostTableEntry:
    """The rows with their sums."""
    sums = vars(CostTotals.of(rows))
    uses = dict.fromkeys(each.after.use for each in rows if each.after is not None and each.after.use)
    return CostTableEntry.model_validate(
        {
            "rows": tuple(map(_row_entry, rows)),
            **{end: amount_entry(amount) for end, amount in sums.items()},
            "by_use": tuple(uses),
            "unknown": tuple(sorted({name for amount in sums.values() for name in amount.unknown})),
        }
    )


def table_of(environment: EnvironmentSnapshot, *, book: PriceBook) -> CostTableEntry:
    """The table of an environment that nothing is compared with: the same before and after."""
    return table_entry(cost_rows(environment, environment, prices=Prices(before=book, after=book)))


def _row_entry(row: CostRow) -> CostRowEntry:
    present = row.after or row.before
    members: dict[str, Any] = {"by_use": () if present is None else present.grows}
    for side, line in (("before", row.before), ("after", row.after)):
        members[f"quantity_{side}"] = line and line.quantity
        for end in ("idle", "most"):
            amount = line and getattr(line, end)
            members[f"{end}_{side}"] = amount and amount_entry(amount)
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
