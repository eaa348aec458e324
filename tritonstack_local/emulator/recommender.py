"""SageMaker Inference Recommender: model packages, and jobs whose figures are constructed."""

from __future__ import annotations

import hashlib
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from tritonstack import aws_names
from tritonstack.catalogue.prices import hosting_price
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import metrics
from tritonstack_local.emulator.iam.service_calls import job_network_refusal
from tritonstack_local.emulator.ministack_adapter import s3
from tritonstack_local.emulator.ministack_adapter.core import get_region
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.records import (
    API,
    MODEL,
    Record,
    RecordKind,
    Records,
    check_execution_role,
    refused,
)
from tritonstack_local.emulator.sagemaker.state import SageMakerState, store

Request = dict[str, Any]
GROUP = RecordKind(noun="ModelPackageGroup", label="model package group", arn_part="model-package-group")
PACKAGE = RecordKind(noun="ModelPackage", label="model package", arn_part="model-package")


@dataclass(kw_only=True)
class Group(Record):
    """A group, and how many packages there have been in it."""

    last: int = 0


class ModelPackages:
    """The operations on groups and on versioned packages; packages without a group are refused."""

    def __init__(self, state: SageMakerState) -> None:
        self._state = state
        self._groups: Records[Group] = Records(GROUP)
        self._packages: Records[Record] = Records(PACKAGE)  # by group/version

    def create_model_package_group(self, request: Request) -> dict[str, Any]:
        name = request["ModelPackageGroupName"]
        group = Group(name=name, arn=GROUP.arn(name), request=request, created=clock.now())
        with self._state.changed:
            self._groups.add(group)
            store(self._state, group.arn, request.get("Tags", []))
        return {"ModelPackageGroupArn": group.arn}

    def describe_model_package_group(self, request: Request) -> dict[str, Any]:
        group = self._groups.get(request["ModelPackageGroupName"])
        return {
            "ModelPackageGroupName": group.name,
            "ModelPackageGroupArn": group.arn,
            "CreationTime": group.created,
            "CreatedBy": {},
            "ModelPackageGroupStatus": "Completed",
            **_kept(group.request, "ModelPackageGroupDescription"),
        }

    def delete_model_package_group(self, request: Request) -> None:
        """DeleteModelPackageGroup: refused while it has packages."""
        with self._state.changed:
            group = self._groups.get(request["ModelPackageGroupName"])
            if self._of(group):
                sentence = f"Model Package Group ({group.arn}) cannot be deleted as it still contains Model Packages."
                raise refused(sentence, "DeleteModelPackageGroup", code="ConflictException")
            self._groups.remove(group.name)
            self._state.tags.pop(group.arn, None)

    def create_model_package(self, request: Request) -> dict[str, Any]:
        """CreateModelPackage, of a version: one more than the last of its group."""
        if "ModelPackageGroupName" not in request:
            sentence = "The local AWS keeps versioned packages alone: ModelPackageGroupName is missing."
            raise RefusedError("ValidationException", sentence, source="tritonstack_local.emulator.recommender")
        with self._state.changed:
            group = self._groups.get(request["ModelPackageGroupName"])
            group.last += 1
            name = f"{group.name}/{group.last}"
            self._packages.add(Record(name=name, arn=PACKAGE.arn(name), request=request, created=clock.now()))
        return {"ModelPackageArn": PACKAGE.arn(name)}

    def describe_model_package(self, request: Request) -> dict[str, Any]:
        """DescribeModelPackage, by ARN."""
        package = self.find(request["ModelPackageName"])
        members = ("ModelPackageDescription", "InferenceSpecification", "CustomerMetadataProperties", "Domain", "Task")
        return {
            **_summary(package),
            "ModelPackageName": package.name.partition("/")[0],
            **_kept(package.request, *members, "SamplePayloadUrl"),
            "ModelPackageStatusDetails": {"ValidationStatuses": []},
        }

    def delete_model_package(self, request: Request) -> None:
        """DeleteModelPackage, by ARN."""
        with self._state.changed:
            self._packages.remove(self.find(request["ModelPackageName"]).name)

    def list_model_packages(self, request: Request) -> dict[str, Any]:
        """ListModelPackages of a group: newest first, in one page."""
        with self._state.changed:
            found = self._of(self._groups.get(request["ModelPackageGroupName"]))
        return {"ModelPackageSummaryList": [_summary(package) for package in reversed(found)]}

    def find(self, arn: str) -> Record:
        """The package with this ARN; raises ``RefusedError`` where there is none."""
        found = self._packages.by_arn(arn.lower())
        if found is None:
            raise RefusedError("ValidationException", f"ModelPackage {arn} does not exist.", source=API)
        return found

    def _of(self, group: Group) -> list[Record]:
        """The packages of a group, the oldest first."""
        return [package for package in self._packages if package.name.rpartition("/")[0] == group.name]


