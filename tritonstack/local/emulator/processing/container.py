"""What stands for a job's container: a folder for ``/opt/ml``, and the entrypoint in a process group of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from ministack.core.responses import get_account_id, get_region

from tritonstack.local.emulator.processing.failure import JobFailedError
from tritonstack.local.emulator.processing.record import ProcessingJob, shortened

_OPT_ML = re.compile(r"(?<![\w./-])/opt/ml(?=/|$)")
OPT_ML_VARIABLE = "TRITONSTACK_OPT_ML"
"""Names the folder to programs that have a path below ``/opt/ml`` of their own, which nobody can rewrite."""


class Container:
    """The folder and the process. ``wait`` blocks; the rest does not."""

    def __init__(self, root: Path, job: ProcessingJob) -> None:
        """``root`` is an empty folder: below it lies ``opt/ml``."""
        self._root = root
        self._job = job
        self.process: subprocess.Popen[str] | None = None
        self._gone = False
        (self.path("/opt/ml/output")).mkdir(parents=True)
        self._write_config()

    def path(self, inside: str) -> Path:
        """Where a path of the container lies."""
        return self._root / inside.lstrip("/")

    def rewritten(self, text: str) -> str:
        """A text with the container's paths below ``/opt/ml`` replaced."""
        return _OPT_ML.sub(str(self._root / "opt/ml"), text)

    def start(self, variables: dict[str, str]) -> None:
        """Start the entrypoint in a process group of its own; raises JobFailedError where it is not there.

        Args:
            variables: of the stand-ins.
        """
        application = self._job.request["AppSpecification"]
        command = [*application["ContainerEntrypoint"], *application.get("ContainerArguments", [])]
        try:
            self.process = subprocess.Popen(
                [self.rewritten(one) for one in command],
                cwd=self._root,
                env=self._environment() | variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise JobFailedError(f"ClientError: the entrypoint could not be started: {error}") from error

    def signal(self, number: int) -> None:
        """Send a signal to the whole group, if any of it is left."""
        if self.process is not None and not self._gone:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def end(self) -> None:
        """End the entrypoint and what it left behind, as a container ends with its first process."""
        self.signal(signal.SIGKILL)
        # Once the first process is gone and waited for, another group of this machine may get its number.
        self._gone = self.process is not None and self.process.returncode is not None

    def message(self) -> str | None:
        """The first KB of what the entrypoint wrote for ``ExitMessage``; None where it wrote nothing.

        Raises:
            JobFailedError: it is not UTF-8.
        """
        try:
            text = self.path("/opt/ml/output/message").read_bytes().decode()
        except OSError:
            return None
        except UnicodeDecodeError as error:
            raise JobFailedError("ClientError: /opt/ml/output/message is not encoded in UTF-8") from error
        return shortened(text)

    def _environment(self) -> dict[str, str]:
        """The request's variables; with them, unless the job is isolated from the network, the way to the local AWS."""
        given = {name: self.rewritten(value) for name, value in self._job.request.get("Environment", {}).items()}
        # ``python3`` must be found wherever the emulator runs: at last, that of its own environment.
        own = {
            "PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)]),
            "HOME": str(self._root),
            "AWS_REGION": get_region(),
            OPT_ML_VARIABLE: str(self._root / "opt/ml"),
        }
        if not self._job.request.get("NetworkConfig", {}).get("EnableNetworkIsolation"):
            own |= {
                "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
                "AWS_ACCESS_KEY_ID": get_account_id(),
                "AWS_SECRET_ACCESS_KEY": "testing",
            }
        return own | given

    def _write_config(self) -> None:
        """The two files that SageMaker writes for the container (developer guide, "How … Configures …")."""
        folder = self.path("/opt/ml/config")
        folder.mkdir()
        described: dict[str, Any] = {"ProcessingJobArn": self._job.arn, **self._job.request}
        (folder / "processingjobconfig.json").write_text(json.dumps(described))
        (folder / "resourceconfig.json").write_text(json.dumps({"current_host": "algo-1", "hosts": ["algo-1"]}))
