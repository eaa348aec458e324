"""Makes the stand-in programs of one Triton image on one GPU."""

from __future__ import annotations

import functools
import re
import shlex
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.trtexec_options import takes_option, tensorrt_candidates, trtexec_options, trtexec_table
from tritonstack.paths import environment_python
from tritonstack_local.library import library_path
from tritonstack_local.trtexec.machine import Machine


@dataclass(frozen=True, kw_only=True)
class StandIns:
    """The programs' paths."""

    trtexec: Path
    nvidia_smi: Path
    entrypoint: Path

    def environment(self) -> dict[str, str]:
        """The variables with which ``engine_step.py`` takes them for the image's own programs."""
        return {
            "TRITONSTACK_TRTEXEC": str(self.trtexec),
            "TRITONSTACK_NVIDIA_SMI": str(self.nvidia_smi),
            "TRITONSTACK_NVIDIA_ENTRYPOINT": str(self.entrypoint),
        }


def machine_with(*, tensorrt: str, gpu: str, compute_capability: str, **driver: str) -> Machine:
    """A machine whose trtexec takes exactly the options of a TensorRT version; ``driver``: fields of ``Machine``.

    Raises LookupError: the catalogue has no options of that version.
    """
    options = trtexec_options(tensorrt)
    later = [
        f"{option}={value}"
        for option, values in trtexec_table().values.items()
        for value in values
        if option in options and not takes_option(tensorrt, option, value)
    ]
    return Machine(
        tensorrt=tensorrt,
        options=tuple(sorted(options)),
        later_values=tuple(later),
        gpu=gpu,
        compute_capability=compute_capability,
        **driver,
    )


def make_stand_ins(folder: Path, machine: Machine) -> StandIns:
    """Write ``trtexec-stand-in``, ``nvidia-smi-stand-in`` and ``nvidia_entrypoint-stand-in.sh``.

    The last one does what NVIDIA's entrypoint does: it prints the outcome of CUDA's forward compatibility, from the
    variable of ``/etc/shinit_v2``, and runs its arguments.
    """
    python = environment_python("backends")
    folder.mkdir(parents=True, exist_ok=True)
    described = folder / "machine.json"
    machine.write(described)
    made = {}
    for name, module in (
        ("trtexec-stand-in", "tritonstack_local.trtexec"),
        ("nvidia-smi-stand-in", "tritonstack_local.trtexec.machine"),
    ):
        made[name] = folder / name
        command = shlex.join([str(python), "-m", module, str(described)])
        made[name].write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(library_path()))} exec {command} "$@"\n')
        made[name].chmod(0o755)
    entrypoint = folder / "nvidia_entrypoint-stand-in.sh"
    tried = f"export _CUDA_COMPAT_STATUS={shlex.quote(machine.compat)}\n" if machine.compat else ""
    entrypoint.write_text(f'#!/bin/sh\necho "== nvidia_entrypoint-stand-in =="\n{tried}exec "$@"\n')
    entrypoint.chmod(0o755)
    return StandIns(trtexec=made["trtexec-stand-in"], nvidia_smi=made["nvidia-smi-stand-in"], entrypoint=entrypoint)


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
    """The types whose GPU ``gpu_of`` returns."""
    return sorted(load_catalogue().instances)


def stand_in_variables(image: str, *, gpu: str | None) -> tuple[dict[str, str], str]:
    """The variables that name the stand-ins for an image on a GPU, and a line for the log about them.

    None for an image without a GPU's programs. The stand-ins are made once a pair, until the emulator ends. Raises
    NoStandInsError: the catalogue does not have the pair.
    """
    release = release_of(image)
    if release is None or gpu is None:
        return {}, f"No GPU, and no stand-ins for trtexec and nvidia-smi: {image} is no Triton image with a GPU."
    with _making:
        made = dict(_made(release, gpu))
    return made, f"No GPU: {gpu} and the trtexec of Triton {release} are stand-ins, which build no engine."


@functools.cache
def _made(release: str, gpu: str) -> dict[str, str]:
    """For a release whose TensorRT version is uncertain, the newest candidate is taken."""
    catalogue = load_catalogue()
    known = catalogue.release(release)
    if known is None:
        raise NoStandInsError(f"no Triton release {release} is known")
    capability = next((one.compute_capability for one in catalogue.instances.values() if one.gpu == gpu), None)
    if capability is None:
        named = ", ".join(sorted({one.gpu for one in catalogue.instances.values()}))
        raise NoStandInsError(f"no GPU {gpu} is known (known: {named})")
    candidates = tensorrt_candidates(known, releases=tuple(catalogue.releases.values()))
    if not candidates:
        raise NoStandInsError(f"no options are known of trtexec in Triton {release}")
    machine = machine_with(tensorrt=candidates[-1], gpu=gpu, compute_capability=capability)
    folder = Path(tempfile.gettempdir()) / "gpu-stand-ins" / f"{release}-{gpu}"
    return make_stand_ins(folder, machine).environment()
