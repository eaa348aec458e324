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

from tests import fake_aws as fakes
from tests.fake_aws import AwsError

clients: Any = importlib.import_module("lambda.shared.clients")  # `lambda` is a word of the language
deployment: Any = importlib.import_module("lambda.scaling.deployment")
target: Any = importlib.import_module("lambda.scaling.target")
stack_events: Any = importlib.import_module("tests.lambda.stack_events")
ENDPOINT = "dev-digits"
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/dev-serving-digits/1"
MUTATIONS = frozenset({"RegisterScalableTarget", "DeregisterScalableTarget", "PutScalingPolicy", "DeleteScalingPolicy"})
CANARY = {"Type": "CANARY", "WaitIntervalInSeconds": 600, "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1}}


@dataclass
class FakeScaling(fakes.FakeAws):
    """An endpoint, and what is registered for its variants."""

    config: tuple[Any, ...] | None = None  # (variants, joined by +; then what each began with); None: no endpoint
    counts: dict[str, int] = field(default_factory=dict)  # live variant → its instances
    status: str = "InService"
    targets: dict[str, tuple[int, int]] = field(default_factory=dict)  # variant → limits
    policies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)  # (variant, name) → request
    schedules: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    endpoint_tags: dict[str, str] = field(default_factory=dict)
    fails_after: int | None = None  # changes until Application Auto Scaling answers with an error, once
    quota: int | None = None  # the most instances that the account may have
    stack: Any = field(default_factory=lambda: stack_events.StackEvents(STACK))
    log: list[str] = field(default_factory=list)  # operations that changed something
    _arns: Iterator[int] = field(default_factory=itertools.count)
    _clients: Any = None

    def __post_init__(self) -> None:
        self.counts = self.begun

    @property
    def begun(self) -> dict[str, int]:
        """Live variant → the count that it began with."""
        return {} if self.config is None else dict(zip(self.config[0].split("+"), self.config[1:], strict=True))

    @property
    def count(self) -> int:
        """Instances of the live variant; of several, the fewest."""
        return min(self.counts.values(), default=0)

    @count.setter
    def count(self, count: int) -> None:
        self.counts = dict.fromkeys(self.begun, count)

    @property
    def live(self) -> str | None:
        """The variants that take the calls, joined by +."""
        return None if self.config is None else self.config[0]

    def clients(self) -> Any:
        """What the handler talks to."""
        if self._clients is None:
            self._clients = clients.Aws(self.client)
        return self._clients

    def move(self, config: tuple[Any, ...], *, retain: bool = True) -> None:
        """UpdateEndpoint: refused while it would take a scaled variant away."""
        kept, self.config = (self.counts if retain else {}), config
        if (self.counts.keys() - self.begun.keys()) & self.targets.keys():
            raise AwsError("must be deregistered as scalable targets")
        self.counts = {name: kept.get(name, count) for name, count in self.begun.items()}

    def names(self, variant: str) -> dict[str, Any]:
        """Policy name → configuration, of a variant."""
        return {name: each["configuration"] for (of, name), each in self.policies.items() if of == variant}

    def respond(self, operation: str, given: dict[str, Any]) -> tuple[fakes.HttpResponse, dict[str, Any]]:
        """As FakeAws, with the failures of changes that a test asks for."""
        if operation in MUTATIONS:
            if self.fails_after is not None:
                self.fails_after -= 1
                if self.fails_after < 0:
                    self.fails_after = None
                    raise AwsError("InternalServiceException", "broken")
            self.log.append(operation)
        return super().respond(operation, given)

    def _DescribeStackEvents(self, **given: str) -> dict[str, Any]:
        page: dict[str, Any] = self.stack.answer(**given)
        return page

    def _DescribeEndpoint(self, EndpointName: str) -> dict[str, Any]:
        if self.config is None:
            raise AwsError("ValidationException", f'Could not find endpoint "{EndpointName}".')
        variants = [{"VariantName": name, "DesiredInstanceCount": count} for name, count in self.counts.items()]
        return {
            "EndpointArn": "arn",
            "EndpointStatus": self.status,
            "EndpointConfigName": "config",
            "ProductionVariants": variants,
        }

    def _AddTags(self, ResourceArn: str, Tags: list[dict[str, str]]) -> None:
        assert ResourceArn == "arn"
        self.endpoint_tags |= {tag["Key"]: tag["Value"] for tag in Tags}

    def _ListTags(self, ResourceArn: str, **_: Any) -> dict[str, Any]:
        assert ResourceArn == "arn"
        return {"Tags": [{"Key": key, "Value": value} for key, value in self.endpoint_tags.items()]}

    def _UpdateEndpointWeightsAndCapacities(
        self,
        EndpointName: str,
        DesiredWeightsAndCapacities: list[dict[str, Any]],
    ) -> None:
        [wanted] = DesiredWeightsAndCapacities
        assert EndpointName == ENDPOINT
        assert wanted["VariantName"] in self.counts
        if self.quota is not None and wanted["DesiredInstanceCount"] > self.quota:
            raise AwsError("ResourceLimitExceeded", "The account-level service limit is 2 Instances")
        self.counts[wanted["VariantName"]] = wanted["DesiredInstanceCount"]

    def _DescribeEndpointConfig(self, EndpointConfigName: str) -> dict[str, Any]:
        assert self.config is not None
        begun = self.begun.items()
        return {"ProductionVariants": [{"VariantName": name, "InitialInstanceCount": count} for name, count in begun]}

    def _RegisterScalableTarget(self, ResourceId: str, MinCapacity: int, MaxCapacity: int, **_: Any) -> None:
        variant = variant_of(ResourceId)
        if variant not in self.counts:
            raise AwsError("ValidationException", f"no live variant {variant}")
        self.targets[variant] = (MinCapacity, MaxCapacity)

    def _DeregisterScalableTarget(self, ResourceId: str, **_: Any) -> None:
        variant = variant_of(ResourceId)
        if variant not in self.targets:
            raise AwsError("ObjectNotFoundException", "no target")
        del self.targets[variant]
        for store in (self.policies, self.schedules):
            for key in [key for key in store if key[0] == variant]:
                del store[key]

    def _DescribeScalableTargets(self, ResourceIds: list[str], **_: Any) -> dict[str, Any]:
        return {"ScalableTargets": [{} for each in ResourceIds if variant_of(each) in self.targets]}

    def _PutScalingPolicy(
        self,
        ResourceId: str,
        PolicyName: str,
        TargetTrackingScalingPolicyConfiguration: dict[str, Any],
        **_: Any,
    ) -> None:
        variant = variant_of(ResourceId)
        if variant not in self.targets:
            raise AwsError("ObjectNotFoundException", "no target")
        arn = self.policies.get((variant, PolicyName), {}).get("arn", next(self._arns))
        self.policies[variant, PolicyName] = {"arn": arn, "configuration": TargetTrackingScalingPolicyConfiguration}

    def _DeleteScalingPolicy(self, ResourceId: str, PolicyName: str, **_: Any) -> None:
        if self.policies.pop((variant_of(ResourceId), PolicyName), None) is None:
            raise AwsError("ObjectNotFoundException", "no policy")

    def _DescribeScalingPolicies(self, ResourceId: str, NextToken: str = "0", **_: Any) -> dict[str, Any]:
        """In pages of one, with a member that nobody set, as AWS answers."""
        found = sorted(self.names(variant_of(ResourceId)).items())
        at = int(NextToken)
        page = [
            {"PolicyName": name, "TargetTrackingScalingPolicyConfiguration": {"DisableScaleIn": False, **each}}
            for name, each in found[at : at + 1]
        ]
        return {"ScalingPolicies": page, **({"NextToken": str(at + 1)} if at + 1 < len(found) else {})}

    def _PutScheduledAction(self, ResourceId: str, ScheduledActionName: str, **more: Any) -> None:
        if more["Schedule"].startswith("at(2020"):
            raise AwsError("ValidationException", "in the past")
        self.schedules[variant_of(ResourceId), ScheduledActionName] = more


