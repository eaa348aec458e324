"""SageMaker Inference Recommender: model packages, and jobs whose figures are constructed."""

from __future__ import annotations

import hashlib
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError
from ministack.core.concurrency import spawn_background
from ministack.core.responses import get_account_id, get_region

from tritonstack import aws_names
from tritonstack.catalogue.prices import hosting_price
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import metrics
from tritonstack_local.emulator.cloudwatch.metrics import ahead_seconds
from tritonstack_local.emulator.processing.container import s3
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.records import (
    API,
    MODEL,
    Kind,
    Record,
    Records,
    check_execution_role,
    refused,
)
from tritonstack_local.emulator.sagemaker.state import SageMakerState, store

Request = dict[str, Any]
GROUP = Kind(noun="ModelPackageGroup", label="model package group", arn_part="model-package-group")


@dataclass(kw_only=True)
class Group(Record):
    """A group: its packages by version, and how many there have been."""

    packages: dict[int, Record]
    last: int = 0


class ModelPackages:
    """The operations on groups and on versioned packages; packages without a group are refused."""

    def __init__(self, state: SageMakerState) -> None:
        """Works under the lock of ``state``."""
        self._state = state
        self._groups: Records[Group] = Records(GROUP)

    def create_group(self, request: Request) -> dict[str, Any]:
        """CreateModelPackageGroup."""
        name = request["ModelPackageGroupName"]
        group = Group(name=name, arn=GROUP.arn(name), request=request, packages={})
        with self._state.changed:
            self._groups.add(group)
            store(self._state, group.arn, request.get("Tags", []))
        return {"ModelPackageGroupArn": group.arn}

    def describe_group(self, request: Request) -> dict[str, Any]:
        """DescribeModelPackageGroup."""
        group = self._groups.get(request["ModelPackageGroupName"])
        return {
            "ModelPackageGroupName": group.name,
            "ModelPackageGroupArn": group.arn,
            "CreationTime": group.created,
            "CreatedBy": {},
            "ModelPackageGroupStatus": "Completed",
            **_kept(group.request, "ModelPackageGroupDescription"),
        }

    def delete_group(self, request: Request) -> None:
        """DeleteModelPackageGroup: refused while it has packages."""
        with self._state.changed:
            group = self._groups.get(request["ModelPackageGroupName"])
            if group.packages:
                sentence = f"Model Package Group ({group.arn}) cannot be deleted as it still contains Model Packages."
                raise refused(sentence, "DeleteModelPackageGroup", code="ConflictException")
            self._groups.remove(group.name)
            self._state.tags.pop(group.arn, None)

    def create(self, request: Request) -> dict[str, Any]:
        """CreateModelPackage, of a version: one more than the last of its group."""
        if "ModelPackageGroupName" not in request:
            raise RefusedError(
                "ValidationException",
                "The local AWS keeps versioned packages alone: ModelPackageGroupName is missing.",
                source="tritonstack_local.emulator.recommender",
            )
        with self._state.changed:
            group = self._groups.get(request["ModelPackageGroupName"])
            group.last += 1
            arn = f"arn:aws:sagemaker:{get_region()}:{get_account_id()}:model-package/{group.name.lower()}/{group.last}"
            group.packages[group.last] = Record(name=group.name, arn=arn, request=request, created=clock.now())
        return {"ModelPackageArn": arn}

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeModelPackage, by ARN."""
        version, package = self._find(request["ModelPackageName"])
        members = (
            "ModelPackageDescription",
            "InferenceSpecification",
            "CustomerMetadataProperties",
            "Domain",
            "Task",
            "SamplePayloadUrl",
        )
        return {
            "ModelPackageName": package.name,
            **_summary(version, package),
            **_kept(package.request, *members),
            "ModelPackageStatusDetails": {"ValidationStatuses": []},
        }

    def delete(self, request: Request) -> None:
        """DeleteModelPackage, by ARN."""
        with self._state.changed:
            version, package = self._find(request["ModelPackageName"])
            self._groups.get(package.name).packages.pop(version)

    def list(self, request: Request) -> dict[str, Any]:
        """ListModelPackages of a group: newest first, in one page."""
        with self._state.changed:
            found = sorted(self._groups.get(request["ModelPackageGroupName"]).packages.items(), reverse=True)
        return {"ModelPackageSummaryList": [_summary(version, package) for version, package in found]}

    def find(self, arn: str) -> Record:
        """The package with this ARN; raises ``RefusedError`` where there is none."""
        return self._find(arn)[1]

    def clear(self) -> None:
        """Forget everything."""
        self._groups.clear()

    def _find(self, arn: str) -> tuple[int, Record]:
        for group in self._groups:
            for version, package in group.packages.items():
                if package.arn == arn.lower():
                    return version, package
        raise RefusedError("ValidationException", f"ModelPackage {arn} does not exist.", source=API)


def _summary(version: int, package: Record) -> dict[str, Any]:
    return {
        "ModelPackageGroupName": package.name,
        "ModelPackageVersion": version,
        "ModelPackageArn": package.arn,
        "CreationTime": package.created,
        "ModelPackageStatus": "Completed",
    }


def _kept(request: Request, *names: str) -> dict[str, Any]:
    return {name: request[name] for name in names if name in request}


def seconds_of(pattern: dict[str, Any]) -> list[float]:
    """How long each phase takes."""
    return [float(phase.get("DurationInSeconds", 120)) for phase in pattern.get("Phases", [])]


JOB = Kind(noun="Job", label="inference recommendations job", arn_part="inference-recommendations-job")
DEFAULT_SECONDS = 45 * 60.0
"""Of a default job ("within 45 minutes", developer guide: "Amazon SageMaker Inference Recommender")."""
CONSTRUCTED = "constructed-by-the-local-aws"
"""How the id of every recommendation begins: no endpoint was made and nothing was measured."""
LATENCY_MS, INVOCATIONS = 100, 600  # of one user, in a minute
LONGEST_PREFIX = 40


@dataclass(kw_only=True)
class RecommendationJob(Record):
    """A job. Guarded by the lock of the SageMaker state."""

    created: float = field(default_factory=clock.now)
    modified: float = field(default_factory=clock.now)
    status: str = "PENDING"  # PENDING, IN_PROGRESS, COMPLETED, FAILED, STOPPING or STOPPED
    region: str  # where it runs, whose prices count
    # when calls began and ended, seconds since the epoch
    started: float | None = None
    ended: float | None = None
    reason: str | None = None  # of a failed job

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
        members = ("JobName", "JobDescription", "JobType", "RoleArn", "InputConfig", "StoppingConditions")
        answer: dict[str, Any] = {
            **_kept(self.request, *members),
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
        """The same figures for everybody: constructed."""
        metrics: dict[str, Any] = {
            "MaxInvocations": INVOCATIONS,
            "ModelLatency": LATENCY_MS,
            "CpuUtilization": 50.0,
            "MemoryUtilization": 25.0,
            "ModelSetupTime": 1,
        }
        price = hosting_price(instance_type=instance_type, region=self.region)
        if price is not None:
            metrics |= {"CostPerHour": price.usd_per_hour, "CostPerInference": price.usd_per_hour / (INVOCATIONS * 60)}
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


# PENDING → IN_PROGRESS → COMPLETED, as long as its phases take by the clock of the local AWS; STOPPING → STOPPED where
# it is stopped; FAILED where archive or payload is not there. The answers are constructed: no endpoint is made,
# nothing is called. What a job of the service leaves in the account, its model, is left here too.
PENDING_SECONDS = 0.5
"""Real seconds: short enough for tests, long enough to be seen."""
SHARES_MS = (0.8, 0.9, 1.0, 1.1, 1.2)


class RecommendationJobs:
    """The operations on jobs. A job is never deleted, so its name is taken for ever."""

    def __init__(self, state: SageMakerState, packages: ModelPackages) -> None:
        """Works on ``state``; ``packages``: what jobs are of."""
        self._state = state
        self._packages = packages
        self._jobs: Records[RecommendationJob] = Records(JOB)

    def create(self, request: Request) -> dict[str, Any]:
        """CreateInferenceRecommendationsJob: PENDING, and on a thread of its own from then on."""
        check_execution_role(request["RoleArn"])
        package = self._packages.find(request["InputConfig"].get("ModelPackageVersionArn", ""))
        name = request["JobName"]
        job = RecommendationJob(name=name, arn=JOB.arn(name), request=request, region=get_region())
        with self._state.changed:
            self._jobs.add(job)
            store(self._state, job.arn, request.get("Tags", []))
        spawn_background(self._run, job, package, thread_name=f"recommender-{name}")
        return {"JobArn": job.arn}

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeInferenceRecommendationsJob."""
        with self._state.changed:
            return self._get(request).describe()

    def stop(self, request: Request) -> None:
        """StopInferenceRecommendationsJob."""
        with self._state.changed:
            job = self._get(request)
            if job.status not in ("PENDING", "IN_PROGRESS"):
                sentence = f"The request was rejected because the job is in status {job.status}."
                raise refused(sentence, "StopInferenceRecommendationsJob")
            job.become("STOPPING")
        clock.wake()

    def clear(self) -> None:
        """Forget everything; running jobs find themselves stopped."""
        with self._state.changed:
            for job in self._jobs.everywhere():
                job.status = "STOPPING"
            self._jobs.clear()
        clock.wake()

    def _get(self, request: Request) -> RecommendationJob:
        found = self._jobs.find(request["JobName"])
        if found is None:
            sentence = f"Inference recommendations job {request['JobName']} does not exist."
            raise refused(sentence, "DescribeInferenceRecommendationsJob", code="ResourceNotFound")
        return found

    def _run(self, job: RecommendationJob, package: Record) -> None:
        try:
            self._wait(job, PENDING_SECONDS)
            reason = _missing(package)
            if job.status == "PENDING" and reason is None:
                with self._state.changed:
                    job.become("IN_PROGRESS")
                self._leave_models(job)
                self._wait(job, job.seconds)
        except Exception as error:  # noqa: BLE001  a fault of the emulator's must end the job, or its callers wait for ever
            reason = f"InternalServerError: {error!r}"
        with self._state.changed:
            if job.status == "STOPPING":
                job.become("STOPPED")
            elif reason is not None:
                job.become("FAILED", reason=reason)
            else:
                _write_metrics(job)
                job.become("COMPLETED")

    def _wait(self, job: RecommendationJob, seconds: float) -> None:
        clock.wait_for(lambda: job.status == "STOPPING", clock.deadline(seconds))

    def _leave_models(self, job: RecommendationJob) -> None:
        with self._state.changed:
            for instance_type in job.instance_types:
                name = job.made(instance_type)
                record = Record(name=name, arn=MODEL.arn(name), request={"ModelName": name})
                self._state.models.add(record)
                store(self._state, record.arn, [])


def _missing(package: Record) -> str | None:
    """FailureReason for an S3 object of a package that cannot be read; None if all can."""
    containers = package.request.get("InferenceSpecification", {}).get("Containers", [])
    for url in [package.request.get("SamplePayloadUrl"), *(one.get("ModelDataUrl") for one in containers)]:
        parts = urllib.parse.urlsplit(url or "")
        try:
            s3().head_object(Bucket=parts.netloc, Key=parts.path.removeprefix("/"))
        except ClientError as error:
            return f"ClientError: {url} cannot be read: {error}"
    return None


def _write_metrics(job: RecommendationJob) -> None:
    """The endpoint's latencies, as CloudWatch has them of a real one: constructed, in microseconds."""
    for instance_type in job.instance_types:
        name = job.made(instance_type)
        dimensions = aws_names.variant_dimensions(name, name)
        for share in SHARES_MS:
            metrics.record(
                aws_names.SAGEMAKER, aws_names.MODEL_LATENCY, LATENCY_MS * 1000 * share, "Microseconds", dimensions
            )
