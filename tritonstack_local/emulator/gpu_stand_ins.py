"""The GPU of a build or of a job, of which there is none here: stand-ins for the image's trtexec and nvidia-smi."""

from __future__ import annotations

import functools
import re
import tempfile
import threading
from pathlib import Path

from tritonstack.catalogue import load_catalogue
from tritonstack_local.trtexec.launchers import stand_ins_of

_TRITON_IMAGE = re.compile(r"/sagemaker-tritonserver:(\d\d\.\d\d)-py3(-cpu)?$")
_making = threading.Lock()


class NoStandInsError(Exception):
    """No stand-ins can be made; the text is the reason."""


def release_of(image: str) -> str | None:
    """The Triton release of an image with a GPU (``…/sagemaker-tritonserver:24.09-py3``); None of any other image."""
    match = _TRITON_IMAGE.search(image)
    return match[1] if match and not match[2] else None


def gpu_of(instance_type: str) -> str | None:
    """The GPU of an instance type of the catalogue (``ml.g4dn.xlarge`` → ``T4``); None of any other."""
    instance = load_catalogue().instance(instance_type)
    return instance.gpu if instance else None


def known_instance_types() -> list[str]:
    """The types of which ``gpu_of`` knows the GPU."""
    return sorted(load_catalogue().instances)


def stand_in_variables(*, release: str, gpu: str) -> dict[str, str]:
    """The variables that name the stand-ins for a Triton release on a GPU; made once a pair, for the emulator's life.

    Raises:
        NoStandInsError: the catalogue does not know the pair.
    """
    with _making:
        return dict(_made(release, gpu))


@functools.cache
def _made(release: str, gpu: str) -> dict[str, str]:
    folder = Path(tempfile.gettempdir()) / "gpu-stand-ins" / f"{release}-{gpu}"
    try:
        return stand_ins_of(folder, release=release, gpu=gpu)
    except LookupError as error:
        raise NoStandInsError(str(error)) from error
