"""Cost table of an environment: idle, at most, and billed by use, row by row, from its templates.

A resource type that has no row, and that is not known to be free, is in the row "other resources", without a price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tritonstack.iam_policies import covers, listed
from tritonstack.review.cost import Amount, EndpointCost, PriceBook, Prices, cost_changes, total
from tritonstack.review.engines import deployment_sites
from tritonstack.review.snapshot import EnvironmentSnapshot, Resource, StackSnapshot
from tritonstack.review.traffic import CONFIG, Count, Variant

LIST_PRICES = (
    "On-demand list prices, beside instances as public documents quote them; without free allowances, data transfer "
    "and taxes (docs/prices.md)."
)
_TARGET_TRACKING_ALARMS = 2
"""AlarmHigh and AlarmLow, which Application Auto Scaling makes for each target tracking policy and CloudWatch bills."""
_HIGH_RESOLUTION_SECONDS = 60
"""An alarm on a shorter period is a high-resolution one."""
_JOBS = {
    "sagemaker:CreateProcessingJob": "SageMaker Processing jobs",
    "sagemaker:CreateInferenceRecommendationsJob": "Inference Recommender jobs",
}
"""Action → the jobs that a role may start with it; they are in no template."""
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
    """One row of an environment's table."""

    name: str  # ``endpoint prod-digits``, ``NAT gateways``
    quantity: str  # how many, in words
    idle: Amount | None = None  # with the fewest instances and no request; None where nothing is billed by time
    # with the most instances that scaling or a schedule allows, without what is billed by use; None likewise
    most: Amount | None = None
    grows: tuple[str, ...] = ()  # what is billed by use, each with its price where that is known
    use: str = ""  # the same in a word or two
    unknown: tuple[str, ...] = ()  # names of what is unknown, mostly prices with their regions


@dataclass(frozen=True, kw_only=True)
class CostTable:
    """An environment on one side."""

    endpoints: tuple[CostLine, ...] = ()  # a row each; none of an environment that is not there
    beside: tuple[CostLine, ...] = ()  # the rows besides the endpoints

    @property
    def lines(self) -> tuple[CostLine, ...]:
        """All rows."""
        return (*self.endpoints, *self.beside)

    @property
    def idle(self) -> Amount:
        """The sum of the rows."""
        return total(each.idle for each in self.lines if each.idle is not None)

    @property
    def most(self) -> Amount:
        """The sum of the rows."""
        return total(each.most for each in self.lines if each.most is not None)

    @property
    def uses(self) -> tuple[str, ...]:
        """What grows with use, in a word or two each."""
        return tuple(dict.fromkeys(each.use for each in self.lines if each.use))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of what is not known, mostly prices with their regions."""
        return tuple(sorted({name for each in self.lines for name in each.unknown}))


def cost_table(
    environment: EnvironmentSnapshot | None, *, book: PriceBook, endpoints: Iterable[tuple[str, EndpointCost]]
) -> CostTable:
    """The table of one side.

    Args:
        environment: its templates; None where it is not there.
        book: its prices.
        endpoints: name and cost of its endpoints.
    """
    if environment is None:
        return CostTable()
    kinds = (_line(kind, environment, book) for kind in _KINDS)
    jobs = (_jobs(action, environment, book) for action in _JOBS)
    beside = (each for each in (*kinds, *jobs, _others(environment)) if each is not None)
    return CostTable(endpoints=tuple(_endpoint(name, cost) for name, cost in endpoints), beside=tuple(beside))


def table_of(environment: EnvironmentSnapshot, *, book: PriceBook) -> CostTable:
    """The table of an environment that nothing is compared with."""
    changes = cost_changes(None, environment, prices=Prices(after=book))
    return cost_table(
        environment, book=book, endpoints=[(each.endpoint, each.after) for each in changes if each.after is not None]
    )


def _endpoint(name: str, cost: EndpointCost) -> CostLine:
    def instances(variant: Variant) -> str:
        counts = f"{variant.minimum}" + (f" to {variant.maximum}" if variant.minimum != variant.maximum else "")
        return f"{counts} of {variant.instance_type or variant.reason}"

    return CostLine(
        name=f"endpoint {name}",
        quantity=", ".join(map(instances, cost.variants)) or "unknown",
        idle=cost.minimum,
        most=cost.maximum,
        grows=("data in and out of the instances",),
        unknown=tuple({**cost.minimum.unknown, **cost.maximum.unknown}),
    )


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What one resource is billed for.

    ``fixed``: name of a price → how many times, by time. ``grows``: what is billed by use → name of its price; None
    where the catalogue has none. ``count``: how many such things the resource stands for.
    """

    fixed: Mapping[str, Count] = field(default_factory=dict)
    grows: Mapping[str, str | None] = field(default_factory=dict)
    count: int = 1


@dataclass(frozen=True, kw_only=True)
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
        name=kind.name,
        quantity=f"{count}, billed {kind.billed}: {times}" if kind.billed and times != count else f"{count}",
        idle=amount,
        most=amount,
        grows=tuple(_by_use(what, price, stack, book) for what, (price, stack) in grows.items()),
        use=kind.use,
        unknown=() if amount is None else tuple(amount.unknown),
    )


