"""The local AWS as a whole: its emulator and its SageMaker runtime, started, found again and stopped."""

from __future__ import annotations

import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import boto3
from botocore.config import Config

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local.paths import REPOSITORY, LocalPaths, environment_python
from tritonstack.local.processes import ProcessRecord, ended_early, start_process

ACCOUNT = "123456789012"
REGION = "us-east-1"
EMULATOR_PORT = 4566
RUNTIME_PORT = 4567
START_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class LocalAws:
    """A running local AWS: where it listens and which processes it is made of."""

    emulator_port: int
    runtime_port: int
    emulator: ProcessRecord
    runtime: ProcessRecord

    @property
    def emulator_url(self) -> str:
        """Where every AWS API but InvokeEndpoint answers."""
        return f"http://127.0.0.1:{self.emulator_port}"

    @property
    def runtime_url(self) -> str:
        """Where InvokeEndpoint answers."""
        return f"http://127.0.0.1:{self.runtime_port}"

    @property
    def running(self) -> bool:
        """Whether both processes are alive."""
        return self.emulator.running and self.runtime.running

    def variables(self) -> dict[str, str]:
        """The environment variables that point any AWS SDK, the AWS CLI and the CDK at this local AWS."""
        paths = LocalPaths.from_environment()
        return {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.emulator_url,
            "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": self.runtime_url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "CDK_HOME": str(paths.cdk_home),
        }

    def client(self, service: str, *, config: Config | None = None) -> Any:
        """A boto3 client of this local AWS, whatever the calling process's own AWS settings are."""
        return boto3.client(
            service,
            endpoint_url=self.runtime_url if service == "sagemaker-runtime" else self.emulator_url,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",  # noqa: S106  (the emulator checks none)
            config=config or Config(retries={"total_max_attempts": 2}, read_timeout=75, max_pool_connections=32),
        )

    def session(self) -> LocalSession:
        """What takes the place of a ``boto3.Session`` where one is asked for."""
        return LocalSession(self)

    def runtime_status(self) -> dict[str, Any]:
        """The runtime's own account of its endpoints, fleets and loaded models.

        Raises:
            WorkFailedError: the runtime does not answer.
        """
        try:
            with urllib.request.urlopen(f"{self.runtime_url}/_tritonstack/status", timeout=10) as answer:  # noqa: S310
                status: dict[str, Any] = json.load(answer)
                return status
        except (OSError, ValueError) as error:
            raise WorkFailedError(f"the local runtime does not answer at {self.runtime_url}: {error}") from error


@dataclass(frozen=True)
class LocalSession:
    """Makes clients of the local AWS, like a ``boto3.Session``."""

    aws: LocalAws

    def client(self, service_name: str, *, config: Config | None = None) -> Any:
        """A boto3 client."""
        return self.aws.client(service_name, config=config)


def find_local_aws() -> LocalAws | None:
    """The local AWS that ``tritonstack up`` started and that still runs, or None."""
    record = LocalPaths.from_environment().record
    if not record.is_file():
        return None
    data = json.loads(record.read_text())
    aws = LocalAws(
        emulator_port=data["emulator_port"],
        runtime_port=data["runtime_port"],
        emulator=ProcessRecord(**data["emulator"]),
        runtime=ProcessRecord(**data["runtime"]),
    )
    return aws if aws.running else None


def require_local_aws() -> LocalAws:
    """The running local AWS.

    Raises:
        InputError: none runs.
    """
    aws = find_local_aws()
    if aws is None:
        raise InputError(
            [Problem(found="no local AWS is running", allowed="a running one", advice="tritonstack up (or make demo)")]
        )
    return aws