def _summary(package: Record) -> dict[str, Any]:
    group, _, version = package.name.rpartition("/")
    return {
        "ModelPackageGroupName": group,
        "ModelPackageVersion": int(version),
        "ModelPackageArn": package.arn,
        "CreationTime": package.created,
        "ModelPackageStatus": "Completed",
    }


def _kept(request: Request, *names: str) -> dict[str, Any]:
    return {name: request[name] for name in names if name in request}


JOB = RecordKind(noun="Job", label="inference recommendations job", arn_part="inference-recommendations-job")
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
    package: Record
    status: str = "PENDING"  # PENDING, IN_PROGRESS, COMPLETED, FAILED, STOPPING or STOPPED
    region: str  # where it runs, whose prices count
    # when requests began and ended, seconds since the epoch
    started: float | None = None
    ended: float | None = None
    reason: str | None = None  # of a failed job

    @property
    def instance_types(self) -> list[str]:
        """The recommended or tested instance types."""
        configured = self.request["InputConfig"].get("EndpointConfigurations")
        return [one["InstanceType"] for one in configured] if configured else ["ml.g4dn.xlarge", "ml.g5.xlarge"]

    @property
    def seconds(self) -> float:
        """Duration of its requests."""
        pattern = self.request["InputConfig"].get("TrafficPattern")
        phases = pattern.get("Phases", []) if pattern else [{"DurationInSeconds": DEFAULT_SECONDS}]
        return sum(float(phase.get("DurationInSeconds", 120)) for phase in phases)

    def made(self, instance_type: str) -> str:
        """The name of endpoint, config and model for one instance type: the job's, cut, and digits of its own."""
        digits = hashlib.sha256(f"{self.name} {instance_type}".encode()).hexdigest()[:8]
        return f"{self.name[:LONGEST_PREFIX]}-{digits}"

    def become(self, status: str, *, at: float, reason: str | None = None) -> None:
        """Change its status."""
        self.status, self.reason, self.modified = status, reason, at
        if status == "IN_PROGRESS":
            self.started = self.modified
        if status in ("COMPLETED", "FAILED", "STOPPED"):
            self.ended = self.modified

    def describe(self) -> dict[str, Any]:
        """DescribeInferenceRecommendationsJob's response."""
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
        """Constructed figures, the same for every job."""
        figures: dict[str, Any] = {
            "MaxInvocations": INVOCATIONS,
            "ModelLatency": LATENCY_MS,
            "CpuUtilization": 50.0,
            "MemoryUtilization": 25.0,
            "ModelSetupTime": 1,
        }
        price = hosting_price(instance_type=instance_type, region=self.region)
        if price is not None:
            figures |= {"CostPerHour": price.usd_per_hour, "CostPerInference": price.usd_per_hour / (INVOCATIONS * 60)}
        name = self.made(instance_type)
        return {
            "RecommendationId": f"{CONSTRUCTED}/{place}",
            "Metrics": figures,
            "EndpointConfiguration": {
                "EndpointName": name,
                "VariantName": name,
                "InstanceType": instance_type,
                "InitialInstanceCount": 1,
            },
            "ModelConfiguration": {},
            # In the time that CloudWatch's figures are asked for in, also where the clock was moved.
            "InvocationStartTime": (self.started or 0.0) - metrics.ahead_seconds(),
            "InvocationEndTime": (self.ended or 0.0) - metrics.ahead_seconds(),
        }


