"""CreateInferenceRecommendationsJob, DescribeInferenceRecommendationsJob, StopInferenceRecommendationsJob.

PENDING → IN_PROGRESS → COMPLETED, as long as its phases take by the clock of the local AWS; STOPPING → STOPPED where it
is stopped; FAILED where archive or payload is not there. The answers are constructed: no endpoint is made, nothing is
called. What a job of the service leaves in the account, its model, is left here too.
"""

from __future__ import annotations

import urllib.parse
from typing import Any

from botocore.exceptions import ClientError
from ministack.core.concurrency import spawn_background
from ministack.core.responses import get_region

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import metric_store
from tritonstack_local.emulator.processing.transfers import s3
from tritonstack_local.emulator.recommender.checks import check_job
from tritonstack_local.emulator.recommender.job import JOB, LATENCY_MS, RecommendationJob
from tritonstack_local.emulator.recommender.packages import ModelPackages
from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker import tags
from tritonstack_local.emulator.sagemaker.execution_role import check_execution_role
from tritonstack_local.emulator.sagemaker.records import API, MODEL, Record, Records
from tritonstack_local.emulator.sagemaker.state import SageMakerState

Request = dict[str, Any]
PENDING_SECONDS = 0.5
"""Of real time: as long as nobody need wait for it, and long enough to be seen."""
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
        check_job(request)
        check_execution_role(request["RoleArn"])
        package = self._packages.find(request["InputConfig"].get("ModelPackageVersionArn", ""))
        name = request["JobName"]
        job = RecommendationJob(name=name, arn=JOB.arn(name), request=request, region=get_region())
        with self._state.changed:
            self._jobs.add(job)
            tags.store(self._state, job.arn, request.get("Tags", []))
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
                raise RefusedError(
                    "ValidationException",
                    f"The request was rejected because the job is in status {job.status}.",
                    source=f"{API}, StopInferenceRecommendationsJob",
                )
            job.become("STOPPING")
        with clock.condition:
            clock.condition.notify_all()

    def clear(self) -> None:
        """Forget everything; running jobs find themselves stopped."""
        with self._state.changed:
            for job in self._jobs.everywhere():
                job.status = "STOPPING"
            self._jobs.clear()
        with clock.condition:
            clock.condition.notify_all()

    def _get(self, request: Request) -> RecommendationJob:
        found = next((one for one in self._jobs if one.name.lower() == request["JobName"].lower()), None)
        if found is None:
            raise RefusedError(
                "ResourceNotFound",
                f"Inference recommendations job {request['JobName']} does not exist.",
                source=f"{API}, DescribeInferenceRecommendationsJob",
            )
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
                tags.store(self._state, record.arn, [])


def _missing(package: Record) -> str | None:
    """What a package names in S3 and is not there, as a job says it; None where all is."""
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
        dimensions = {"EndpointName": name, "VariantName": name}
        for share in SHARES_MS:
            metric_store.record("AWS/SageMaker", "ModelLatency", LATENCY_MS * 1000 * share, "Microseconds", dimensions)