def start_local_aws(*, emulator_port: int, runtime_port: int, report: Callable[[str], None]) -> LocalAws:
    """Start the emulator and the runtime and wait until both answer.

    Args:
        emulator_port: the port of every AWS API; 0 takes a free one.
        runtime_port: the port of InvokeEndpoint; 0 takes a free one.
        report: called with each step as it begins.

    Raises:
        InputError: a port is taken, or the environments are not made yet.
        WorkFailedError: a process ended or did not answer in time; with the last lines of its log.
    """
    paths = LocalPaths.from_environment()
    _check_environments()
    clear_leftovers(paths)
    emulator_port, runtime_port = emulator_port or _free_port(), runtime_port or _free_port()
    _check_ports(emulator_port, runtime_port)
    report(f"local AWS on port {emulator_port}")
    emulator = _start_emulator(paths, emulator_port, runtime_port)
    try:
        _wait(f"http://127.0.0.1:{emulator_port}/_tritonstack/health", "the local AWS", emulator)
        report(f"SageMaker runtime on port {runtime_port}")
        runtime = _start_runtime(paths, emulator_port, runtime_port)
    except WorkFailedError:
        emulator.stop()
        raise
    aws = LocalAws(emulator_port=emulator_port, runtime_port=runtime_port, emulator=emulator, runtime=runtime)
    _write_record(paths, aws)
    try:
        _wait(f"http://127.0.0.1:{runtime_port}/_tritonstack/health", "the SageMaker runtime", runtime)
    except WorkFailedError:
        stop_local_aws()
        raise
    return aws


def stop_local_aws() -> bool:
    """Stop what ``start_local_aws`` started, the runtime (and its Tritons) first. Says whether anything ran."""
    paths = LocalPaths.from_environment()
    return clear_leftovers(paths)


def clear_leftovers(paths: LocalPaths) -> bool:
    """Stop whichever recorded processes are still alive and forget the record."""
    if not paths.record.is_file():
        return False
    data = json.loads(paths.record.read_text())
    records = [ProcessRecord(**data[name]) for name in ("runtime", "emulator")]
    ran = any(record.running for record in records)
    for record in records:
        record.stop()
    paths.record.unlink(missing_ok=True)
    return ran


def _start_emulator(paths: LocalPaths, port: int, runtime_port: int) -> ProcessRecord:
    temporary = paths.emulator / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", str(paths.root)),
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONUNBUFFERED": "1",
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "IOT_MTLS_ENABLED": "0",
        "STATE_DIR": str(paths.emulator / "state"),
        "TMPDIR": str(temporary),
        "NODE_PATH": str(REPOSITORY / "node_modules"),
        "TRITONSTACK_RUNTIME_URL": f"http://127.0.0.1:{runtime_port}",
    }
    return start_process(
        [str(environment_python("emulator")), "-m", "tritonstack.local.emulator"],
        environment=environment,
        folder=paths.emulator,
        log=paths.logs / "emulator.log",
    )


def _start_runtime(paths: LocalPaths, emulator_port: int, port: int) -> ProcessRecord:
    paths.runtime.mkdir(parents=True, exist_ok=True)
    return start_process(
        [
            str(environment_python("main")), "-m", "tritonstack.local.runtime",
            "--port", str(port), "--emulator", f"http://127.0.0.1:{emulator_port}", "--state", str(paths.runtime),
        ],
        environment={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"},
        folder=paths.runtime,
        log=paths.logs / "runtime.log",
    )  # fmt: skip


def _check_environments() -> None:
    missing = [name for name in ("main", "emulator", "backends") if not environment_python(name).exists()]
    if missing:
        raise InputError(
            [
                Problem(
                    found=f"the environments {', '.join(missing)} are not made yet",
                    allowed="environments under .envs/ as requirements/ pins them",
                    advice="make setup",
                )
            ]
        )


def _check_ports(*ports: int) -> None:
    problems = []
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                problems.append(
                    Problem(
                        field=f"port {port}",
                        found=f"{error.strerror} on 127.0.0.1",
                        allowed="a free port",
                        advice="tritonstack up --port 0 --runtime-port 0 takes free ones",
                    )
                )
    if problems:
        raise InputError(problems)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(url: str, name: str, process: ProcessRecord) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  (loopback, our own scheme)
                if answer.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if not process.running:
                raise ended_early(name, process) from None
        time.sleep(0.1)
    raise WorkFailedError(f"{name} did not answer within {START_SECONDS:.0f} s at {url}; its log: {process.log}")


def _write_record(paths: LocalPaths, aws: LocalAws) -> None:
    temporary = paths.record.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(aws), indent=2))
    temporary.replace(paths.record)
