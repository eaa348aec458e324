"""A processing job: what CreateProcessingJob refuses, its record, and its container, a folder and a process."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import sys
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.catalogue import load_catalogue
from tritonstack.errors import WorkFailedError
from tritonstack_local.container.isolation import Enclosure
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.ministack_adapter.core import get_region
from tritonstack_local.emulator.request_validation import CREDENTIALS, client
from tritonstack_local.emulator.sagemaker.records import Record, RecordKind, check_execution_role, refused
from tritonstack_local.trtexec.launchers import gpu_of, known_instance_types


class JobFailedError(Exception):
    """The text becomes ``FailureReason``; it begins with SageMaker's kind (``ClientError``, ``AlgorithmError``)."""


PROCESSING_JOB = RecordKind(noun="ProcessingJob", label="processing job", arn_part="processing-job")

DEFAULT_RUNTIME_SECONDS = 86400
"""ProcessingStoppingCondition: a day where the request names no limit (API reference)."""

LONGEST_TEXT = 1024
"""Bytes of ``ExitMessage`` and ``FailureReason``: "up to one KB" (API reference)."""


@dataclass(kw_only=True)
class ProcessingJob(Record):
    """A job. Guarded by the lock of the SageMaker state."""

    created: float = field(default_factory=clock.now)
    modified: float = field(default_factory=clock.now)
    status: str = "InProgress"  # InProgress, Stopping, Completed, Failed or Stopped
    stop_requested: bool = False  # by StopProcessingJob
    started: float | None = None  # when the entrypoint was started, seconds since the epoch
    ended: float | None = None  # when the job came to its end
    exit_message: str | None = None  # the first KB of ``/opt/ml/output/message``
    failure_reason: str | None = None  # of a failed job

    @property
    def runtime_seconds(self) -> int:
        """The longest that the entrypoint may run."""
        condition: dict[str, int] = self.request.get("StoppingCondition", {})
        return condition.get("MaxRuntimeInSeconds", DEFAULT_RUNTIME_SECONDS)

    def begin(self) -> None:
        """The entrypoint was started."""
        self.started = self.modified = clock.now()

    def stopping(self) -> None:
        """The entrypoint is to end."""
        self.status, self.modified = "Stopping", clock.now()

    def end(self, status: str, *, reason: str | None, message: str | None) -> None:
        """The end: Completed, Failed or Stopped."""
        self.status, self.failure_reason, self.exit_message = status, reason and shortened(reason), message
        self.ended = self.modified = clock.now()

    def summary(self) -> dict[str, Any]:
        """Fields that a listing adds to name, ARN and creation time."""
        return {
            "LastModifiedTime": self.modified,
            "ProcessingJobStatus": self.status,
            **{name: value for name, value in self._end().items() if name != "ProcessingStartTime"},
        }

    def describe(self) -> dict[str, Any]:
        """DescribeProcessingJob's response."""
        return {
            "StoppingCondition": {"MaxRuntimeInSeconds": self.runtime_seconds},
            **{name: value for name, value in self.request.items() if name != "Tags"},
            "ProcessingJobArn": self.arn,
            "ProcessingJobStatus": self.status,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
            **self._end(),
        }

    def _end(self) -> dict[str, Any]:
        known = {
            "ProcessingStartTime": self.started,
            "ProcessingEndTime": self.ended,
            "ExitMessage": self.exit_message,
            "FailureReason": self.failure_reason,
        }
        return {name: value for name, value in known.items() if value is not None}


def shortened(text: str) -> str:
    """The first KB of a text, cut between two characters."""
    return text.encode()[:LONGEST_TEXT].decode(errors="ignore")


Request = dict[str, Any]
FOLDER = "/opt/ml/processing/"
_IMAGE = re.compile(r"\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[^:@]+(:[\w.-]+|@sha256:[0-9a-f]{64})?")


def check(request: Request) -> None:
    """Raise ``RefusedError`` with every problem at once, and for a role that SageMaker may not assume."""
    found = [*_of_cluster(request), *_of_image(request), *_of_places(request)]
    if found:
        raise refused("; ".join(found), "CreateProcessingJob")
    check_execution_role(request["RoleArn"])


def _of_cluster(request: Request) -> Iterator[str]:
    cluster = request["ProcessingResources"]["ClusterConfig"]
    for name in ("InstanceCount", "InstanceType"):
        if name not in cluster:
            yield f"ClusterConfig.{name} must be specified"
    kind = cluster.get("InstanceType")
    if kind is not None and gpu_of(kind) is None:
        yield f"the GPU of {kind} is not known; it is of {', '.join(known_instance_types())}"
    elif kind is not None and "VolumeKmsKeyId" in cluster and load_catalogue().instances[kind].local_nvme_gb:
        yield f"VolumeKmsKeyId: {kind} has local storage, which encrypts itself and takes no key"


