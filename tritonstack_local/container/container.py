"""A container: one Triton server with its log, started from a container's environment, alone in its network."""

from __future__ import annotations

import http.client
import logging
import re
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tritonstack.errors import WorkFailedError
from tritonstack.models.python_failure import file_in_archive, program_failure
from tritonstack_local.container.isolation import Enclosure
from tritonstack_local.container.repository import TritonFiles, check_shell_path, prepare_backends
from tritonstack_local.container.serve import ServeExitError, serve_command

_VERSION = re.compile(rb"\| server_version +\| (\S+)")
_TABLE = ("|", "+--")
# What the server lists after a wrong flag: all flags, indented, in groups with a heading each.
_USAGE = "Usage: tritonserver"
_FLAGS = re.compile(r"\s|[A-Z][A-Za-z/ ]*:$|$")
_HEAD_BYTES = 1 << 20
_TAIL_BYTES = 1 << 17
_NOT_LOADED = re.compile(
    r"^error: creating server: .*?load failed for model '(?:[^']*::)?([^']*)': (.*?);?\s*(?:;\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""The end of a log of a server that did not start: the model and the message on it, which may have several lines."""


def _without_flags(text: str) -> Iterator[str]:
    """The lines outside the list of flags; after it the server may name an unexpected argument."""
    listing = False
    for line in text.splitlines():
        listing = line.startswith(_USAGE) or (listing and _FLAGS.match(line) is not None)
        if not listing:
            yield line


RELEASES = {"2.51.0": "24.10"}
"""Server version → release, for the servers that ``requirements/triton.in`` has pinned.

Source: NVIDIA numbers a release's server one minor version a month; the catalogue's rows on either side are 24.09 with
2.50.0 and 24.11 with 2.52.0.
"""


def release_and_version(server_version: str) -> str:
    """``24.10 (2.51.0)``; the version alone where it is none of ``RELEASES``."""
    release = RELEASES.get(server_version)
    return f"{release} ({server_version})" if release else server_version


SAGEMAKER_PORT = 8080
HTTP_PORT = 8000  # Triton's default
IMAGE_BACKENDS = "/opt/tritonserver/backends"  # where NVIDIA's image has them
PING_EVERY_SECONDS = 0.05
_log = logging.getLogger(__name__)


class ContainerFailedError(WorkFailedError):
    """The container could not be started, ended while it was waited for, or did not respond in time."""


@dataclass(frozen=True, kw_only=True)
class ContainerSettings:
    """The input of a container's start."""

    environment: Mapping[str, str]  # the variables of the SageMaker Model's container
    multi_model: bool  # its mode is MultiModel
    release: str | None = None  # the Triton release that its image names (``24.09``); decides which variables count
    model_data: Path | None = None  # the folder with the unpacked archive, in single-model mode
    namespace: bool = True  # False leaves the port open on purpose


@dataclass(frozen=True, kw_only=True)
class SingleModel:
    """Where the single model of a container is invoked."""

    path: str
    port: int


class TritonContainer:
    """A running Triton. Every method may be called from any thread; none needs an event loop.

    In asyncio: ``await asyncio.to_thread(container.wait_ready, 60)`` and
    ``await asyncio.shield(asyncio.wrap_future(container.exited))``: unshielded, giving up waiting cancels ``exited``.
    The process ends with this one, however this one ends.

    Attributes:
        isolation: ``namespace``, or ``open port: <why>``: then this machine's network reaches the server.
        notes: what the ``serve`` script does with the environment that a reader would not expect.
        exited: resolved with the exit code (128 + signal) once the server and all it started are gone.
        log_path: the output of the script and of the server; appended to.
    """

    def __init__(
        self, *, folder: Path, enclosure: Enclosure, port: int, notes: tuple[str, ...], single_model: SingleModel
    ) -> None:
        """Use ``TritonContainer.start``."""
        self._folder = folder
        self._enclosure = enclosure
        self._port = port
        self._single_model = single_model
        self.notes = notes
        self.isolation = enclosure.isolation
        self.exited: Future[int] = enclosure.exited
        self.log_path = folder / "triton.log"

    @classmethod
    def start(cls, settings: ContainerSettings, *, folder: Path, files: TritonFiles | None = None) -> Self:
        """Start the server; takes about 0.1 s, and does not wait until it responds.

        Raises ContainerFailedError: the ``serve`` script would end with exit code 1. Raises WorkFailedError: the
        server cannot run on this machine; the message names what to install.
        """
        files = files or TritonFiles.of_repository()
        files.check()
        folder = folder.resolve()
        mounts = _make_folders(folder, settings.model_data)
        prepare_backends(folder / "backends", files)
        with (folder / "triton.log").open("ab") as log:
            enclosure = Enclosure.open(mounts=mounts, log=log, namespace=settings.namespace)
            port = _port(settings.environment, isolated=enclosure.isolated)
            try:
                if not enclosure.isolated:
                    check_shell_path(folder)
                command = serve_command(
                    {**settings.environment, "SAGEMAKER_BIND_TO_PORT": str(port)},
                    multi_model=settings.multi_model,
                    model_data=settings.model_data,
                    release=settings.release,
                    multi_model_repository=str(folder / "repository"),
                    single_model_repository="/opt/ml/model/" if enclosure.isolated else f"{settings.model_data}/",
                )
                notes = command.notes
                if not enclosure.isolated:
                    warning = f"the SageMaker port is open to this machine's network ({enclosure.isolation})"
                    _log.warning("%s", warning)
                    notes = (*notes, f"WARNING: {warning}")
                log.write("".join(f"serve: {note}\n" for note in notes).encode())
                log.flush()
                arguments = _local_arguments(
                    IMAGE_BACKENDS if enclosure.isolated else str(folder / "backends"), files, enclosure.shm_prefix
                )
                single_model = SingleModel(path="/invocations", port=port)
                if command.generates is not None:
                    http_port = HTTP_PORT if enclosure.isolated else free_port()
                    single_model = SingleModel(path=command.generates, port=http_port)
                    arguments += ["--allow-http=true", f"--http-port={http_port}"]
                enclosure.launch(
                    [str(files.server), *command.argv[1:], *arguments],
                    env={**files.process_environment(), **command.env},
                )
            except ServeExitError as error:
                enclosure.close()
                log.write(f"serve: {error}\n".encode())
                raise ContainerFailedError(f"the container ended with exit code 1: {error}") from error
            except BaseException:
                enclosure.close()
                raise
        return cls(folder=folder, enclosure=enclosure, port=port, notes=notes, single_model=single_model)

    @property
    def pid(self) -> int:
        """The server's own process id, as this machine sees it."""
        return self._enclosure.pid

    @property
    def server_version(self) -> str | None:
        """The version off the server's start log (``2.51.0``); None before it is logged, or with the info log off."""
        with self.log_path.open("rb") as file:
            found = _VERSION.findall(file.read(_HEAD_BYTES))
        return found[-1].decode() if found else None

    def model_folder(self, name_hash: str) -> Path:
        """Folder that a model's archive is to be unpacked into before it is loaded (multi-model mode)."""
        return self._folder / "models" / name_hash / "model"

    def model_url(self, name_hash: str) -> str:
        """The ``url`` with which that model is loaded: its folder as the server sees it."""
        if self._enclosure.isolated:
            return f"/opt/ml/models/{name_hash}/model"
        return str(self.model_folder(name_hash))

    def connect(self) -> socket.socket:
        """A new socket connected to the SageMaker port, blocking, TCP_NODELAY set. Takes about 50 µs.

        Raises ConnectionError: the server does not listen yet, or has ended.
        """
        return self._enclosure.connect(self._port)

    @property
    def single_model_path(self) -> str:
        """The path that serves what ``/invocations`` of a single-model container does: another where it generates."""
        return self._single_model.path

    def connect_single_model(self) -> socket.socket:
        """A new socket, as ``connect`` makes them, to the port that serves ``single_model_path``."""
        return self._enclosure.connect(self._single_model.port)

    def ping(self, *, seconds: float = 2.0) -> int:
        """The status of ``GET /ping``: 200 ready, 400 not ready. Raises OSError: no response."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        connection.sock = self.connect()
        connection.sock.settimeout(seconds)
        try:
            connection.request("GET", "/ping")
            return connection.getresponse().status
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def wait_ready(self, timeout: float) -> None:
        """Send ``/ping`` until it returns 200, as SageMaker does.

        Raises ContainerFailedError: the server ended, or the time is over; with the log's last lines.

        Args:
            timeout: seconds; SageMaker's ContainerStartupHealthCheckTimeoutInSeconds.
        """
        deadline = time.monotonic() + timeout
        found = "no response"
        while time.monotonic() < deadline:
            try:
                status = self.ping()
            except OSError as error:
                found = f"no response ({error})"
            else:
                if status == 200:
                    return
                found = f"status {status}"
            try:
                code = self.exited.result(timeout=PING_EVERY_SECONDS)
            except NotYetError:
                continue
            raise ContainerFailedError(f"the container ended with exit code {code}. {self.reason()}")
        raise ContainerFailedError(f"/ping did not return 200 within {timeout:g} s: {found}. {self.reason()}")

    def log_end(self, *, since: int = 0) -> str:
        """The end of the log, as far as it is looked through for a reason; no byte before ``since``."""
        with self.log_path.open("rb") as file:
            file.seek(max(since, self.log_path.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")

    def not_loaded(self) -> tuple[str, str] | None:
        """The model that kept the server from starting, and the server's message on it."""
        found = _NOT_LOADED.search(self.log_end())
        return (found[1], found[2]) if found else None

    def reason(self) -> str:
        """Why the server did not start: its message on a model, of a Python program its traceback; else its log."""
        found = self.not_loaded()
        if found is None:
            return f"The last lines of its log:\n{self.log_tail()}"
        failure = program_failure(found[1])
        text = f"\n{failure.text(shown=file_in_archive, quoted=False)}" if failure else found[1]
        return f"Triton does not load {found[0]}: {text}"

    def log_tail(self, lines: int = 20) -> str:
        """The log's last lines, without what hides the reason: tables of settings, and all flags after a wrong one."""
        shown = _without_flags(self.log_end())
        return "\n".join([line for line in shown if line.strip() and not line.startswith(_TABLE)][-lines:])

    def stop(self, *, seconds: float = 10.0) -> int:
        """End the server: SIGTERM, and SIGKILL after ``seconds``, or at once where those are 0.

        Returns the exit code when all of it is gone.
        """
        if seconds:
            self._enclosure.signal(signal.SIGTERM)
        try:
            self.exited.result(timeout=seconds)
        except NotYetError:
            self._enclosure.signal(signal.SIGKILL)
        self._enclosure.close()
        return self.exited.result()

    def __enter__(self) -> Self:
        """The container itself; it is stopped on leaving."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop the container: at once after an exception, since a server that still loads does not react to SIGTERM."""
        if kind is None:
            self.stop()
        else:
            self.stop(seconds=0)


def _make_folders(folder: Path, model_data: Path | None) -> dict[Path, str]:
    """Make the container's folders. Returns which of them it sees where."""
    for name in ("models", "repository", "empty", "backends"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {
        folder / "models": "/opt/ml/models",
        (model_data or folder / "empty").resolve(): "/opt/ml/model",
        folder / "backends": IMAGE_BACKENDS,
    }


def _local_arguments(backends: str, files: TritonFiles, shm_prefix: str) -> list[str]:
    """Options for files that the image has at fixed places and this machine elsewhere; other listeners on loopback."""
    return [
        f"--backend-directory={backends}",
        f"--cache-directory={files.caches}",
        f"--backend-config=python,shm-region-prefix-name={shm_prefix}",
        "--allow-gpu-metrics=false",  # looking for a GPU takes 5 s
        "--http-address=127.0.0.1",
        "--grpc-address=127.0.0.1",
        "--metrics-address=127.0.0.1",
    ]


def _port(environment: Mapping[str, str], *, isolated: bool) -> int:
    """The SageMaker port: the container's own choice, else SageMaker's where the network is the container's alone."""
    chosen = environment.get("SAGEMAKER_BIND_TO_PORT")
    if chosen:
        return int(chosen)
    return SAGEMAKER_PORT if isolated else free_port()


def free_port() -> int:
    """A TCP port that nothing on this machine's loopback uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
