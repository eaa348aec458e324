"""The real Triton as judge: SageMaker's calls to one running container, a repository after the other."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeVar

from tests.differential.tables import Mutation
from tritonstack_local.container import ContainerFailedError, ContainerSettings, TritonContainer

_ENVIRONMENT = {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
_RELEASE = "24.09"

LOAD_SECONDS = 60.0
GIVE_UP_SECONDS = 8.0
"""After this a server that loads a Python model in 2 s is taken not to answer any more."""
NO_RESPONSE = -1
"""What a request counts as that is not answered in that time."""
MOST_LOADED = 10
"""What one server keeps loaded: every instance of a Python model is a process."""
SIDE_BY_SIDE = 4
"""Servers at once: a load waits more than it computes."""
CRASHED = 128 + signal.SIGSEGV
"""What ``exited`` tells of a server that ended by its own fault."""
Case = TypeVar("Case")
Verdict = TypeVar("Verdict")
_ARCHIVE = re.compile(r"\b[0-9a-f]{16}\b")


@dataclass(frozen=True)
class ServerResponse:
    """What the server made of a repository.

    Attributes:
        accepted: it was loaded.
        output: the response's body and what the server logged meanwhile.
    """

    accepted: bool
    output: str


class Server:
    """A multi-model container.

    What it has loaded stays loaded, since unloading takes 2 s; but not an ensemble: Triton loads every ensemble anew
    whose steps have the names of a later archive's models, other namespace or not.
    """

    def __init__(self, container: TritonContainer) -> None:
        self._container = container
        self._loads = 0
        self._accepted = 0

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[Server]:
        """A running container, ended on leaving."""
        settings = ContainerSettings(environment=_ENVIRONMENT, multi_model=True, release=_RELEASE)
        with TritonContainer.start(settings, folder=folder) as container:
            container.wait_ready(60)
            yield cls(container)

    @property
    def ended(self) -> bool:
        """Whether the container is of no use any more: it has ended, or is to load nothing more."""
        return self._container.exited.done() or self._accepted >= MOST_LOADED

    def load(self, mutation: Mutation, *, seconds: float = LOAD_SECONDS) -> ServerResponse:
        """Lay out the repository where SageMaker unpacks archives, untouched, and load it."""
        loaded, name = self.load_laid_out(mutation.write, seconds=seconds)
        if loaded.accepted and sum(path.endswith("/config.pbtxt") for path in mutation.base.files) > 1:  # an ensemble
            self.unload(name, seconds=seconds)
        return loaded

    def unload(self, name: str, *, seconds: float = LOAD_SECONDS) -> None:
        """Unload an archive. Triton 24.10 rarely crashes at an ensemble's: the verdict on the load stays."""
        try:
            self._call("DELETE", f"/models/{name}", None, of=name, seconds=seconds)
        except ConnectionError:
            if self._container.exited.result(timeout=GIVE_UP_SECONDS) != CRASHED:
                raise

    def load_laid_out(
        self, lay_out: Callable[[Path], None], *, seconds: float = LOAD_SECONDS
    ) -> tuple[ServerResponse, str]:
        """Load what ``lay_out`` writes to the folder of a new name. Returns that name too."""
        self._loads += 1
        name = f"{self._loads:016x}"
        lay_out(self._container.model_folder(name))
        logged = self._container.log_path.stat().st_size
        url = self._container.model_url(name)
        status, body = self._call("POST", "/models", {"model_name": name, "url": url}, of=name, seconds=seconds)
        output = f"{body}\n{self._log(since=logged, of=name)}"
        if status not in (200, 400):
            raise AssertionError(f"status {status}: {output}")
        self._accepted += status == 200
        return ServerResponse(status == 200, output), name

    def load_or_give_up(self, mutation: Mutation) -> ServerResponse:
        """Load a repository that may stop the server or get no response. The container is of no use afterwards."""
        try:
            return self.load(mutation, seconds=GIVE_UP_SECONDS)
        except TimeoutError:
            os.kill(self._container.pid, signal.SIGKILL)  # it would not heed a request to end for 10 s
            return ServerResponse(accepted=False, output=self._container.log_path.read_text(errors="replace"))
        except ConnectionError:
            self._container.exited.result(timeout=GIVE_UP_SECONDS)
            return ServerResponse(accepted=False, output=self._container.log_path.read_text(errors="replace"))

    def infer(self, name: str, shapes: Mapping[str, Sequence[int]]) -> int:
        """Status of a request with tensors of these shapes to a loaded archive; ``NO_RESPONSE`` without a response."""
        tensors = [
            {"name": each, "datatype": "FP32", "shape": list(shape), "data": [0.5] * math.prod(shape)}
            for each, shape in shapes.items()
        ]
        try:
            return self._call("POST", f"/models/{name}/invoke", {"inputs": tensors}, of=name, seconds=GIVE_UP_SECONDS)[
                0
            ]
        except TimeoutError:
            return NO_RESPONSE

    def _log(self, *, since: int, of: str) -> str:
        """The lines logged since a byte, without those about other archives: some are loaded anew in between."""
        with self._container.log_path.open("rb") as log:
            log.seek(since)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(line for line in lines if set(_ARCHIVE.findall(line)) <= {of})

    def _call(
        self, method: str, path: str, body: Mapping[str, object] | None, *, of: str, seconds: float
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection("container")
        connection.sock = self._container.connect()
        connection.sock.settimeout(seconds)
        headers = {"Content-Type": "application/json", "X-Amzn-SageMaker-Target-Model": f"{of}.tar.gz"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        try:
            return response.status, response.read().decode(errors="replace")  # Triton cuts a long text anywhere
        finally:
            connection.close()


def judged(cases: Iterable[Case], judge: Callable[[Server, Case], tuple[Verdict, bool]], folder: Path) -> list[Verdict]:
    """The verdicts of ``judge`` in the cases' order, from several servers in parallel.

    ``judge`` also returns whether the server still responds. One that has ended, is full or is silent is replaced.
    """
    waiting, verdicts = deque(enumerate(cases)), dict[int, Verdict]()

    def work(name: int) -> None:
        for number in count():
            if not waiting:
                return
            with Server.running(folder / f"container-{name}-{number}") as server:
                responds = True
                while responds and not server.ended:
                    try:
                        index, case = waiting.popleft()
                    except IndexError:
                        return
                    verdicts[index], responds = judge(server, case)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(work, range(SIDE_BY_SIDE)))
    return [verdicts[index] for index in sorted(verdicts)]


def start_single(model_data: Path, folder: Path, *, default_model: str | None = None) -> ServerResponse:
    """Start a single-model container on a repository, untouched; ``default_model``: the model that requests go to."""
    named = {} if default_model is None else {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": default_model}
    settings = ContainerSettings(
        environment={**_ENVIRONMENT, **named}, multi_model=False, release=_RELEASE, model_data=model_data
    )
    try:
        with TritonContainer.start(settings, folder=folder) as container:
            container.wait_ready(LOAD_SECONDS)
    except ContainerFailedError:
        return ServerResponse(accepted=False, output=(folder / "triton.log").read_text(errors="replace"))
    return ServerResponse(accepted=True, output="")
