"""A job's container: a folder for ``/opt/ml``, the entrypoint in namespaces, inputs from and outputs to S3."""

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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from ministack.core.responses import get_account_id, get_region

from tritonstack.errors import WorkFailedError
from tritonstack_local.container.isolation import Enclosure
from tritonstack_local.emulator.codebuild.build import client
from tritonstack_local.emulator.processing.request import JobFailedError, ProcessingJob, shortened

# A job that is isolated from the network runs with no network, in a process table of its own, and its ``/opt/ml`` is
# the folder. Other jobs need this machine's network to reach the local AWS, so they run beside everything else, as all
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
        """Where a path of the container lies."""
        return self._root / inside.lstrip("/")

    def start(self, variables: dict[str, str], *, ended: Callable[[int], None]) -> io.TextIOBase:
        """Start the entrypoint; what it prints.

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
        """Ask the entrypoint to end."""
        if self._enclosure is not None:
            self._enclosure.signal(signal.SIGTERM)

    def end(self) -> None:
        """End the entrypoint and all it started; returns when they are gone."""
        with self._ending:
            if self._enclosure is not None:
                self._enclosure.close()

    def message(self) -> str | None:
        """The first KB of what the entrypoint wrote for ``ExitMessage``; None where it wrote nothing.

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
        """Whether the request wants no network."""
        return bool(self._job.request.get("NetworkConfig", {}).get("EnableNetworkIsolation"))

    @property
    def _own_namespaces(self) -> bool:
        return self._enclosure is not None and self._enclosure.isolated

    def _command(self, given: list[str], search: str) -> list[str]:
        """With ``env -C``: the folder stands for the container's working directory, too."""
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
    """Credentials of the administrator of the context's account."""
    return {"AWS_ACCESS_KEY_ID": get_account_id(), "AWS_SECRET_ACCESS_KEY": "testing"}


def s3(credentials: Mapping[str, str] | None = None) -> Any:
    """S3 of this emulator, in the context's account and region. Not for the event loop, which would wait for itself.

    ``credentials``: as variables; None for those of the account's administrator.
    """
    return client("s3", get_region(), credentials or administrator())


def download(uri: str, folder: Path, credentials: Mapping[str, str]) -> int:
    """Every object with the URI's prefix into ``folder``; how many.

    What comes after the prefix and a slash is the path there; an object that is the prefix itself keeps its last name.

    Raises JobFailedError: there is no such object, S3 refuses, or a key leads out of the folder.
    """
    bucket, prefix = _parts(uri)
    count = 0
    try:
        store = s3(credentials)
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
            s3(credentials).upload_file(str(path), bucket, f"{prefix.rstrip('/')}/{name}".lstrip("/"), ExtraArgs=extra)
    except (ClientError, BotoCoreError, OSError, boto3.exceptions.S3UploadFailedError) as error:
        raise JobFailedError(f"ClientError: Data upload failed: {uri}: {error}") from error
    return len(files)


def _keys(store: Any, bucket: str, prefix: str) -> Iterator[str]:
    """Keys with the prefix; those that end in a slash stand for folders in consoles and hold nothing."""
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
