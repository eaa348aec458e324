"""What a fleet needs of a container, and the real one."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tritonstack_local.container import ContainerSettings, TritonContainer, prepare_model_data
from tritonstack_local.container.pbtxt import ConfigSyntaxError

_RELEASE = re.compile(r":(\d\d\.\d\d)-py3")
logger = logging.getLogger("tritonstack.runtime")


def release_of(image: str) -> str | None:
    """The Triton release that an image's tag names (``…:24.09-py3`` → ``24.09``)."""
    found = _RELEASE.search(image)
    return found[1] if found else None


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """What a container is started from.

    Attributes:
        folder: the container's own folder; its models lie in ``models/<hash>/model``.
        model_data: the unpacked archive of a single-model endpoint.
    """

    image: str
    environment: Mapping[str, str]
    multi_model: bool
    folder: Path
    model_data: Path | None

    @property
    def release(self) -> str | None:
        """The Triton release that the image's tag names."""
        return release_of(self.image)


class Container(Protocol):
    """A started container. Methods block."""

    isolation: str
    notes: tuple[str, ...]
    exited: Future[int]
    log_path: Path

    @property
    def pid(self) -> int:
        """The server's process id."""

    @property
    def server_version(self) -> str | None:
        """The server's own version, once it has logged it."""

    def connect(self) -> socket.socket:
        """A connected socket. Raises OSError."""

    def model_url(self, name_hash: str) -> str:
        """What the server is told to load for ``models/<hash>/model``."""

    def log_tail(self, lines: int = 20) -> str:
        """The log's last lines."""

    def stop(self, *, seconds: float = 10.0) -> int:
        """End it and all it started."""


Launch = Callable[[LaunchPlan], Container]


def launch_triton(plan: LaunchPlan) -> TritonContainer:
    """Start the real Triton. Raises WorkFailedError."""
    settings = ContainerSettings(
        environment=plan.environment,
        multi_model=plan.multi_model,
        release=plan.release,
        model_data=plan.model_data,
    )
    return TritonContainer.start(settings, folder=plan.folder)


def prepare_for_here(folder: Path, release: str | None) -> None:
    """Change an unpacked model in place so that it loads without a GPU, and with the local server's Python.

    A configuration that cannot be read is left as it is: Triton then refuses it in its own words.
    """
    try:
        for change in prepare_model_data(folder, release=release):
            logger.info("%s", change)
    except ConfigSyntaxError as error:
        logger.warning("left as it is, for Triton to judge: %s", error)
