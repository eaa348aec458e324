"""Operations on processing jobs, and one job from its download to its end, on a thread of its own."""

from __future__ import annotations

import io
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tritonstack import aws_names
from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import Deadline, clock
from tritonstack_local.emulator.iam.authorization import role_principal
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import (
    credentials_of,
    job_network_refusal,
    key_arn,
    pull_needs,
    refusal_of,
    vpc_of,
)
from tritonstack_local.emulator.ministack_adapter.core import spawn_background
from tritonstack_local.emulator.processing.container import (
    PROCESSING_JOB,
    Container,
    JobFailedError,
    ProcessingJob,
    administrator,
    check,
    download,
    upload,
)
from tritonstack_local.emulator.sagemaker.records import PRINCIPAL, refused
from tritonstack_local.emulator.sagemaker.state import SageMakerState, store
from tritonstack_local.emulator.service_events import LogStream
from tritonstack_local.trtexec import launchers

GRACE_SECONDS = 120.0
"""Between SIGTERM and SIGKILL, on the clock; StopTrainingJob's figure, since StopProcessingJob names none."""


class JobRun:
    """Runs a job and calls ``changed`` with each status."""

    def __init__(self, job: ProcessingJob, changed: Callable[[Callable[[], None]], None]) -> None:
        """``changed`` is given what to do to the job; it does so under the lock, then announces the status."""
        self._job = job
        self._changed = changed
        self._container: Container | None = None
        self._abandoned = False
        self._ended = threading.Event()  # the entrypoint and all that it started are gone
        self._status = 0  # its exit status, then
        self._credentials = administrator()  # a session's of the role, where permissions are enforced

    def abandon(self) -> None:
        """End the processes now, without a further status."""
        self._abandoned = True
        if self._container is not None:
            self._container.end()
        clock.wake()

    def run(self) -> None:
        """The whole job; never raises for what goes wrong with it."""
        self._role = role_principal(self._job.request["RoleArn"], "SageMaker")
        stream = f"{self._job.name}/algo-1-{int(self._job.created)}"
        log = LogStream(aws_names.PROCESSING_JOBS, stream, writer=self._role, prefix=lambda: "[local AWS] ")
        with tempfile.TemporaryDirectory(prefix="processing-", ignore_cleanup_errors=True) as folder:
            container = Container(Path(folder), self._job, self._credentials)
            status, reason = "Failed", None
            try:
                self._authorise(log)
                status = self._work(container, log)
            except JobFailedError as error:
                reason = str(error)
            except OSError as error:  # for example a full disk
                reason = f"InternalServerError: {error}"
            finally:
                container.end()
            self._finish(container, log, status, reason)

    def _authorise(self, log: LogStream) -> None:
        """Raise JobFailedError where the role may not do what SageMaker does with it.

        Source: developer guide, "SageMaker AI roles", CreateProcessingJob API. That a job fails which may write neither
        its log nor its metrics is UNVERIFIED.
        """
        request, volume = self._job.request, self._job.request["ProcessingResources"]["ClusterConfig"]
        network = request.get("NetworkConfig", {}).get("VpcConfig", {})
        named = {"cloudwatch:namespace": aws_names.PROCESSING_JOBS}
        needs = [
            *pull_needs(request["AppSpecification"]["ImageUri"]),
            Need(action="cloudwatch:PutMetricData", resource="*", context=named),
        ]
        for action, key, context in (
            ("kms:CreateGrant", volume.get("VolumeKmsKeyId"), {"kms:GrantIsForAWSResource": "true"}),
            ("kms:Encrypt", request.get("ProcessingOutputConfig", {}).get("KmsKeyId"), {}),
        ):
            needs += [Need(action=action, resource=key_arn(key), context=context)] if key else []
        denied = log.refusal or refusal_of(self._role, needs, by=f"sagemaker: processing job {self._job.name}")
        if denied is not None:
            raise JobFailedError(f"ClientError: {denied.sentence}")
        vpc = vpc_of(network.get("Subnets", ()))
        self._credentials |= credentials_of(self._role, service=PRINCIPAL, source=self._job.arn, vpc=vpc)

    def _finish(self, container: Container, log: LogStream, status: str, reason: str | None) -> None:
        message = None
        try:
            message = container.message()
        except JobFailedError as error:
            status, reason = "Failed", reason or str(error)
        if reason is not None:
            log.say(f"the job failed: {reason}")
        if not self._abandoned:
            self._changed(lambda: self._job.end(status, reason=reason, message=message))

    def _work(self, container: Container, log: LogStream) -> str:
        """Completed or Stopped; raises JobFailedError."""
        uploads = self._prepare(container, log)
        if self._ending():
            return "Stopped"
        variables, deadline = self._stand_ins(log), clock.deadline(self._job.runtime_seconds)
        output = container.start(variables, ended=self._end)
        log.say(container.location_text())
        reader = threading.Thread(target=_log_lines, args=(output, log), daemon=True)
        reader.start()
        self._container = container
        self._changed(self._job.begin)
        stopped = self._watch(container, log, deadline)
        reader.join()
        log.say(f"the entrypoint ended with exit status {self._status}")
        if stopped:
            return "Stopped"
        if self._status != 0:
            raise JobFailedError(f"AlgorithmError: See job logs for more information, exit code: {self._status}")
        for uri, folder, key in uploads:
            log.say(f"uploaded {upload(uri, folder, key, self._credentials)} files to {uri}")
        return "Completed"

    def _prepare(self, container: Container, log: LogStream) -> list[tuple[str, Path, str | None]]:
        """Inputs downloaded, folders of the outputs made: where each goes, and under which key."""
        request = self._job.request
        image = request["AppSpecification"]["ImageUri"]
        log.say(f"the image {image} is NOT started: the entrypoint runs as a process of this machine")
        for one in request.get("ProcessingInputs", []):
            given = one["S3Input"]
            target = container.path(given["LocalPath"])
            target.mkdir(parents=True, exist_ok=True)
            log.say(f"downloaded {download(given['S3Uri'], target, self._credentials)} files from {given['S3Uri']}")
        outputs, made = request.get("ProcessingOutputConfig", {}), []
        for one in outputs.get("Outputs", []):
            folder = container.path(one["S3Output"]["LocalPath"])
            folder.mkdir(parents=True, exist_ok=True)
            made.append((one["S3Output"]["S3Uri"], folder, outputs.get("KmsKeyId")))
        return made

    def _stand_ins(self, log: LogStream) -> dict[str, str]:
        """Variables that name the stand-ins for the GPU's programs; none for an image without such programs."""
        request = self._job.request
        gpu = launchers.gpu_of(request["ProcessingResources"]["ClusterConfig"]["InstanceType"])
        try:
            variables, line = launchers.stand_in_variables(request["AppSpecification"]["ImageUri"], gpu=gpu)
        except launchers.NoStandInsError as error:
            raise JobFailedError(f"ClientError: {error}") from error
        log.say(line)
        return variables

    def _ending(self) -> bool:
        return self._abandoned or self._job.stop_requested

    def _watch(self, container: Container, log: LogStream, deadline: Deadline) -> bool:
        """Until the entrypoint and all it started are gone: whether it was made to end."""
        clock.wait_for(lambda: self._ended.is_set() or self._ending(), deadline)
        if self._ended.is_set():
            return False
        why = "it was asked to" if self._ending() else f"its {self._job.runtime_seconds} s are over"
        self._changed(self._job.stopping)
        log.say(f"the job stops: {why}; SIGTERM to the entrypoint")
        grace = clock.deadline(GRACE_SECONDS)
        container.terminate()
        clock.wait_for(lambda: self._ended.is_set() or self._abandoned, grace)
        container.end()
        return True

    def _end(self, status: int) -> None:
        self._status = status
        self._ended.set()
        clock.wake()


