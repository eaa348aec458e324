"""``python -m tritonstack.local.trtexec.make FOLDER --release 24.09 --gpu T4``: the stand-ins of one image on one GPU.

Prints, as JSON, the variables that name the two programs. For those who run outside the project's environment.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.trtexec import tensorrt_candidates
from tritonstack.local.trtexec.launchers import machine_with, make_stand_ins


def stand_ins_of(folder: Path, *, release: str, gpu: str) -> dict[str, str]:
    """Make the programs and return their variables.

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
        raise LookupError(f"no GPU {gpu} is known (known: {sorted({o.gpu for o in catalogue.instances.values()})})")
    candidates = tensorrt_candidates(known, releases=tuple(catalogue.releases.values()))
    if not candidates:
        raise LookupError(f"no options are known of trtexec in Triton {release}")
    machine = machine_with(tensorrt=candidates[-1], gpu=gpu, compute_capability=capability)
    return make_stand_ins(folder, machine).environment()


def main(arguments: list[str]) -> int:
    """The program: 0, or 1 with a sentence."""
    parser = argparse.ArgumentParser(prog="tritonstack.local.trtexec.make")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--release", required=True)
    parser.add_argument("--gpu", required=True)
    given = parser.parse_args(arguments)
    try:
        sys.stdout.write(json.dumps(stand_ins_of(given.folder, release=given.release, gpu=given.gpu)) + "\n")
    except LookupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
