"""The local AWS, an optional package found by its entry point and never imported."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from tritonstack.errors import WorkFailedError
from tritonstack.extensions import extensions, not_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from botocore.config import Config

GROUP = "tritonstack.local_aws"
POLL_SECONDS = 15.0
LOCAL_POLL_SECONDS = 0.25
"""Between two polls of a remote job; the local AWS limits no calls."""


class RunningLocalAws(Protocol):
    """A local AWS that runs."""

    @property
    def emulator_url(self) -> str:
        """URL of every AWS API but InvokeEndpoint."""
        ...

    def session(self) -> LocalSession:
        """A session of it."""
        ...

    def runtime_status(self) -> dict[str, Any]:
        """Its endpoints, fleets and loaded models. Raises WorkFailedError where it does not respond."""
        ...


@runtime_checkable
class LocalSession(Protocol):
    """Makes clients of a local AWS, like a ``boto3.Session``."""

    @property
    def aws(self) -> RunningLocalAws:
        """The local AWS."""
        ...

    def client(self, service_name: str, *, config: Config | None = None) -> Any:
        """A boto3 client."""
        ...


class RunningProcess(Protocol):
    """A process of the local AWS, or of a project's environments."""

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    @property
    def command(self) -> str:
        """What it runs, shortened."""
        ...

    @property
    def end(self) -> str:
        """The command that ends it."""
        ...


class LackingModuleError(WorkFailedError):
    """A Python model needs a module that its environment's stand-in lacks, or a GPU; the message names it.

    The model itself may be faultless.
    """


@dataclass(frozen=True, kw_only=True)
class ContainerResponse:
    """The response of the local Triton to a sample request."""

    outputs: dict[str, np.ndarray[Any, Any]]  # by name
    stand_ins: tuple[str, ...]  # local replacements of what serves in the cloud
    tools: dict[str, str]  # the server's version by its name
    peak_bytes: int  # its memory at most: the sum over its processes of the most that each held, resident


class LocalAwsPackage(Protocol):
    """What this package uses of the installed local AWS: the module that its entry point names."""

    def find_local_aws(self) -> RunningLocalAws | None:
        """The local AWS that runs, or None."""
        ...

    def require_local_aws(self) -> RunningLocalAws:
        """The local AWS that runs; raises where there is none."""
        ...

    def running_processes(self, environments: Path) -> Sequence[RunningProcess]:
        """What runs of the local AWS, and what else runs in the folder of environments; never this process."""
        ...

    def left_regions(self) -> Sequence[Path]:
        """Shared memory regions of this user's Tritons that have ended."""
        ...

    def left_environment_folders(self) -> Sequence[Path]:
        """Empty folders of this user that Triton's Python backend made to unpack an environment into."""
        ...

    def answer_in_container(
        self,
        repository: Path,
        *,
        model: str,
        needs: Collection[str],
        request: Mapping[str, np.ndarray[Any, Any]],
        environments: Mapping[str, Path],
        loads: tuple[str, ...],
        streamed: Mapping[str, str] | None,
        work: Path,
        report: Callable[[str], None],
    ) -> ContainerResponse:
        """Load a model repository in the local Triton, ``loads`` in addition to the model, and send one request.

        ``environments``: file of the repository → the execution environment that takes its place. ``streamed``: of a
        decoupled model output → datatype; the values of its responses are joined.
        """
        ...


@cache
def installed() -> LocalAwsPackage | None:
    """The installed local AWS, the module ``tritonstack_local.plugin``; None without one."""
    return next(iter(extensions(GROUP).values()), None)


def require_package() -> LocalAwsPackage:
    """The installed local AWS. Raises :class:`InputError` without one."""
    package = installed()
    if package is None:
        raise not_installed("psutil")
    return package


def find_local_aws() -> RunningLocalAws | None:
    """The local AWS that runs, or None. Raises InputError where the record of it is damaged."""
    package = installed()
    return None if package is None else package.find_local_aws()


def require_local_aws() -> RunningLocalAws:
    """The local AWS that runs.

    Raises:
        InputError: none is installed, none runs, it is still starting, or the record of it is damaged.
        WorkFailedError: a part of it has ended.
    """
    return require_package().require_local_aws()


def is_local(client: Any) -> bool:
    """Whether a boto3 client talks to a local AWS: its endpoint URL is of this machine.

    The URL is what botocore makes of its settings: ``AWS_ENDPOINT_URL``, ``AWS_ENDPOINT_URL_<SERVICE>``,
    ``endpoint_url`` of the profile or of its services section, ``AWS_IGNORE_CONFIGURED_ENDPOINT_URLS`` (AWS SDKs and
    tools reference guide, "Service-specific endpoints"). Services may differ: take a client of the one that answers.
    """
    host = urlsplit(str(client.meta.endpoint_url)).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")  # RFC 6761


def poll_seconds(client: Any) -> float:
    """Seconds between two polls of a remote job."""
    return LOCAL_POLL_SECONDS if is_local(client) else POLL_SECONDS