def _of_image(request: Request) -> Iterator[str]:
    application = request["AppSpecification"]
    if not _IMAGE.fullmatch(application["ImageUri"]):
        yield f"ImageUri {application['ImageUri']} is no image of Amazon ECR"
    if "ContainerEntrypoint" not in application:
        yield "the local AWS starts no image and so knows no ENTRYPOINT: ContainerEntrypoint must be specified"


def _of_places(request: Request) -> Iterator[str]:
    """Inputs and outputs: each name once, S3 objects, folders below ``/opt/ml/processing/``."""
    inputs, outputs = request.get("ProcessingInputs", []), request.get("ProcessingOutputConfig", {}).get("Outputs", [])
    for where, rows, name, member in (
        ("ProcessingInputs", inputs, "InputName", "S3Input"),
        ("ProcessingOutputConfig.Outputs", outputs, "OutputName", "S3Output"),
    ):
        yield from _repeated(name, rows)
        for number, row in enumerate(rows, 1):
            given = row.get(member)
            if given is None:
                yield f"{where}.{number}: {member} must be specified"
                continue
            if not given["S3Uri"].startswith("s3://"):
                yield f"{where}.{number}: S3Uri {given['S3Uri']}: an https address is not in the local AWS, s3://… is"
            local = given.get("LocalPath", "")
            if not local.startswith(FOLDER) or ".." in PurePosixPath(local).parts:
                yield f"{where}.{number}: LocalPath {local or '(none)'} must begin with {FOLDER}"


def _repeated(name: str, given: list[dict[str, Any]]) -> Iterator[str]:
    for value, count in Counter(one[name] for one in given).items():
        if count > 1:
            yield f"{name} {value} is used {count} times"


# A job that is isolated from the network runs with no network, in a process table of its own, and its ``/opt/ml`` is
# the folder. Other jobs need this machine's network to reach the local AWS, so they run without isolation, as all
# do where user namespaces are not permitted: then paths below ``/opt/ml`` are rewritten where they can be seen.
_OPT_ML = re.compile(r"(?<![\w./-])/opt/ml(?=/|$)")