def _log_lines(output: io.TextIOBase, log: LogStream) -> None:
    with output:
        for line in output:
            log.line(line)


Request = dict[str, Any]


class ProcessingJobs:
    """The operations on processing jobs. A job is never deleted, so its name is taken for ever."""

    def __init__(self, state: SageMakerState) -> None:
        self._state = state
        self._runs: dict[str, JobRun] = {}

    def create_processing_job(self, request: Request) -> dict[str, Any]:
        """CreateProcessingJob: the job is InProgress and runs on a thread of its own."""
        check(request)
        vpc = request.get("NetworkConfig", {}).get("VpcConfig", {})
        if reason := job_network_refusal(request["RoleArn"], vpc, kind="processing"):
            raise refused(reason, "CreateProcessingJob")
        name = request["ProcessingJobName"]
        job = ProcessingJob(name=name, arn=PROCESSING_JOB.arn(name), request=request)
        with self._state.changed:
            if self._state.processing_jobs.find(name) is not None:
                raise refused(
                    "Job name must be unique within an AWS account and region, and a job with this name already exists"
                    f" ({job.arn})",
                    "CreateProcessingJob",
                    code="ResourceInUse",
                )
            self._state.processing_jobs.add(job)
            store(self._state, job.arn, request.get("Tags", []))
            run = JobRun(job, lambda change: self._change(job, change))
            self._runs[job.arn] = run
        spawn_background(self._run, job, run, thread_name=f"processing-{name}")
        return {"ProcessingJobArn": job.arn}

    def describe_processing_job(self, request: Request) -> dict[str, Any]:
        with self._state.changed:
            return self._get(request).describe()

    def stop_processing_job(self, request: Request) -> None:
        """StopProcessingJob: has SIGTERM sent to the entrypoint."""
        with self._state.changed:
            job = self._get(request)
            if job.status not in ("InProgress", "Stopping"):
                sentence = f"The request was rejected because the processing job is in status {job.status}."
                raise refused(sentence, "StopProcessingJob")
            job.stop_requested = True
        clock.wake()

    def end_all(self) -> None:
        """End every process at once, when the emulator ends or is reset."""
        with self._state.changed:
            runs = list(self._runs.values())
        for run in runs:
            run.abandon()

    def _get(self, request: Request) -> ProcessingJob:
        name = request["ProcessingJobName"]
        job = self._state.processing_jobs.find(name)
        if job is None:
            raise refused(f"Could not find requested job with name: {name}", "DescribeProcessingJob")
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
