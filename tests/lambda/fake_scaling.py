"""SageMaker and Application Auto Scaling in memory, as far as one endpoint with one variant goes."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests import fake_aws as fakes

services: Any = importlib.import_module("lambda.scaling.services")

ENDPOINT = "dev-digits"
MUTATIONS = frozenset({"RegisterScalableTarget", "DeregisterScalableTarget", "PutScalingPolicy", "DeleteScalingPolicy"})


@dataclass
class FakeScaling(fakes.FakeAws):
    """An endpoint with one variant, and what is registered for it.

    Attributes:
        config: (variant, the count that it began with) of the endpoint's config; None: no endpoint.
        count: instances of the live variant.
        status: the endpoint's.
        targets: variant → limits. ``policies`` and ``schedules``: (variant, name) → request.
        fails_after: changes until Application Auto Scaling answers with an error, once; None: never.
        concurrent: so many changes are refused because another one is under way.
        quota: the most instances that the account may have; None: as many as it wants.
        log: operations that changed something.
    """

    config: tuple[str, int] | None = None
    count: int = 0
    status: str = "InService"
    targets: dict[str, tuple[int, int]] = field(default_factory=dict)
    policies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    schedules: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    endpoint_tags: dict[str, str] = field(default_factory=dict)
    fails_after: int | None = None
    concurrent: int = 0
    quota: int | None = None
    log: list[str] = field(default_factory=list)
    _arns: Iterator[int] = field(default_factory=itertools.count)
    _clients: Any = None

    @property
    def live(self) -> str | None:
        """The variant that takes the calls."""
        return None if self.config is None else self.config[0]

    def clients(self) -> Any:
        """What the handler talks to."""
        if self._clients is None:
            self._clients = services.Aws(self.client("sagemaker"), self.client("application-autoscaling"))
        return self._clients

    def move(self, config: tuple[str, int], *, retain: bool = True) -> None:
        """UpdateEndpoint: refused while it would take a scaled variant away."""
        if self.config is not None and config[0] != self.config[0] and self.config[0] in self.targets:
            raise fakes.AwsError("must be deregistered as scalable targets")
        if self.config is None or config[0] != self.config[0] or not retain:
            self.count = config[1]
        self.config = config

    def names(self, variant: str) -> dict[str, Any]:
        """Policy name → configuration, of a variant."""
        return {name: each["configuration"] for (of, name), each in self.policies.items() if of == variant}

    def respond(self, operation: str, given: dict[str, Any]) -> tuple[fakes.HttpResponse, dict[str, Any]]:
        """As FakeAws, with the failures of changes that a test asks for."""
        if operation in MUTATIONS:
            if self.concurrent:
                self.concurrent -= 1
                raise fakes.AwsError("ConcurrentUpdateException", "pending update")
            if self.fails_after is not None:
                self.fails_after -= 1
                if self.fails_after < 0:
                    self.fails_after = None
                    raise fakes.AwsError("InternalServiceException", "broken")
            self.log.append(operation)
        return super().respond(operation, given)

    def _DescribeEndpoint(self, EndpointName: str) -> dict[str, Any]:
        if self.config is None:
            raise fakes.AwsError("ValidationException", f'Could not find endpoint "{EndpointName}".')
        variant = {"VariantName": self.config[0], "DesiredInstanceCount": self.count}
        return {
            "EndpointArn": "arn",
            "EndpointStatus": self.status,
            "EndpointConfigName": "config",
            "ProductionVariants": [variant],
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
        assert (EndpointName, wanted["VariantName"]) == (ENDPOINT, self.live)
        if self.quota is not None and wanted["DesiredInstanceCount"] > self.quota:
            raise fakes.AwsError("ResourceLimitExceeded", "The account-level service limit is 2 Instances")
        self.count = wanted["DesiredInstanceCount"]

    def _DescribeEndpointConfig(self, EndpointConfigName: str) -> dict[str, Any]:
        assert self.config is not None
        return {"ProductionVariants": [{"VariantName": self.config[0], "InitialInstanceCount": self.config[1]}]}

    def _RegisterScalableTarget(self, ResourceId: str, MinCapacity: int, MaxCapacity: int, **_: Any) -> None:
        variant = variant_of(ResourceId)
        if variant != self.live:
            raise fakes.AwsError("ValidationException", f"no live variant {variant}")
        self.targets[variant] = (MinCapacity, MaxCapacity)

    def _DeregisterScalableTarget(self, ResourceId: str, **_: Any) -> None:
        variant = variant_of(ResourceId)
        if variant not in self.targets:
            raise fakes.AwsError("ObjectNotFoundException", "no target")
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
            raise fakes.AwsError("ObjectNotFoundException", "no target")
        arn = self.policies.get((variant, PolicyName), {}).get("arn", next(self._arns))
        self.policies[variant, PolicyName] = {"arn": arn, "configuration": TargetTrackingScalingPolicyConfiguration}

    def _DeleteScalingPolicy(self, ResourceId: str, PolicyName: str, **_: Any) -> None:
        if self.policies.pop((variant_of(ResourceId), PolicyName), None) is None:
            raise fakes.AwsError("ObjectNotFoundException", "no policy")

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
            raise fakes.AwsError("ValidationException", "in the past")
        self.schedules[variant_of(ResourceId), ScheduledActionName] = more


def variant_of(resource: str) -> str:
    """The variant that a resource id names."""
    assert resource.startswith(f"endpoint/{ENDPOINT}/variant/")
    return resource.rpartition("/")[2]
