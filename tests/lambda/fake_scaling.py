"""SageMaker and Application Auto Scaling in memory, as far as one endpoint with one variant goes.

The clients are boto3's own, so that every request is checked against the service's model; only the sending is replaced.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3

fakes: Any = importlib.import_module("tests.lambda.fake_aws")  # `lambda` is a word of the language
services: Any = importlib.import_module("lambda.scaling.services")

ENDPOINT = "dev-digits"
MUTATIONS = frozenset({"RegisterScalableTarget", "DeregisterScalableTarget", "PutScalingPolicy", "DeleteScalingPolicy"})


@dataclass
class FakeScaling:
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
    tags: dict[str, str] = field(default_factory=dict)
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
            self._clients = services.Aws(self._client("sagemaker"), self._client("application-autoscaling"))
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

    def _client(self, service: str) -> Any:
        client: Any = boto3.client(
            service, region_name="us-east-1", aws_access_key_id="testing", aws_secret_access_key="testing"
        )
        name = client.meta.service_model.service_id.hyphenize()
        client.meta.events.register(f"before-parameter-build.{name}", self._remember)
        client.meta.events.register(f"before-call.{name}", self._answer)
        return client

    def _remember(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        context["given"] = dict(params)

    def _answer(self, model: Any, context: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        if model.name in MUTATIONS:
            if self.concurrent:
                self.concurrent -= 1
                return _refusal("ConcurrentUpdateException", "pending update")
            if self.fails_after is not None:
                self.fails_after -= 1
                if self.fails_after < 0:
                    self.fails_after = None
                    return _refusal("InternalServiceException", "broken")
            self.log.append(model.name)
        try:
            parsed = getattr(self, f"_{model.name}")(**context["given"])
        except fakes.AwsError as error:
            return _refusal(*error.args)
        return fakes.Answer(200), {**(parsed or {}), "ResponseMetadata": {}}

    def _DescribeEndpoint(self, EndpointName: str) -> dict[str, Any]:  # noqa: N802, N803 - as the API spells them
        if self.config is None:
            raise fakes.AwsError("ValidationException", f'Could not find endpoint "{EndpointName}".')
        variant = {"VariantName": self.config[0], "DesiredInstanceCount": self.count}
        return {
            "EndpointArn": "arn",
            "EndpointStatus": self.status,
            "EndpointConfigName": "config",
            "ProductionVariants": [variant],
        }

    def _AddTags(self, ResourceArn: str, Tags: list[dict[str, str]]) -> None:  # noqa: N802, N803
        assert ResourceArn == "arn"
        self.tags |= {tag["Key"]: tag["Value"] for tag in Tags}

    def _ListTags(self, ResourceArn: str, **_: Any) -> dict[str, Any]:  # noqa: N802, N803
        assert ResourceArn == "arn"
        return {"Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()]}

    def _UpdateEndpointWeightsAndCapacities(  # noqa: N802
        self,
        EndpointName: str,  # noqa: N803
        DesiredWeightsAndCapacities: list[dict[str, Any]],  # noqa: N803
    ) -> None:
        [wanted] = DesiredWeightsAndCapacities
        assert (EndpointName, wanted["VariantName"]) == (ENDPOINT, self.live)
        if self.quota is not None and wanted["DesiredInstanceCount"] > self.quota:
            raise fakes.AwsError("ResourceLimitExceeded", "The account-level service limit is 2 Instances")
        self.count = wanted["DesiredInstanceCount"]

    def _DescribeEndpointConfig(self, EndpointConfigName: str) -> dict[str, Any]:  # noqa: N802, N803
        assert self.config is not None
        return {"ProductionVariants": [{"VariantName": self.config[0], "InitialInstanceCount": self.config[1]}]}

    def _RegisterScalableTarget(self, ResourceId: str, MinCapacity: int, MaxCapacity: int, **_: Any) -> None:  # noqa: N802, N803
        variant = variant_of(ResourceId)
        if variant != self.live:
            raise fakes.AwsError("ValidationException", f"no live variant {variant}")
        self.targets[variant] = (MinCapacity, MaxCapacity)

    def _DeregisterScalableTarget(self, ResourceId: str, **_: Any) -> None:  # noqa: N802, N803
        variant = variant_of(ResourceId)
        if variant not in self.targets:
            raise fakes.AwsError("ObjectNotFoundException", "no target")
        del self.targets[variant]
        for store in (self.policies, self.schedules):
            for key in [key for key in store if key[0] == variant]:
                del store[key]

    def _DescribeScalableTargets(self, ResourceIds: list[str], **_: Any) -> dict[str, Any]:  # noqa: N802, N803
        return {"ScalableTargets": [{} for each in ResourceIds if variant_of(each) in self.targets]}

    def _PutScalingPolicy(  # noqa: N802
        self,
        ResourceId: str,  # noqa: N803
        PolicyName: str,  # noqa: N803
        TargetTrackingScalingPolicyConfiguration: dict[str, Any],  # noqa: N803
        **_: Any,
    ) -> None:
        variant = variant_of(ResourceId)
        if variant not in self.targets:
            raise fakes.AwsError("ObjectNotFoundException", "no target")
        arn = self.policies.get((variant, PolicyName), {}).get("arn", next(self._arns))
        self.policies[variant, PolicyName] = {"arn": arn, "configuration": TargetTrackingScalingPolicyConfiguration}

    def _DeleteScalingPolicy(self, ResourceId: str, PolicyName: str, **_: Any) -> None:  # noqa: N802, N803
        if self.policies.pop((variant_of(ResourceId), PolicyName), None) is None:
            raise fakes.AwsError("ObjectNotFoundException", "no policy")

    def _DescribeScalingPolicies(self, ResourceId: str, NextToken: str = "0", **_: Any) -> dict[str, Any]:  # noqa: N802, N803
        """In pages of one, with a member that nobody set, as AWS answers."""
        found = sorted(self.names(variant_of(ResourceId)).items())
        at = int(NextToken)
        page = [
            {"PolicyName": name, "TargetTrackingScalingPolicyConfiguration": {"DisableScaleIn": False, **each}}
            for name, each in found[at : at + 1]
        ]
        return {"ScalingPolicies": page, **({"NextToken": str(at + 1)} if at + 1 < len(found) else {})}

    def _PutScheduledAction(self, ResourceId: str, ScheduledActionName: str, **more: Any) -> None:  # noqa: N802, N803
        if more["Schedule"].startswith("at(2020"):
            raise fakes.AwsError("ValidationException", "in the past")
        self.schedules[variant_of(ResourceId), ScheduledActionName] = more


def variant_of(resource: str) -> str:
    """The variant that a resource id names."""
    assert resource.startswith(f"endpoint/{ENDPOINT}/variant/")
    return resource.rpartition("/")[2]


def _refusal(code: str, message: str = "refused") -> tuple[Any, dict[str, Any]]:
    return fakes.Answer(400), {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {}}
