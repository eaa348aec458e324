"""The stand-ins of one Triton image on one GPU, as the catalogue knows both."""

from __future__ import annotations

from pathlib import Path

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.options import tensorrt_candidates
from tritonstack_local.trtexec.launchers import machine_with, make_stand_ins


def stand_ins_of(folder: Path, *, release: str, gpu: str) -> dict[str, str]:
    """Make the programs in ``folder`` and return the variables that name them.

    Of a release whose TensorRT is not known for certain the newest candidate is taken.

    Raises:
        LookupError: no such release or GPU is known, or no options of the release's TensorRT.
    """
    catalogue = load_catalogue()
    known = catalogue.release(release)
    if known is None:
        raise LookupError(f"no Triton release {release} is known")
    capability = next((one.compute_capability for one in catalogue.instances.values() if one.gpu == gpu), None)
    if capability is None:
        named = ", ".join(sorted({one.gpu for one in catalogue.instances.values()}))
        raise LookupError(f"no GPU {gpu} is known (known: {named})")
    candidates = tensorrt_candidates(known, releases=tuple(catalogue.releases.values()))
    if not candidates:
        raise LookupError(f"no options are known of trtexec in Triton {release}")
    machine = machine_with(tensorrt=candidates[-1], gpu=gpu, compute_capability=capability)
    return make_stand_ins(folder, machine).environment()
