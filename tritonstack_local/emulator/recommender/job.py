"""A job of Inference Recommender: what was asked for, how far it is, and the answer that is constructed for it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from tritonstack.catalogue.prices import hosting_price
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch.caller_time import ahead_seconds
from tritonstack_local.emulator.recommender.checks import seconds_of
from tritonstack_local.emulator.sagemaker.records import Kind, Record

JOB = Kind(noun="Job", label="inference recommendations job", arn_part="inference-recommendations-job")
DEFAULT_SECONDS = 45 * 60.0
"""Of a default job ("within 45 minutes", developer guide: "Amazon SageMaker Inference Recommender")."""
CONSTRUCTED = "constructed-by-the-local-aws"
"""How the id of every recommendation begins: no endpoint was made and nothing was measured."""
LATENCY_MS = 100
LONGEST_PREFIX = 40


@dataclass(kw_only=True)
class RecommendationJob(Record):
    """A job. Guarded by the lock of the SageMaker state.

    Attributes:
        status: PENDING, IN_PROGRESS, COMPLETED, FAILED, STOPPING or STOPPED.
        region: where it runs, whose prices count.
        started, ended: when calls began and ended, seconds since the epoch.
        reason: of a failed job.
    """

    created: float = field(default_factory=clock.now)
    modified: float = field(default_factory=clock.now)
    status: str = "PENDING"
    region: str
    started: float | None = None
    ended: float | None = None
    reason: str | None = None

    @property
    def instance_types(self) -> list[str]:
        """What is recommended or tested."""
        configured = self.request["InputConfig"].get("EndpointConfigurations")
        return [one["InstanceType"] for one in configured] if configured else ["ml.g4dn.xlarge", "ml.g5.xlarge"]

    @property
    def seconds(self) -> float:
        """How long its calls take."""
        pattern = self.request["InputConfig"].get("TrafficPattern")
        return sum(seconds_of(pattern)) if pattern else DEFAULT_SECONDS

    def made(self, instance_type: str) -> str:
        """The name of endpoint, config and model for one instance type: the job's, cut, and digits of its own."""
        digits = hashlib.sha256(f"{self.name} {instance_type}".encode()).hexdigest()[:8]
        return f"{self.name[:LONGEST_PREFIX]}-{digits}"

    def become(self, status: str, *, reason: str | None = None) -> None:
        """Change its status."""
        self.status, self.reason, self.modified = status, reason, clock.now()
        if status == "IN_PROGRESS":
            self.started = self.modified
        if status in ("COMPLETED", "FAILED", "STOPPED"):
            self.ended = self.modified

    def describe(self) -> dict[str, Any]:
        """DescribeInferenceRecommendationsJob's answer."""
        answer: dict[str, Any] = {
            **{
                name: self.request[name]
                for name in ("JobName", "JobDescription", "JobType", "RoleArn", "InputConfig", "StoppingConditions")
                if name in self.request
            },
            "JobArn": self.arn,
            "Status": self.status,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
        }
        if self.ended is not None:
            answer["CompletionTime"] = self.ended
        if self.reason is not None:
            answer["FailureReason"] = self.reason
        if self.status == "COMPLETED":
            answer["InferenceRecommendations"] = [
                self._recommendation(place, name) for place, name in enumerate(self.instance_types)
            ]
        return answer

    def _recommendation(self, place: int, instance_type: str) -> dict[str, Any]:
        """What a closed loop of users would come to at a latency that is the same for everybody: constructed."""
        rate = round(self._users() * 60_000 / LATENCY_MS)
        metrics: dict[str, Any] = {
            "MaxInvocations": rate,
            "ModelLatency": LATENCY_MS,
            "CpuUtilization": 50.0,
            "MemoryUtilization": 25.0,
            "ModelSetupTime": 1,
        }
        price = hosting_price(instance_type=instance_type, region=self.region)
        if price is not None:
            metrics |= {"CostPerHour": price.usd_per_hour, "CostPerInference": price.usd_per_hour / (rate * 60)}
        name = self.made(instance_type)
        return {
            "RecommendationId": f"{CONSTRUCTED}/{place}",
            "Metrics": metrics,
            "EndpointConfiguration": {
                "EndpointName": name,
                "VariantName": name,
                "InstanceType": instance_type,
                "InitialInstanceCount": 1,
            },
            "ModelConfiguration": {},
            # In the time that CloudWatch's figures are asked for in, also where the clock was moved.
            "InvocationStartTime": (self.started or 0.0) - ahead_seconds(),
            "InvocationEndTime": (self.ended or 0.0) - ahead_seconds(),
        }

    def _users(self) -> float:
        users = 1.0
        for phase in self.request["InputConfig"].get("TrafficPattern", {}).get("Phases", []):
            grown = phase.get("SpawnRate", 0) * phase.get("DurationInSeconds", 0) / 60
            users = max(users, phase.get("InitialNumberOfUsers", 1) + grown)
        return users
