"""One job from its download to its end, on a thread of its own."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tritonstack.local.emulator import gpu_stand_ins
from tritonstack.local.emulator.clock import clock
from tritonstack.local.emulator.processing.container import Container
from tritonstack.local.emulator.processing.failure import JobFailedError
from tritonstack.local.emulator.processing.log import JobLog
from tritonstack.local.emulator.processing.record import ProcessingJob
from tritonstack.local.emulator.processing.transfers import Upload, download

GRACE_SECONDS = 120.0
"""Between SIGTERM and SIGKILL, on the clock; StopTrainingJob's figure, since StopProcessingJob names none."""
_CONTINUOUS_SECONDS = 0.5
_DRAIN_SECONDS = 5.0


class JobRun:
    """Runs a job and tells ``changed`` of each status."""

    def __init__(self, job: ProcessingJob, changed: Callable[[Callable[[], None]], None]) -> None:
        """``changed`` is given what to do to the job; it does so under the lock, then announces the status."""
        self._job = job
        self._changed = changed
        self._container: Container | None = None
        self._abandoned = False

    def abandon(self) -> None:
        """End the processes now; nobody asks for the job any more."""
        self._abandoned = True
        if self._container is not None:
            self._container.end()
        self.stop()

    @staticmethod
    def stop() -> None:
        """Wake the run, so that it sees that its job is to stop."""
        with clock.condition:
            clock.condition.notify_all()

    def run(self) -> None:
        """The whole job; never raises for what goes wrong with it."""
        log = JobLog(self._job)
        with tempfile.TemporaryDirectory(prefix="processing-", ignore_cleanup_errors=True) as folder:
            container = Container(Path(folder), self._job)
            status, reason = "Failed", None
            try:
                status = self._work(container, log)
            except JobFailedError as error:
                reason = str(error)
            except OSError as error:  # a full disk, say
                reason = f"InternalServerError: {error}"
            finally:
                container.end()
            self._finish(container, log, status, reason)

    def _finish(self, container: Container, log: JobLog, status: str, reason: str | None) -> None:
        message = None
        try:
            message = container.message()
        except JobFailedError as error:
            status, reason = "Failed", reason or str(error)
        if reason is not None:
            log.say(f"the job failed: {reason}")
        if not self._abandoned:
            self._changed(lambda: self._job.end(status, reason=reason, message=message))

    def _work(self, container: Container, log: JobLog) -> str:
        """Completed or Stopped; raises JobFailedError."""
        uploads = self._prepare(container, log)
        if self._ending():
            return "Stopped"
        container.start(self._stand_ins(log))
        self._container = container
        self._changed(self._job.begin)
        stopped = self._watch(container, log, [one for one in uploads if one.continuous])
        code = container.process.wait() if container.process else 0
        log.say(f"the entrypoint ended with exit status {code}")
        if stopped:
            return "Stopped"
        if code != 0:
            raise JobFailedError(f"AlgorithmError: See job logs for more information, exit code: {code}")
        for upload in uploads:
            if not upload.continuous:
                log.say(f"uploaded {upload.changed()} files to {upload.uri}")
        return "Completed"

    def _prepare(self, container: Container, log: JobLog) -> list[Upload]:
        """Inputs downloaded, folders of the outputs made."""
        request = self._job.request
        image = request["AppSpecification"]["ImageUri"]
        log.say(f"the image {image} is NOT started: the entrypoint runs as a process of this machine")
        log.say(f"{container.path('/opt/ml')} stands for /opt/ml: entrypoint, arguments and environment are rewritten")
        for one in request.get("ProcessingInputs", []):
            given = one["S3Input"]
            target = container.path(given["LocalPath"])
            target.mkdir(parents=True, exist_ok=True)
            log.say(f"downloaded {download(given['S3Uri'], target)} files from {given['S3Uri']}")
        outputs = request.get("ProcessingOutputConfig", {})
        return [_upload(container, one["S3Output"], outputs.get("KmsKeyId")) for one in outputs.get("Outputs", [])]

    def _stand_ins(self, log: JobLog) -> dict[str, str]:
        """Variables that name what stands in for the GPU's programs; none for an image that has none."""
        request = self._job.request
        release = gpu_stand_ins.release_of(request["AppSpecification"]["ImageUri"])
        gpu = gpu_stand_ins.gpu_of(request["ProcessingResources"]["ClusterConfig"]["InstanceType"])
        if release is None or gpu is None:
            log.say("no Triton image: no stand-ins for trtexec and nvidia-smi")
            return {}
        try:
            variables = gpu_stand_ins.stand_in_variables(release=release, gpu=gpu)
        except gpu_stand_ins.NoStandInsError as error:
            raise JobFailedError(f"ClientError: {error}") from error
        log.say(f"there is NO GPU: {gpu} and the trtexec of Triton {release} are stand-ins, which build no engine")
        return variables

    def _ending(self) -> bool:
        return self._abandoned or self._job.stop_requested

    def _watch(self, container: Container, log: JobLog, continuous: list[Upload]) -> bool:
        """Until the entrypoint has ended: whether it was made to."""
        ended, deadline = threading.Event(), clock.deadline(self._job.runtime_seconds)
        reader = threading.Thread(target=_read, args=(container, log, ended), daemon=True)
        reader.start()
        uploader = threading.Thread(target=_keep_uploading, args=(continuous, ended), daemon=True)
        uploader.start()
        finished = clock.wait_for(lambda: ended.is_set() or self._ending(), deadline) and ended.is_set()
        if not finished:
            why = "it was asked to" if self._ending() else f"its {self._job.runtime_seconds} s are over"
            log.say(f"the job stops: {why}; SIGTERM to the entrypoint")
            self._changed(self._job.stopping)
            container.signal(signal.SIGTERM)
            clock.wait_for(lambda: ended.is_set() or self._abandoned, clock.deadline(GRACE_SECONDS))
        container.end()
        reader.join(timeout=_DRAIN_SECONDS)  # a process that left the group may hold the output open
        uploader.join()
        for upload in continuous:
            upload.changed()
        return not finished


def _upload(container: Container, output: dict[str, Any], key_arn: str | None) -> Upload:
    folder = container.path(output["LocalPath"])
    folder.mkdir(parents=True, exist_ok=True)
    continuous = output["S3UploadMode"] == "Continuous"
    return Upload(uri=output["S3Uri"], folder=folder, key_arn=key_arn, continuous=continuous)


def _read(container: Container, log: JobLog, ended: threading.Event) -> None:
    """Copy the entrypoint's lines into the log until it has ended, and say so."""
    process = container.process
    if process is None or process.stdout is None:
        return
    waiter = threading.Thread(target=_await_end, args=(container, ended), daemon=True)
    waiter.start()
    with process.stdout:
        for line in process.stdout:
            log.line(line)
    waiter.join()


def _await_end(container: Container, ended: threading.Event) -> None:
    """The container ends with its first process, even where others hold its output open."""
    if container.process is not None:
        container.process.wait()
    container.end()
    ended.set()
    with clock.condition:
        clock.condition.notify_all()


def _keep_uploading(uploads: list[Upload], ended: threading.Event) -> None:
    while uploads and not ended.wait(_CONTINUOUS_SECONDS):
        for upload in uploads:
            try:
                upload.changed()
            except JobFailedError:
                return  # the last upload, after the end, meets the same and fails the job