class Container:
    """The folder and the process."""

    def __init__(self, root: Path, job: ProcessingJob, credentials: Mapping[str, str]) -> None:
        """``root`` is an empty folder: below it lies ``opt/ml``. ``credentials``: the entrypoint's, as variables."""
        self._credentials = credentials
        self._root = root
        self._job = job
        self._enclosure: Enclosure | None = None
        self._ending = threading.Lock()
        (self.path("/opt/ml/output")).mkdir(parents=True)
        self._write_config()

    def path(self, inside: str) -> Path:
        """The machine's path of a path in the container."""
        return self._root / inside.lstrip("/")

    def start(self, variables: dict[str, str], *, ended: Callable[[int], None]) -> io.TextIOBase:
        """Start the entrypoint; returns its output.

        Raises JobFailedError: the program is not there, or cannot be started.
        """
        application = self._job.request["AppSpecification"]
        reader, writer = os.pipe()
        with os.fdopen(writer, "wb") as output:
            try:
                enclosure = Enclosure.open(
                    mounts={self.path("/opt/ml"): "/opt/ml"}, log=output, namespace=self._isolated
                )
                self._enclosure = enclosure
                given = [*application["ContainerEntrypoint"], *application.get("ContainerArguments", [])]
                env = self._environment() | variables
                enclosure.launch(self._command(given, env["PATH"]), env=env)
            except (OSError, WorkFailedError, JobFailedError) as error:
                os.close(reader)
                raise JobFailedError(f"ClientError: the entrypoint could not be started: {error}") from error
        enclosure.exited.add_done_callback(lambda exited: ended(exited.result()))
        return os.fdopen(reader, encoding="utf-8", errors="replace")

    def location_text(self) -> str:
        """Log line about where the entrypoint runs."""
        if self._own_namespaces:
            return f"/opt/ml is {self.path('/opt/ml')}; the entrypoint has no network and sees no other processes"
        why = "" if not self._isolated or self._enclosure is None else f" ({self._enclosure.isolation})"
        return (
            f"{self.path('/opt/ml')} stands for /opt/ml: entrypoint, arguments and environment are rewritten; the"
            f" entrypoint has this machine's network{why}"
        )

    def terminate(self) -> None:
        """Send SIGTERM to the entrypoint."""
        if self._enclosure is not None:
            self._enclosure.signal(signal.SIGTERM)

    def end(self) -> None:
        """End the entrypoint and all it started; returns when they are gone."""
        with self._ending:
            if self._enclosure is not None:
                self._enclosure.close()

    def message(self) -> str | None:
        """The first KB of the entrypoint's text for ``ExitMessage``; None where it wrote none.

        Raises JobFailedError: it is not UTF-8.
        """
        try:
            text = self.path("/opt/ml/output/message").read_bytes().decode()
        except OSError:
            return None
        except UnicodeDecodeError as error:
            raise JobFailedError("ClientError: /opt/ml/output/message is not encoded in UTF-8") from error
        return shortened(text)

    @property
    def _isolated(self) -> bool:
        """Whether the request isolates the container from networks."""
        return bool(self._job.request.get("NetworkConfig", {}).get("EnableNetworkIsolation"))

    @property
    def _own_namespaces(self) -> bool:
        return self._enclosure is not None and self._enclosure.isolated

    def _command(self, given: list[str], search: str) -> list[str]:
        """With ``env -C``: the folder is the container's working directory, too."""
        command = [self._seen(one) for one in given]
        # Inside its namespaces the program may lie where nothing is from here.
        if not self._own_namespaces and shutil.which(command[0], path=search) is None:
            raise JobFailedError(f"there is no program {command[0]}")
        return [shutil.which("env") or "env", "-C", str(self._root), *command]

    def _seen(self, text: str) -> str:
        """A text as the entrypoint must see it."""
        return text if self._own_namespaces else _OPT_ML.sub(str(self._root / "opt/ml"), text)

    def _environment(self) -> dict[str, str]:
        """The request's variables; with them, unless the job is isolated from the network, the way to the local AWS."""
        given = {name: self._seen(value) for name, value in self._job.request.get("Environment", {}).items()}
        # ``python3`` must be found wherever the emulator runs: at last, that of its own environment.
        own = {
            "PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)]),
            "HOME": str(self._root),
            "AWS_REGION": get_region(),
        }
        if not self._isolated:
            own |= {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"], **self._credentials}
        return own | given

    def _write_config(self) -> None:
        """The two files that SageMaker writes for the container (developer guide, "How … Configures …")."""
        folder = self.path("/opt/ml/config")
        folder.mkdir()
        described: dict[str, Any] = {"ProcessingJobArn": self._job.arn, **self._job.request}
        (folder / "processingjobconfig.json").write_text(json.dumps(described))
        (folder / "resourceconfig.json").write_text(json.dumps({"current_host": "algo-1", "hosts": ["algo-1"]}))


def administrator() -> dict[str, str]:
    """The administrator's credentials."""
    return dict(CREDENTIALS)


def download(uri: str, folder: Path, credentials: Mapping[str, str]) -> int:
    """Every object with the URI's prefix into ``folder``; how many.

    What comes after the prefix and a slash is the path there; an object that is the prefix itself keeps its last name.

    Raises JobFailedError: there is no such object, S3 refuses, or a key leads out of the folder.
    """
    bucket, prefix = _parts(uri)
    count = 0
    try:
        store = client("s3", get_region(), credentials)
        for key in _keys(store, bucket, prefix):
            target = folder / _relative(key, prefix)
            if not target.resolve().is_relative_to(folder.resolve()):
                raise JobFailedError(f"ClientError: the key {key} leads out of its folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:  # not download_file: HeadObject is refused without a reason
                shutil.copyfileobj(store.get_object(Bucket=bucket, Key=key)["Body"], file)
            count += 1
    except (ClientError, BotoCoreError, OSError) as error:
        raise JobFailedError(f"ClientError: Data download failed: {uri}: {error}") from error
    if count == 0:
        raise JobFailedError(
            f'ClientError: Data download failed: No S3 objects found under S3 URL "{uri}" given in input data source.'
            " Please ensure that the bucket exists in the selected region, that objects exist under that S3 prefix,"
            f' and that the role has "s3:ListBucket" permissions on bucket "{bucket}".'
        )
    return count


def upload(uri: str, folder: Path, key_arn: str | None, credentials: Mapping[str, str]) -> int:
    """Upload every regular file below a folder; how many. A link is none. Raises JobFailedError."""
    bucket, prefix = _parts(uri)
    extra = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key_arn} if key_arn else {}
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    try:
        for path in files:
            name = path.relative_to(folder).as_posix()
            client("s3", get_region(), credentials).upload_file(
                str(path), bucket, f"{prefix.rstrip('/')}/{name}".lstrip("/"), ExtraArgs=extra
            )
    except (ClientError, BotoCoreError, OSError, boto3.exceptions.S3UploadFailedError) as error:
        raise JobFailedError(f"ClientError: Data upload failed: {uri}: {error}") from error
    return len(files)


def _keys(store: Any, bucket: str, prefix: str) -> Iterator[str]:
    """Keys with the prefix, without those that end in a slash: consoles make them for folders, with no content."""
    for page in store.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        yield from (one["Key"] for one in page.get("Contents", []) if not one["Key"].endswith("/"))


def _relative(key: str, prefix: str) -> str:
    if key == prefix:
        return key.rpartition("/")[2]
    folder = prefix if prefix.endswith("/") or not prefix else prefix + "/"
    return (
        key.removeprefix(folder) if key.startswith(folder) else key.removeprefix(prefix.rpartition("/")[0]).lstrip("/")
    )


def _parts(uri: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(uri)
    return parts.netloc, parts.path.removeprefix("/")
