"""SageMaker Inference Recommender: model packages, and jobs whose figures are constructed."""

from __future__ import annotations

import hashlib
import itertools
import math
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tritonstack import aws_names
from tritonstack.catalogue import load_catalogue
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
        wrong = [name for name, allowed in VALUES.items() if name in request and request[name] not in allowed]
        if wrong:
            allowed = " | ".join(VALUES[wrong[0]])
            sentence = f"{wrong[0]} {request[wrong[0]]} is not supported by Inference Recommender: {allowed}"
            raise refused(sentence, "CreateModelPackage")
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
        """ListModelPackages of a group, or those made after a time: newest first, in one page."""
        after = request.get("CreationTimeAfter")
        least = 0.0 if after is None else float(after)
        with self._state.changed:
            found = self._of(self._groups.get(request["ModelPackageGroupName"]))
        young = [_summary(package) for package in reversed(found) if package.created >= least]
        return {"ModelPackageSummaryList": young}

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


VALUES = {
    "Domain": ("COMPUTER_VISION", "NATURAL_LANGUAGE_PROCESSING", "MACHINE_LEARNING"),
    "Task": (
        "IMAGE_CLASSIFICATION",
        "OBJECT_DETECTION",
        "TEXT_GENERATION",
        "IMAGE_SEGMENTATION",
        "FILL_MASK",
        "CLASSIFICATION",
        "REGRESSION",
        "OTHER",
    ),
}
"""What Inference Recommender supports (API reference: CreateModelPackage, RecommendationJobContainerConfig). The local
AWS refuses others when the package is registered; when the service does is UNVERIFIED."""
JOB = RecordKind(noun="Job", label="inference recommendations job", arn_part="inference-recommendations-job")
DEFAULT_SECONDS = 120.0
"""Of a default job: as long as the shortest load test, for its figures are constructed. An account's takes up to 45
minutes (developer guide, "Recommendation jobs": "complete within 45 minutes")."""
CONSTRUCTED = "constructed-by-the-local-aws"
"""How the id of every recommendation begins: no endpoint was made and nothing was measured."""
LATENCY_MS, INVOCATIONS = 100, 600  # of one user, in a minute
CPU_PERCENT, MEMORY_PERCENT = 50.0, 25.0
UTILIZATION = {
    aws_names.CPU_UTILIZATION: 60.0,
    aws_names.MEMORY_UTILIZATION: 30.0,
    aws_names.GPU_UTILIZATION: 80.0,
    aws_names.GPU_MEMORY_UTILIZATION: 40.0,
}
"""Of the endpoint's instance in CloudWatch."""
LONGEST_PREFIX = 40
OWN_TYPES = ["ml.g4dn.xlarge", "ml.g5.xlarge"]
"""Of a default job whose package supports no type by name."""
MOST_RECOMMENDED = 5
"""Instance types of a default job (developer guide, "Recommendation jobs": "the top five instance types")."""
RECOMMENDED_PARAMETER = "OMP_NUM_THREADS"
"""The container parameter that a default job recommends here: the type's CPUs. Constructed, as the figures are."""


@dataclass(frozen=True, kw_only=True)
class LoadTest:
    """One benchmark of a job: an instance type, with one value of each container parameter."""

    instance_type: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def model_configuration(self) -> dict[str, Any]:
        """``ModelConfiguration`` of its recommendation."""
        found = [{"Key": name, "ValueType": "string", "Value": value} for name, value in self.parameters]
        return {"EnvironmentParameters": found} if found else {}


def load_tests_of(request: Request, package: Record) -> list[LoadTest]:
    """The benchmarks of a job: of a default one its package's types, of an advanced one all combinations it names.

    At most ``MaxNumberOfTests`` (API reference: RecommendationJobResourceLimit).
    """
    given = request["InputConfig"]
    if request.get("JobType") == "Default":
        supported = package.request.get("InferenceSpecification", {})
        types = supported.get("SupportedRealtimeInferenceInstanceTypes") or OWN_TYPES
        found = [
            LoadTest(instance_type=each, parameters=((RECOMMENDED_PARAMETER, str(_cpus(each))),))
            for each in types[:MOST_RECOMMENDED]
        ]
    else:
        found = [each for one in given.get("EndpointConfigurations", []) for each in _combinations(one)]
    return found[: given.get("ResourceLimit", {}).get("MaxNumberOfTests", len(found))]


def _combinations(configuration: dict[str, Any]) -> Iterator[LoadTest]:
    ranges = configuration.get("EnvironmentParameterRanges", {}).get("CategoricalParameterRanges", [])
    named = [[(each["Name"], value) for value in each["Value"]] for each in ranges]
    for combination in itertools.product(*named):
        yield LoadTest(instance_type=configuration["InstanceType"], parameters=combination)


