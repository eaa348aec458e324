"""CreateProcessingJob, DescribeProcessingJob, StopProcessingJob, and the events of every change of status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core.concurrency import spawn_background

from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.processing import request as processing_request
from tritonstack_local.emulator.processing.record import PROCESSING_JOB, ProcessingJob
from tritonstack_local.emulator.processing.run import JobRun
from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker import tags
from tritonstack_local.emulator.sagemaker.records import API
from tritonstack_local.emulator.sagemaker.state import SageMakerState

Request = dict[str, Any]


class ProcessingJobs:
    """The operations on processing jobs. A job is never deleted, so its name is taken for ever."""

    def __init__(self, state: SageMakerState) -> None:
        """Works on ``state``."""
        self._state = state
        self._runs: dict[str, JobRun] = {}

    def create(self, request: Request) -> dict[str, Any]:
        """CreateProcessingJob: the job is InProgress and runs on a thread of its own."""
        processing_request.check(request)
        name = request["ProcessingJobName"]
        job = ProcessingJob(name=name, arn=PROCESSING_JOB.arn(name), request=request)
        with self._state.changed:
            if any(one.name.lower() == name.lower() for one in self._state.processing_jobs):
                raise RefusedError(
                    "ResourceInUse",
                    "Job name must be unique within an AWS account and region, and a job with this name already exists"
                    f" ({job.arn})",
                    source=f"{API}, CreateProcessingJob",
                )
            self._state.processing_jobs.add(job)
            tags.store(self._state, job.arn, request.get("Tags", []))
            run = JobRun(job, lambda change: self._change(job, change))
            self._runs[job.arn] = run
        spawn_background(self._run, job, run, thread_name=f"processing-{name}")
        return {"ProcessingJobArn": job.arn}

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeProcessingJob."""
        with self._state.changed:
            return self._get(request).describe()

    def stop(self, request: Request) -> None:
        """StopProcessingJob: asks the entrypoint to end."""
        with self._state.changed:
            job = self._get(request)
            if job.status not in ("InProgress", "Stopping"):
                raise RefusedError(
                    "ValidationException",
                    f"The request was rejected because the processing job is in status {job.status}.",
                    source=f"{API}, StopProcessingJob",
                )
            job.stop_requested = True
        JobRun.stop()

    def end_all(self) -> None:
        """End every process at once, when the emulator ends or forgets everything."""
        with self._state.changed:
            runs = list(self._runs.values())
        for run in runs:
            run.abandon()

    def _get(self, request: Request) -> ProcessingJob:
        name = request["ProcessingJobName"]
        job = next((one for one in self._state.processing_jobs if one.name.lower() == name.lower()), None)
        if job is None:
            raise RefusedError(
                "ValidationException",
                f"Could not find requested job with name: {name}",
                source=f"{API}, DescribeProcessingJob",
            )
        return job

    def _run(self, job: ProcessingJob, run: JobRun) -> None:
        try:
            self._announce(job)
            run.run()
        except Exception as error:  # noqa: BLE001  a fault of the emulator's must end the job, or its callers wait for ever
            reason = f"InternalServerError: {error!r}"
            self._change(job, lambda: job.end("Failed", reason=reason, message=None))
        finally:
            with self._state.changed:
                self._runs.pop(job.arn, None)

    def _change(self, job: ProcessingJob, change: Callable[[], None]) -> None:
        with self._state.changed:
            before = job.status
            change()
        if job.status != before:
            self._announce(job)

    def _announce(self, job: ProcessingJob) -> None:
        """The event of a change of status; as in SageMaker's own, its times are in milliseconds."""
        with self._state.changed:
            detail = job.describe()
            pairs = [{"Key": key, "Value": value} for key, value in self._state.tags.get(job.arn, {}).items()]
        for name in [one for one in detail if one.endswith("Time")]:
            detail[name] = int(detail[name] * 1000)
        service_events.emit(
            "aws.sagemaker", "SageMaker Processing Job State Change", {**detail, "Tags": pairs}, [job.arn]
        )