# PENDING → IN_PROGRESS → COMPLETED, as long as its phases take by the clock of the local AWS; STOPPING → STOPPED where
# it is stopped; FAILED where archive or payload is not there. The responses are constructed: no endpoint is made,
# nothing is called. What a job of the service leaves in the account, its model, is left here too. A job comes to where
# it should be by now whenever it is looked at.
PENDING_SECONDS = 0.5
"""Short enough for tests, long enough to be seen."""
SHARES_MS = (0.8, 0.9, 1.0, 1.1, 1.2)


class RecommendationJobs:
    """The operations on jobs. A job is never deleted, so its name is taken for ever."""

    def __init__(self, state: SageMakerState, packages: ModelPackages) -> None:
        """Works on ``state``; ``packages``: the model packages that jobs test."""
        self._state = state
        self._packages = packages
        self._jobs: Records[RecommendationJob] = Records(JOB)

    def create_inference_recommendations_job(self, request: Request) -> dict[str, Any]:
        check_execution_role(request["RoleArn"])
        vpc = request["InputConfig"].get("VpcConfig", {})
        if reason := job_network_refusal(request["RoleArn"], vpc, kind="recommender"):
            raise refused(reason, "CreateInferenceRecommendationsJob")
        package = self._packages.find(request["InputConfig"].get("ModelPackageVersionArn", ""))
        name, region = request["JobName"], get_region()
        job = RecommendationJob(name=name, arn=JOB.arn(name), request=request, package=package, region=region)
        with self._state.changed:
            self._jobs.add(job)
            store(self._state, job.arn, request.get("Tags", []))
        return {"JobArn": job.arn}

    def describe_inference_recommendations_job(self, request: Request) -> dict[str, Any]:
        with self._state.changed:
            return self._get(request).describe()

    def stop_inference_recommendations_job(self, request: Request) -> None:
        with self._state.changed:
            job = self._get(request)
            if job.status not in ("PENDING", "IN_PROGRESS"):
                sentence = f"The request was rejected because the job is in status {job.status}."
                raise refused(sentence, "StopInferenceRecommendationsJob")
            job.become("STOPPING", at=clock.now())

    def _get(self, request: Request) -> RecommendationJob:
        """The job that a request names, as it is by now."""
        job, now = self._jobs.find(request["JobName"]), clock.now()
        if job is None:
            sentence = f"Inference recommendations job {request['JobName']} does not exist."
            raise refused(sentence, "DescribeInferenceRecommendationsJob", code="ResourceNotFound")
        begin = job.created + PENDING_SECONDS
        if job.status == "STOPPING":
            job.become("STOPPED", at=now)
        if job.status == "PENDING" and now >= begin:
            reason = _missing(job.package)
            job.become("FAILED" if reason else "IN_PROGRESS", at=begin, reason=reason)
            self._leave_models(job)
        if job.status == "IN_PROGRESS" and now >= begin + job.seconds:
            job.become("COMPLETED", at=begin + job.seconds)
            _write_metrics(job)
        return job

    def _leave_models(self, job: RecommendationJob) -> None:
        for instance_type in job.instance_types if job.status == "IN_PROGRESS" else ():
            name = job.made(instance_type)
            record = Record(name=name, arn=MODEL.arn(name), request={"ModelName": name})
            self._state.models.add(record)
            store(self._state, record.arn, [])


def _missing(package: Record) -> str | None:
    """FailureReason for an S3 object of a package that is not there; None if all are."""
    containers = package.request.get("InferenceSpecification", {}).get("Containers", [])
    for url in [package.request.get("SamplePayloadUrl"), *(one.get("ModelDataUrl") for one in containers)]:
        parts = urllib.parse.urlsplit(url or "")
        if s3.object_record(parts.netloc, parts.path.removeprefix("/")) is None:
            return f"ClientError: {url} cannot be read"
    return None


def _write_metrics(job: RecommendationJob) -> None:
    """The endpoint's latencies, as CloudWatch has them of a real one: constructed, in microseconds."""
    for instance_type in job.instance_types:
        name = job.made(instance_type)
        datum = {
            "MetricName": aws_names.MODEL_LATENCY,
            "Dimensions": aws_names.dimension_list(aws_names.variant_dimensions(name, name)),
            "Unit": "Microseconds",
            "Timestamp": (job.ended or 0.0) - 1,
            "Values": [LATENCY_MS * 1000 * share for share in SHARES_MS],
        }
        metrics.write(aws_names.SAGEMAKER, [datum])