def variant_of(resource: str) -> str:
    """The variant that a resource id names."""
    assert resource.startswith(f"endpoint/{ENDPOINT}/variant/")
    return resource.rpartition("/")[2]


@dataclass(frozen=True, kw_only=True)
class Template:
    """What a template says of a scaled endpoint."""

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
    def variants(self) -> list[str]:
        """The variants' names."""
        return self.variant.split("+")

    @property
    def text(self) -> str:
        """The property ``Scaling``."""
        first, *beside = map(self._scaling, self.variants)
        document = {"endpoint": ENDPOINT, **first, "routing": dict(self.routing)}
        return json.dumps({**document, "beside": beside} if beside else document)

    def _scaling(self, variant: str) -> dict[str, Any]:
        return {
            "variant": variant,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "initial": self.initial,
            "policies": self.policies,
            "schedules": [
                {"ScheduledActionName": when, "Schedule": when, "ScalableTargetAction": {"MinCapacity": 1}}
                for when in self.schedules
            ],
        }

    @property
    def properties(self) -> dict[str, str]:
        """Those of the three custom resources."""
        return {"Scaling": self.text, "Model": str(self.model)}


@dataclass(frozen=True, kw_only=True)
class Books:
    """What CloudFormation knows: the template in force, the config's variants and counts, and physical ids."""

    template: Template
    config: tuple[Any, ...]
    policies: dict[tuple[int, str], tuple[str, int]]
    attributes: dict[str, str]