def _amount(name: str, units: Count, stack: StackSnapshot, book: PriceBook) -> Amount:
    rate = book.rate(name, stack.region)
    key = f"{name} in {stack.region or 'a region that is decided when it is deployed'}"
    if units == 0:
        return Amount()
    if isinstance(units, str):
        return Amount(unknown={f"how many times {key} is billed ({units})": 1})
    return Amount(unknown={key: units}) if rate is None else Amount(known=units * rate.usd_per_hour)


def _by_use(what: str, price: str | None, stack: StackSnapshot, book: PriceBook) -> str:
    if price is None:
        return what
    rate = book.rate(price, stack.region)
    return f"{what}: {'price unknown' if rate is None else rate.text}"


def _each(price: str, **grows: str) -> Callable[[Resource], _Found]:
    """Billed by time, once for each resource."""
    return lambda _resource: _Found(fixed={price: 1}, grows=grows)


def _by_use_alone(**grows: str | None) -> Callable[[Resource], _Found]:
    """Billed by use alone. ``grows``: with underscores for spaces."""
    return lambda _resource: _Found(grows={what.replace("_", " "): price for what, price in grows.items()})


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
    if resource.type == "AWS::CloudWatch::CompositeAlarm":
        return _Found(fixed={"composite-alarm": 1})
    if resource.type == "AWS::ApplicationAutoScaling::ScalingPolicy":
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


_KINDS = (
    _Kind(
        name="NAT gateways",
        types=("AWS::EC2::NatGateway",),
        read=_each("nat-gateway", data="nat-gateway-data"),
        use="NAT data",
    ),
    _Kind(name="public IPv4 addresses", types=("AWS::EC2::EIP",), read=_each("public-ipv4")),
    _Kind(
        name="interface VPC endpoints",
        types=("AWS::EC2::VPCEndpoint",),
        read=_vpc_endpoint,
        use="VPC endpoint data",
        billed="in each zone",
    ),
    _Kind(
        name="KMS keys",
        types=("AWS::KMS::Key",),
        read=lambda key: _Found(
            fixed={"kms-key": 1},
            grows={"requests": "kms-requests"}
            | ({"each rotated version": "kms-key"} if key.properties.get("EnableKeyRotation") is True else {}),
        ),
        use="KMS requests",
    ),
    _Kind(
        name="CloudWatch alarms",
        types=(
            "AWS::CloudWatch::Alarm",
            "AWS::CloudWatch::CompositeAlarm",
            "AWS::ApplicationAutoScaling::ScalingPolicy",
        ),
        read=_alarm,
        billed="by metric",
    ),
    _Kind(name="CloudWatch dashboards", types=("AWS::CloudWatch::Dashboard",), read=_each("dashboard")),
    _Kind(name="configurations of endpoints", types=(CONFIG,), read=_config, use="metrics"),
    _Kind(
        name="S3 buckets",
        types=("AWS::S3::Bucket",),
        read=_by_use_alone(storage="s3-storage", requests=None),
        use="S3",
    ),
    _Kind(
        name="log groups",
        types=("AWS::Logs::LogGroup", "Custom::EndpointLogGroup"),
        read=_by_use_alone(ingested="log-data", stored="log-storage"),
        use="logs",
    ),
    _Kind(name="CodeBuild projects", types=("AWS::CodeBuild::Project",), read=_project, use="builds"),
    _Kind(
        name="pipelines",
        types=("AWS::CodePipeline::Pipeline",),
        read=_by_use_alone(minutes_of_actions=None),
        use="pipeline actions",
    ),
    _Kind(
        name="Lambda functions",
        types=("AWS::Lambda::Function",),
        read=_by_use_alone(requests_and_duration=None),
        use="functions",
    ),
    _Kind(
        name="state machines",
        types=("AWS::StepFunctions::StateMachine",),
        read=_by_use_alone(transitions=None),
        use="load tests",
    ),
    _Kind(
        name="queues and topics",
        types=("AWS::SQS::Queue", "AWS::SNS::Topic"),
        read=_by_use_alone(messages=None),
    ),
)
_PRICED = {each for kind in _KINDS for each in kind.types}


def _jobs(action: str, environment: EnvironmentSnapshot, book: PriceBook) -> CostLine | None:
    """Jobs that a role of the environment may start; None where none may."""
    stacks = [
        stack
        for stack in environment.stacks.values()
        if any(covers(each.lower(), action.lower()) for each in _granted(stack))
    ]
    if not stacks:
        return None
    machines = []
    if action == "sagemaker:CreateProcessingJob":
        machines = [
            each.machine for each in deployment_sites(environment) if each.kind == "processing" and each.machine
        ]
    grows = [_by_use(f"engine builds on {each}", f"processing-{each}", stacks[0], book) for each in machines]
    return CostLine(
        name=_JOBS[action],
        quantity="as they are started",
        grows=tuple(grows) or ("instances while they run",),
        use="engine builds" if action == "sagemaker:CreateProcessingJob" else "load tests",
    )


def _granted(stack: StackSnapshot) -> Iterator[str]:
    """Action patterns that the policies of a stack's roles allow."""
    policies = [each.properties for each in stack.of_type("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")]
    policies += [one for role in stack.of_type("AWS::IAM::Role") for one in role.properties.get("Policies", [])]
    for policy in policies:
        for statement in listed(policy.get("PolicyDocument", {}).get("Statement")):
            if statement.get("Effect") == "Allow":
                yield from (each for each in listed(statement.get("Action")) if isinstance(each, str))


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
    return CostLine(
        name="other resources", quantity=f"{len(others)}", idle=amount, most=amount, unknown=tuple(amount.unknown)
    )
