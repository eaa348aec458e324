"""One serving stack of CloudFormation, as far as a scaled endpoint goes.

It sends events as CloudFormation does: to what the template changes, in the order of the dependencies, and in a
rollback to what the update had touched and nothing else. What is not documented is a choice of the tests.
"""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fake_aws import AwsError
from tests.fake_aws.emulated import EmulatedAws

clients: Any = importlib.import_module("lambda.shared.clients")  # `lambda` is a word of the language
deployment: Any = importlib.import_module("lambda.scaling.deployment")
target: Any = importlib.import_module("lambda.scaling.target")
stack_events: Any = importlib.import_module("tests.lambda.stack_events")
ENDPOINT = "dev-digits"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/dev-serving-digits/1"
MUTATIONS = frozenset({"RegisterScalableTarget", "DeregisterScalableTarget", "PutScalingPolicy", "DeleteScalingPolicy"})
CANARY = {"Type": "CANARY", "WaitIntervalInSeconds": 600, "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1}}


@dataclass
class ScaledEndpoint(EmulatedAws):
    """An endpoint of the emulator, and what is registered there for its variants.

    Attributes:
        begin: variants, joined by +, and the count that each begins with; None: no endpoint.
        fails_after: changes until Application Auto Scaling responds with an error, once; None: it does not.
        quota: the most instances that the account may have; None: any number.
        stack: the events of the endpoint's stack.
        log: operations of the function that changed something.
    """

    begin: tuple[Any, ...] | None = None
    fails_after: int | None = None
    quota: int | None = None
    stack: Any = field(default_factory=lambda: stack_events.StackEvents(STACK))
    log: list[str] = field(default_factory=list)
    _moves: Iterator[int] = field(default_factory=itertools.count)
    _aws: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._aws = clients.Aws(self.client)
        self.add_model("model")
        if self.begin is not None:
            self.move(self.begin)

    @property
    def function_clients(self) -> Any:
        """The clients of the function."""
        return self._aws

    @property
    def config(self) -> tuple[Any, ...] | None:
        """Variants, joined by +, and the count that each began with; None: no endpoint."""
        return (self.live, *self.begun.values()) if self.begun else None

    @property
    def begun(self) -> dict[str, int]:
        """Live variant → its initial instance count."""
        if (record := self.endpoint_record(ENDPOINT)) is None:
            return {}
        config = self.emulated("sagemaker", "DescribeEndpointConfig", EndpointConfigName=record.config_name)
        return {each["VariantName"]: each["InitialInstanceCount"] for each in config["ProductionVariants"]}

    @property
    def live(self) -> str | None:
        """The variants that take the requests, joined by +."""
        return "+".join(self.counts) or None

    @property
    def counts(self) -> dict[str, int]:
        """Live variant → its instances."""
        record = self.endpoint_record(ENDPOINT)
        return {} if record is None else {each["VariantName"]: each["DesiredInstanceCount"] for each in record.variants}

    @counts.setter
    def counts(self, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            wanted = [{"VariantName": name, "DesiredInstanceCount": count}]
            request = {"EndpointName": ENDPOINT, "DesiredWeightsAndCapacities": wanted}
            self.emulated("sagemaker", "UpdateEndpointWeightsAndCapacities", **request)

    @property
    def count(self) -> int:
        """Instances of the live variant; of several, the fewest."""
        return min(self.counts.values(), default=0)

    @count.setter
    def count(self, count: int) -> None:
        self.counts = dict.fromkeys(self.counts, count)

    @property
    def status(self) -> str:
        """The endpoint's."""
        return str(self.endpoint_record(ENDPOINT).status)

    @status.setter
    def status(self, status: str) -> None:
        self.endpoint_record(ENDPOINT).status = status

    def move(self, config: tuple[Any, ...]) -> None:
        """Create the endpoint, or update it as templates do: variants keep their counts."""
        names = {"EndpointName": ENDPOINT, "EndpointConfigName": f"config-{next(self._moves)}"}
        each = {"ModelName": "model", "InstanceType": "ml.g5.xlarge"}
        variants = [
            {"VariantName": name, "InitialInstanceCount": count, "InitialVariantWeight": 1.0, **each}
            for name, count in zip(config[0].split("+"), config[1:], strict=True)
        ]
        name = names["EndpointConfigName"]
        self.emulated("sagemaker", "CreateEndpointConfig", EndpointConfigName=name, ProductionVariants=variants)
        if self.endpoint_record(ENDPOINT) is None:
            self.emulated("sagemaker", "CreateEndpoint", **names)
        else:
            self.emulated("sagemaker", "UpdateEndpoint", **names, RetainAllVariantProperties=True)

    @property
    def targets(self) -> dict[str, tuple[int, int]]:
        """Variant → limits of its scalable target."""
        rows = self._scaling("DescribeScalableTargets")["ScalableTargets"]
        return {variant_of(each): (each["MinCapacity"], each["MaxCapacity"]) for each in rows}

    @property
    def policies(self) -> dict[tuple[str, str], tuple[str, dict[str, Any]]]:
        """(variant, name) → ARN and configuration."""
        rows = self._scaling("DescribeScalingPolicies")["ScalingPolicies"]
        member = "TargetTrackingScalingPolicyConfiguration"
        return {(variant_of(each), each["PolicyName"]): (each["PolicyARN"], each[member]) for each in rows}

    @property
    def schedules(self) -> set[tuple[str, str]]:
        """(variant, name) of the scheduled actions."""
        rows = self._scaling("DescribeScheduledActions")["ScheduledActions"]
        return {(variant_of(each), each["ScheduledActionName"]) for each in rows}

    def names(self, variant: str) -> dict[str, Any]:
        """Policy name → configuration as it was put, of a variant."""
        return {
            name: {member: value for member, value in configuration.items() if member != "DisableScaleIn"}
            for (of, name), (_, configuration) in self.policies.items()
            if of == variant
        }

    def register(self, variant: str, limits: tuple[int, int]) -> None:
        """Register a scalable target past the function, as CloudFormation does."""
        self._scaling("RegisterScalableTarget", variant, MinCapacity=limits[0], MaxCapacity=limits[1])

    def deregister(self, variant: str) -> None:
        """Deregister a scalable target past the function."""
        self._scaling("DeregisterScalableTarget", variant)

    def put_policy(self, variant: str, name: str, configuration: Mapping[str, Any]) -> str:
        """Put a policy past the function; returns its ARN."""
        policy = {"PolicyName": name, "PolicyType": "TargetTrackingScaling"}
        made = self._scaling(
            "PutScalingPolicy", variant, **policy, TargetTrackingScalingPolicyConfiguration=dict(configuration)
        )
        return str(made["PolicyARN"])

    def delete_policy(self, arn: str) -> None:
        """Delete a policy past the function, unless it is gone."""
        for (variant, name), (found, _) in self.policies.items():
            if found == arn:
                self._scaling("DeleteScalingPolicy", variant, PolicyName=name)

    def schedule(self, variant: str, action: Mapping[str, Any]) -> None:
        """Put a scheduled action past the function, also one whose time is past: it was not when it was put."""
        self._scaling("PutScheduledAction", variant, **action)

    def _scaling(self, operation: str, variant: str = "", **request: Any) -> dict[str, Any]:
        named = {"ResourceId": f"endpoint/{ENDPOINT}/variant/{variant}", "ScalableDimension": DIMENSION}
        given = {"ServiceNamespace": "sagemaker", **(named if variant else {}), **request}
        return self.emulated("application-autoscaling", operation, **given)

    def respond(self, operation: str, request: dict[str, Any], *, service: str) -> Mapping[str, Any]:
        """As the emulator, with the failures of changes that a test sets."""
        if operation in MUTATIONS:
            if self.fails_after is not None:
                self.fails_after -= 1
                if self.fails_after < 0:
                    self.fails_after = None
                    raise AwsError("InternalServiceException", "broken")
            self.log.append(operation)
        return super().respond(operation, request, service=service)

    def _DescribeStackEvents(self, **given: str) -> dict[str, Any]:
        page: dict[str, Any] = self.stack.respond(**given)
        return page

    def _UpdateEndpointWeightsAndCapacities(self, **request: Any) -> dict[str, Any]:
        """Within the account's quota."""
        [wanted] = request["DesiredWeightsAndCapacities"]
        if self.quota is not None and wanted["DesiredInstanceCount"] > self.quota:
            raise AwsError("ResourceLimitExceeded", "The account-level service limit is 2 Instances")
        return self.emulated("sagemaker", "UpdateEndpointWeightsAndCapacities", **request)

    def _DescribeScalingPolicies(self, NextToken: str = "0", **request: Any) -> dict[str, Any]:
        """In pages of one: the emulator has one page."""
        rows = self.emulated("application-autoscaling", "DescribeScalingPolicies", **request)["ScalingPolicies"]
        at = int(NextToken)
        return {"ScalingPolicies": rows[at : at + 1], **({"NextToken": str(at + 1)} if at + 1 < len(rows) else {})}

    def _PutScheduledAction(self, **request: Any) -> dict[str, Any]:
        """But for times that are past, which Application Auto Scaling refuses and the emulator takes."""
        if request["Schedule"].startswith("at(2020"):
            raise AwsError("ValidationException", "in the past")
        return self.emulated("application-autoscaling", "PutScheduledAction", **request)


def variant_of(row: Mapping[str, Any]) -> str:
    """The variant of a scalable target, policy or scheduled action."""
    assert row["ResourceId"].startswith(f"endpoint/{ENDPOINT}/variant/")
    return str(row["ResourceId"].rpartition("/")[2])


@dataclass(frozen=True, kw_only=True)
class Template:
    """A template's scaled endpoint."""

    variant: str = "a"  # several are joined by +, and have the same scaling
    targets: tuple[int, ...] = (60,)
    minimum: int = 1
    maximum: int = 9
    initial: int = 1
    model: int = 1
    schedules: tuple[str, ...] = ()
    routing: Mapping[str, Any] = field(default_factory=lambda: CANARY)

    @property
    def policies(self) -> dict[str, dict[str, Any]]:
        """Name → configuration, one for each target."""
        metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
        return {
            f"tritonstack-metric{number}-{value}": {
                "TargetValue": float(value),
                "PredefinedMetricSpecification": metric,
            }
            for number, value in enumerate(self.targets)
        }

    @property
    def actions(self) -> list[dict[str, Any]]:
        """The scheduled actions; a name may have no colon."""
        return [
            {
                "ScheduledActionName": when.replace(":", "."),
                "Schedule": when,
                "ScalableTargetAction": {"MinCapacity": 1},
            }
            for when in self.schedules
        ]

    @property
    def variants(self) -> list[str]:
        """The variants' names."""
        return self.variant.split("+")

    @property
    def text(self) -> str:
        """The property ``Scaling``."""
        first, *others = map(self._scaling, self.variants)
        document = {"endpoint": ENDPOINT, **first, "routing": dict(self.routing)}
        return json.dumps({**document, "beside": others} if others else document)

    def _scaling(self, variant: str) -> dict[str, Any]:
        return {
            "variant": variant,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "initial": self.initial,
            "policies": self.policies,
            "schedules": self.actions,
        }

    @property
    def properties(self) -> dict[str, str]:
        """Those of the three custom resources."""
        return {"Scaling": self.text, "Model": str(self.model)}


@dataclass(frozen=True, kw_only=True)
class Books:
    """CloudFormation's record of a stack: the template in force, the config's variants and counts, physical ids."""

    template: Template
    config: tuple[Any, ...]
    policies: dict[tuple[int, str], tuple[str, str]]
    attributes: dict[str, str]


class StackError(Exception):
    """A stack that ended in a state from which CloudFormation does not find back."""


class _FailedError(Exception):
    """A resource that failed."""


@dataclass(kw_only=True)
class Stack:
    """One serving stack."""

    aws: Any = field(default_factory=ScaledEndpoint)
    backwards: bool = False  # whether a rollback goes from the last resource to the first
    updates_replaced: bool = False  # whether a resource whose physical id changed gets an Update in a rollback, too
    twice: bool = False  # whether every event is delivered twice
    books: Books | None = None

    def deploy(self, template: Template, *, fails: str = "", breaks_after: int = 0) -> bool:
        """Deploy; whether it succeeded. Where it did not, it is rolled back.

        Args:
            template: what is to be in force.
            fails: where: ``before``, ``endpoint``, ``cancelled`` (the endpoint moves all the same), ``silent``
                (SageMaker rolls it back without an event), ``target``, ``policy``, ``after``, ``later``.
            breaks_after: changes of Application Auto Scaling that ``before`` and ``after`` make before they fail.
        """
        update = _Update(self, template, fails=fails, breaks_after=breaks_after)
        try:
            update.run()
        except _FailedError:
            update.roll_back()
            return False
        update.clean_up()
        return True

    def send(self, kind: str, request: str, new: Template, old: Template | None = None, *, in_force: Template) -> Any:
        """One event."""
        event = event_of(kind, request, new, old)
        rolls_back = self.books is not None and request == "Update" and old is not None and old != self.books.template
        self.aws.stack.becomes("UPDATE_ROLLBACK_IN_PROGRESS" if rolls_back else "UPDATE_IN_PROGRESS")
        self.aws.stack.begins(event)
        for _ in range(2 if self.twice else 1):
            data = deployment.act(event, self.aws.function_clients, in_force=target.Wanted.of(in_force.text))
        return data


def event_of(kind: str, request: str, new: Template, old: Template | None = None) -> dict[str, Any]:
    """An event of CloudFormation."""
    event: dict[str, Any] = {
        "RequestType": request,
        "ResourceType": f"Custom::Scaling{kind}",
        "LogicalResourceId": kind,
        "StackId": STACK,
        "ResourceProperties": new.properties,
    }
    return event if old is None else {**event, "OldResourceProperties": old.properties}


class _Update:
    """One deployment."""

    def __init__(self, stack: Stack, template: Template, *, fails: str, breaks_after: int) -> None:
        self.stack, self.aws, self.new = stack, stack.aws, template
        self.books, self.fails, self.breaks_after = stack.books, fails, breaks_after
        self.undo: list[Callable[[], None]] = []
        self.leftover: list[Callable[[], None]] = []
        """Deletes that a rollback ends with."""
        self.replaced: list[Callable[[], None]] = []
        """Deletes that a success ends with."""

    @property
    def old(self) -> Template | None:
        return None if self.books is None else self.books.template

    def run(self) -> None:
        attributes = self._custom("Before")
        self._settled()
        config = self._config(attributes)
        self._endpoint(config)
        self._targets()
        policies = self._policies()
        self._custom("After")
        if self.fails == "later":
            raise _FailedError
        self.stack.books = Books(template=self.new, config=config, policies=policies, attributes=attributes)

    def roll_back(self) -> None:
        assert self.books is not None, "the tests let no creation fail"
        self.aws.fails_after = None
        for step in reversed(self.undo) if self.stack.backwards else self.undo:
            step()
        for step in reversed(self.leftover):
            step()

    def clean_up(self) -> None:
        for step in reversed(self.replaced):
            step()

    def _custom(self, kind: str) -> dict[str, str]:
        """Before and After, whose ids never change."""
        old, new = self.old, self.new
        if old is not None and old.properties == new.properties:
            assert self.books is not None
            return self.books.attributes
        if old is not None:
            back = old
            self.undo.append(lambda: self.stack.send(kind, "Update", back, new, in_force=back))
        breaking = self.fails == kind.lower()
        self.aws.fails_after = self.breaks_after if breaking else None
        try:
            data: dict[str, str] = self.stack.send(kind, "Update" if old else "Create", new, old, in_force=new)
        except Exception as error:
            raise _FailedError from error
        if breaking:
            raise _FailedError
        return data

    def _settled(self) -> None:
        """Settled, whose id is the variant."""
        old, new = self.old, self.new
        if old is None or old.properties == new.properties:
            return
        self.stack.send("Settled", "Update", new, old, in_force=new)
        replaced = old.variant != new.variant
        if not replaced or self.stack.updates_replaced:
            self.undo.append(lambda: self.stack.send("Settled", "Update", old, new, in_force=old))
        if replaced:
            self.replaced.append(lambda: self.stack.send("Settled", "Delete", old, in_force=new))
            self.leftover.append(lambda: self.stack.send("Settled", "Delete", new, in_force=old))

    def _config(self, attributes: dict[str, str]) -> tuple[Any, ...]:
        names = [f"InitialInstanceCount{number or ''}" for number in range(len(self.new.variants))]
        return (self.new.variant, *(int(attributes[name]) for name in names))

    def _endpoint(self, config: tuple[Any, ...]) -> None:
        if self.books is not None:
            if (config, self.new.model) == (self.books.config, self.books.template.model):
                return
            back = self.books.config
            self.undo.append(lambda: self._move_back(back))
        if self.fails == "endpoint":
            raise _FailedError
        if self.fails != "silent":
            self._move(config)
        if self.fails == "cancelled":
            raise _FailedError

    def _move(self, config: tuple[Any, ...]) -> None:
        try:
            self.aws.move(config)
        except AwsError as error:
            raise StackError(f"the endpoint cannot move: {error}") from error

    def _move_back(self, config: tuple[Any, ...]) -> None:
        if self.aws.config != config:
            self._move(config)

    def _targets(self) -> None:
        """A target at each place: the first variant's, the second's."""
        olds = [] if self.old is None else self.old.variants
        for old, new in itertools.zip_longest(olds, self.new.variants):
            self._target(old, new)
        if self.fails == "target":
            raise _FailedError

    def _target(self, was: str | None, variant: str | None) -> None:
        old, new = self.old, self.new
        limits = (new.minimum, new.maximum)
        if was is not None and was == variant:
            assert old is not None
            if (old.minimum, old.maximum) == limits:
                return
            before = (old.minimum, old.maximum)
            self.undo.append(lambda: self._update_target(was, before))
            self._update_target(was, limits)
        elif was is not None:
            self.replaced.append(lambda: self._delete_target(was))
        if variant is None:
            return
        if was != variant:
            if variant not in self.aws.counts:
                raise _FailedError  # Application Auto Scaling takes live variants alone
            self.aws.register(variant, limits)
            self.leftover.append(lambda: self._delete_target(variant))
        for action in new.actions:
            self.aws.schedule(variant, action)

    def _update_target(self, variant: str, limits: tuple[int, int]) -> None:
        if variant not in self.aws.targets:
            raise StackError(f"the scalable target of {variant} is not found")
        self.aws.register(variant, limits)

    def _delete_target(self, variant: str) -> None:
        if variant in self.aws.targets:
            self.aws.deregister(variant)

    def _policies(self) -> dict[tuple[int, str], tuple[str, str]]:
        """Logical id → (variant, ARN). CloudFormation's physical ids of policies are their ARNs."""
        known = dict(self.books.policies) if self.books else {}
        wanted = self.new.policies
        made = {}
        for (place, variant), (name, configuration) in itertools.product(enumerate(self.new.variants), wanted.items()):
            key = (place, name)
            if known.get(key, ("", ""))[0] == variant:
                made[key] = known[key]
                continue
            made[key] = (variant, self.aws.put_policy(variant, name, configuration))
            self.leftover.append(lambda arn=made[key][1]: self.aws.delete_policy(arn))  # type: ignore[misc]
            if self.fails == "policy":
                raise _FailedError
        for key, gone in (self.books.policies if self.books else {}).items():
            if made.get(key) != gone:
                self.replaced.append(lambda arn=gone[1]: self.aws.delete_policy(arn))  # type: ignore[misc]
        return made


def check(stack: Stack, in_force: Template) -> None:
    """The live variants, and no other, are scaled by the policies and schedules of the template in force."""
    aws = stack.aws
    assert aws.live == in_force.variant
    assert set(aws.targets) == set(in_force.variants)
    for variant in in_force.variants:
        assert aws.names(variant) == in_force.policies
        assert {name for of, name in aws.schedules if of == variant} == {
            each["ScheduledActionName"] for each in in_force.actions
        }
    assert {key[0] for key in [*aws.policies, *aws.schedules]} <= set(in_force.variants)


__all__ = ["Books", "ScaledEndpoint", "Stack", "StackError", "Template", "check", "replace"]
