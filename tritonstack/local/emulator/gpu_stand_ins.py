"""The GPU of a build or of a job, of which there is none here: stand-ins for the image's trtexec and nvidia-smi.

The catalogue and the maker of the stand-ins need the project's own environment, so a process of it makes them.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import tempfile
import threading
from pathlib import Path

from tritonstack.local.paths import REPOSITORY, environment_python

_INSTANCES = REPOSITORY / "tritonstack/catalogue/data/instances.json"
_TRITON_IMAGE = re.compile(r"/sagemaker-tritonserver:(\d\d\.\d\d)-py3(-cpu)?$")
_SECONDS = 60.0
_making = threading.Lock()


class NoStandInsError(Exception):
    """None can be made; the text says why."""


def release_of(image: str) -> str | None:
    """The Triton release of an image with a GPU (``…/sagemaker-tritonserver:24.09-py3``); None of any other image."""
    match = _TRITON_IMAGE.search(image)
    return match[1] if match and not match[2] else None


def gpu_of(instance_type: str) -> str | None:
    """The GPU of an instance type of the catalogue (``ml.g4dn.xlarge`` → ``T4``); None of any other."""
    if instance_type not in _instances()["types"]:
        return None
    gpu: str = _instances()["families"][instance_type.split(".")[1]]["gpu"]
    return gpu


def known_instance_types() -> list[str]:
    """The types of which ``gpu_of`` knows the GPU."""
    return sorted(_instances()["types"])


def stand_in_variables(*, release: str, gpu: str) -> dict[str, str]:
    """The variables that name the stand-ins for a Triton release on a GPU, made once a pair; blocks for a second.

    Raises:
        NoStandInsError: the catalogue does not know the pair, or the project's environment is not there.
    """
    with _making:
        return dict(_made(release, gpu))


@functools.cache
def _made(release: str, gpu: str) -> dict[str, str]:
    folder = Path(tempfile.gettempdir()) / "gpu-stand-ins" / f"{release}-{gpu}"
    command = [str(environment_python("main")), "-m", "tritonstack.local.trtexec.make", str(folder)]
    try:
        made = subprocess.run(
            [*command, "--release", release, "--gpu", gpu],
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoStandInsError(f"the stand-ins for {gpu} could not be made: {error}") from error
    if made.returncode != 0:
        raise NoStandInsError(made.stderr.strip())
    variables: dict[str, str] = json.loads(made.stdout)
    return variables


@functools.cache
def _instances() -> dict[str, dict[str, dict[str, str]]]:
    read: dict[str, dict[str, dict[str, str]]] = json.loads(_INSTANCES.read_text(encoding="utf-8"))
    return read
