"""``nvidia-smi-stand-in MACHINE --query-gpu=… --format=csv,noheader``: one GPU, as the machine's file says.

``-q -d COMPUTE`` answers with the driver and the newest CUDA that it supports.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tritonstack_local.trtexec.machine import Machine


def main(arguments: list[str]) -> int:
    """The program. Like nvidia-smi it says which field it does not know, and fails."""
    machine = Machine.read(Path(arguments[0]))
    known = {
        "name": f"NVIDIA {machine.gpu} (nvidia-smi-stand-in)",
        "compute_cap": machine.compute_capability,
        "driver_version": machine.driver,
    }
    if arguments[1:] == ["-q", "-d", "COMPUTE"]:
        told = f"CUDA Version                              : {machine.cuda}\n" if machine.cuda else ""
        sys.stdout.write(f"Driver Version                            : {machine.driver}\n{told}")
        return 0
    asked = next((one.partition("=")[2] for one in arguments if one.startswith("--query-gpu=")), "")
    fields = asked.split(",") if asked else []
    unknown = [field for field in fields if field not in known]
    if unknown or not fields or "--format=csv,noheader" not in arguments:
        sys.stdout.write(f"nvidia-smi-stand-in: Field {unknown or arguments[1:]} is not a valid field to query.\n")
        return 2
    sys.stdout.write(", ".join(known[field] for field in fields) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