def _cpus(instance_type: str) -> int:
    found = load_catalogue().instance(instance_type)
    return 1 if found is None else found.vcpu


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
    def load_tests(self) -> list[LoadTest]:
        """Its benchmarks."""
        return load_tests_of(self.request, self.package)

    @property
    def seconds(self) -> float:
        """Duration of its requests: of the phases, one batch of benchmarks after another, at most the job's own."""
        given = self.request["InputConfig"]
        if self.request.get("JobType") == "Default":
            return DEFAULT_SECONDS
        phases = given["TrafficPattern"].get("Phases", [])
        tests = len(self.load_tests)
        batches = math.ceil(tests / given.get("ResourceLimit", {}).get("MaxParallelOfTests", tests))
        whole: float = batches * sum(float(phase.get("DurationInSeconds", LEAST_PHASE)) for phase in phases)
        return min(whole, float(given.get("JobDurationInSeconds", LONGEST_JOB)))

    def made(self, test: LoadTest) -> str:
        """The name of endpoint, config and model for one benchmark: the job's, cut, and digits of its own."""
        own = " ".join([test.instance_type, *(f"{name}={value}" for name, value in test.parameters)])
        digits = hashlib.sha256(f"{self.name} {own}".encode()).hexdigest()[:8]
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
                self._recommendation(place, test) for place, test in enumerate(self.load_tests)
            ]
        return answer

    def _recommendation(self, place: int, test: LoadTest) -> dict[str, Any]:
        """Constructed figures, the same for every job."""
        figures: dict[str, Any] = {
            "MaxInvocations": INVOCATIONS,
            "ModelLatency": LATENCY_MS,
            "CpuUtilization": CPU_PERCENT,
            "MemoryUtilization": MEMORY_PERCENT,
            "ModelSetupTime": 1,
        }
        price = hosting_price(instance_type=test.instance_type, region=self.region)
        if price is not None:
            figures |= {"CostPerHour": price.usd_per_hour, "CostPerInference": price.usd_per_hour / (INVOCATIONS * 60)}
        name = self.made(test)
        return {
            "RecommendationId": f"{CONSTRUCTED}/{place}",
            "Metrics": figures,
            "EndpointConfiguration": {
                "EndpointName": name,
                "VariantName": name,
                "InstanceType": test.instance_type,
                "InitialInstanceCount": 1,
            },
            "ModelConfiguration": test.model_configuration,
            # Within the period that CloudWatch's figures are read for, also where the clock was moved.
            "InvocationStartTime": (self.started or 0.0) - metrics.ahead_seconds(),
            "InvocationEndTime": (self.ended or 0.0) - metrics.ahead_seconds(),
        }


LEAST_PHASE, LONGEST_PHASE = 120, 3600
MOST_USERS = 3
LONGEST_JOB = 7200
"""Seconds of a load test and a phase; users that begin one, or join in a minute (developer guide: "Run a custom load
test"; API reference: Phase). The API reference allows jobs of 18,000 s, the guide of 7,200: the stricter is held."""


def job_refusals(request: Request, package: Record) -> Iterator[str]:
    """What Inference Recommender documents that it does not take, in our words: its own are UNVERIFIED."""
    given = request["InputConfig"]
    for name in ("Domain", "Task", "SamplePayloadUrl"):
        if name not in package.request:
            yield f"{package.arn} has no {name}, which the prerequisites of Inference Recommender ask for"
    if request.get("JobType") != "Advanced":
        for name in ("TrafficPattern", "ResourceLimit", "JobDurationInSeconds"):
            if name in given:
                yield f"{name} is of a custom load test (Advanced), and JobType is Default"
        return
    for name, place in (("TrafficPattern", given), ("EndpointConfigurations", given), ("StoppingConditions", request)):
        if name not in place:
            yield f"{name} is missing, which a custom load test needs"
    longest = given.get("JobDurationInSeconds", LONGEST_JOB)
    if longest > LONGEST_JOB:
        yield f"JobDurationInSeconds {longest} is above {LONGEST_JOB}"
    yield from _phase_refusals(given, longest=longest)
    for threshold in request.get("StoppingConditions", {}).get("ModelLatencyThresholds", []):
        if threshold.get("Percentile") not in ("P95", "P99"):
            yield f"Percentile {threshold.get('Percentile')} of ModelLatencyThresholds is neither P95 nor P99"
    limit = given.get("ResourceLimit", {})
    if limit.get("MaxParallelOfTests", 1) > limit.get("MaxNumberOfTests", math.inf):
        yield "MaxParallelOfTests is above MaxNumberOfTests"


def _phase_refusals(given: Request, *, longest: int) -> Iterator[str]:
    for phase in given.get("TrafficPattern", {}).get("Phases", []):
        users, rate = phase.get("InitialNumberOfUsers", 1), phase.get("SpawnRate", 0)
        seconds = phase.get("DurationInSeconds", LEAST_PHASE)
        if users > MOST_USERS or rate > MOST_USERS:
            yield f"InitialNumberOfUsers {users}, SpawnRate {rate}: at most {MOST_USERS} each"
        if not LEAST_PHASE <= seconds <= min(LONGEST_PHASE, longest):
            yield f"DurationInSeconds {seconds} of a phase is not {LEAST_PHASE} to {min(LONGEST_PHASE, longest)}"


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
        request = {"JobType": "Default", **request}
        for sentence in job_refusals(request, package):
            raise refused(sentence, "CreateInferenceRecommendationsJob")
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
        for test in job.load_tests if job.status == "IN_PROGRESS" else ():
            name = job.made(test)
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
    """The endpoint's latencies and utilization, as CloudWatch has them of a real one: constructed."""
    for test in job.load_tests:
        name = job.made(test)
        dimensions = aws_names.dimension_list(aws_names.variant_dimensions(name, name))
        common = {"Dimensions": dimensions, "Timestamp": (job.ended or 0.0) - 1}
        latencies = [LATENCY_MS * 1000 * share for share in SHARES_MS]
        latency = {"MetricName": aws_names.MODEL_LATENCY, "Unit": "Microseconds", "Values": latencies}
        metrics.write(aws_names.SAGEMAKER, [{**common, **latency}])
        gauges = [
            {**common, "MetricName": metric, "Unit": "Percent", "Values": [value]}
            for metric, value in UTILIZATION.items()
        ]
        metrics.write(aws_names.INSTANCES, gauges)
