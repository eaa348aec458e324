"""A second, named way to start the server: its HTTP and gRPC ports on loopback, for load generators.

SageMaker's flags switch both protocols off, and most generators know no other. What is measured is the same server,
the same backends and the same configuration, without SageMaker's front end.
"""

from __future__ import annotations

import signal
import urllib.error
import urllib.request
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from pathlib import Path
from typing import Self

from tritonstack_local.container.container import ContainerFailedError, free_port, last_lines
from tritonstack_local.container.isolation import Enclosure
from tritonstack_local.container.repository import TritonFiles, check_shell_path, prepare_backends, served_view

POLL_SECONDS = 0.05


class BenchServer:
    """A server for load generators. Its ports are bound to loopback, so any process of this machine reaches them.

    Attributes:
        http, grpc, metrics: ports on 127.0.0.1.
        exited: resolved with the exit code when the server has ended.
        log_path: its log.
    """

    def __init__(self, *, folder: Path, enclosure: Enclosure, ports: tuple[int, int, int]) -> None:
        """Use ``BenchServer.start``."""
        self.http, self.grpc, self.metrics = ports
        self._enclosure = enclosure
        self.exited: Future[int] = enclosure.exited
        self.log_path = folder / "triton.log"

    @classmethod
    def start(cls, repository: Path, *, folder: Path, files: TritonFiles | None = None) -> Self:
        """Start the server on every model of a repository, and wait until they are loaded.

        Raises ContainerFailedError: the server ended, with its log's last lines. Raises WorkFailedError: the server
        cannot run on this machine.
        """
        files = files or TritonFiles.of_repository()
        files.check()
        folder = folder.resolve()
        check_shell_path(folder)
        served_view(repository.resolve(), folder / "models")
        prepare_backends(folder / "backends", files)
        ports = (free_port(), free_port(), free_port())
        with (folder / "triton.log").open("wb") as log:
            enclosure = Enclosure.open(mounts={}, log=log, namespace=False)
            arguments = (
                f"--model-repository={folder / 'models'}",
                "--model-control-mode=explicit",
                "--load-model=*",
                "--allow-sagemaker=false",
                "--allow-gpu-metrics=false",
                f"--backend-directory={folder / 'backends'}",
                f"--cache-directory={files.caches}",
                f"--backend-config=python,shm-region-prefix-name={enclosure.shm_prefix}",
                *(f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")),
                *(f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), ports, strict=True)),
            )
            enclosure.launch([str(files.server), *arguments], env=files.process_environment())
        server = cls(folder=folder, enclosure=enclosure, ports=ports)
        try:
            server._wait_ready()
        except BaseException:
            server.stop()
            raise
        return server

    def stop(self) -> int:
        """End the server. Returns its exit code."""
        self._enclosure.signal(signal.SIGTERM)
        try:
            self.exited.result(timeout=10)
        except NotYetError:
            self._enclosure.signal(signal.SIGKILL)
        self._enclosure.close()
        return self.exited.result()

    def _wait_ready(self) -> None:
        """Wait until every model is loaded; the server itself gives up where one cannot be."""
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/v2/health/ready", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                pass
            try:
                code = self.exited.result(timeout=POLL_SECONDS)
            except NotYetError:
                continue
            log_end = last_lines(self.log_path, 20)
            raise ContainerFailedError(
                f"the server ended with exit code {code}. The last lines of {self.log_path}:\n{log_end}"
            )