class StackError(Exception):
    """A stack that ended in a state from which CloudFormation does not find back."""


class _FailedError(Exception):
    """A resource that failed."""


@dataclass(kw_only=True)
class Stack:
    """One serving stack."""

    aws: Any = field(default_factory=FakeScaling)
    backwards: bool = False  # whether a rollback goes from the last resource to the first
    tells_replaced: bool = False  # whether a resource whose physical id changed gets an Update in a rollback, too
    twice: bool = False  # whether every event is delivered twice
    books: Books | None = None

    def deploy(self, template: Template, *, fails: str = "", breaks_after: int = 0) -> bool:
        """Deploy; whether it succeeded. Where it did not, it is rolled back.

        Args:
            template: what is to be in force.
            fails: where: ``before``, ``endpoint``, ``cancelled`` (the endpoint moves all the same), ``silent``
                (SageMaker moves it back and says nothing), ``target``, ``policy``, ``after``, ``later``.
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
            data = deployment.act(event, self.aws.clients(), in_force=target.Wanted.of(in_force.text))
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
        if not replaced or self.stack.tells_replaced:
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
            self.aws.targets[variant] = limits
            self.leftover.append(lambda: self._delete_target(variant))
        for when in new.schedules:
            self.aws.schedules[variant, when] = {}

    def _update_target(self, variant: str, limits: tuple[int, int]) -> None:
        if variant not in self.aws.targets:
            raise StackError(f"the scalable target of {variant} is not found")
        self.aws.targets[variant] = limits

    def _delete_target(self, variant: str) -> None:
        if variant in self.aws.targets:
            self.aws._DeregisterScalableTarget(ResourceId=f"endpoint/{ENDPOINT}/variant/{variant}")

    def _policies(self) -> dict[tuple[int, str], tuple[str, int]]:
        """Logical id → (variant, ARN). CloudFormation knows policies by their ARNs alone."""
        known = dict(self.books.policies) if self.books else {}
        wanted = self.new.policies
        made = {}
        for (place, variant), (name, configuration) in itertools.product(enumerate(self.new.variants), wanted.items()):
            key = (place, name)
            if known.get(key, ("", 0))[0] == variant:
                made[key] = known[key]
                continue
            self.aws._PutScalingPolicy(
                ResourceId=f"endpoint/{ENDPOINT}/variant/{variant}",
                PolicyName=name,
                TargetTrackingScalingPolicyConfiguration=configuration,
            )
            made[key] = (variant, self.aws.policies[variant, name]["arn"])
            self.leftover.append(lambda gone=made[key]: self._delete_policy(gone))  # type: ignore[misc]
            if self.fails == "policy":
                raise _FailedError
        for key, gone in (self.books.policies if self.books else {}).items():
            if made.get(key) != gone:
                self.replaced.append(lambda gone=gone: self._delete_policy(gone))  # type: ignore[misc]
        return made

    def _delete_policy(self, gone: tuple[str, int]) -> None:
        for (variant, name), each in list(self.aws.policies.items()):
            if (variant, each["arn"]) == gone:
                del self.aws.policies[variant, name]


def check(stack: Stack, in_force: Template) -> None:
    """The live variants, and no other, are scaled by the policies and schedules of the template in force."""
    aws = stack.aws
    assert aws.live == in_force.variant
    assert set(aws.targets) == set(in_force.variants)
    for variant in in_force.variants:
        assert aws.names(variant) == in_force.policies
        assert {key[1] for key in aws.schedules if key[0] == variant} == set(in_force.schedules)
    assert {key[0] for key in [*aws.policies, *aws.schedules]} <= set(in_force.variants)


__all__ = ["Books", "FakeScaling", "Stack", "StackError", "Template", "check", "replace"]
