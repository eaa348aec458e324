"""The machine that the stand-ins show, and the nvidia-smi stand-in itself.

``nvidia-smi-stand-in MACHINE --query-gpu=… --format=csv,noheader``: one GPU, as the machine's file describes it;
``-q -d COMPUTE`` prints the driver and the newest CUDA that it supports.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

DRIVER = "0.0.stand-in"
"""No driver's version; recognisable in a manifest."""

ANY_CUDA = "99.0"
"""Newer than any: a stand-in's driver fits the image unless a test sets another."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The properties that a machine reports."""

    tensorrt: str  # TensorRT's version, such as ``10.4.0``
    options: tuple[str, ...]  # what its trtexec takes
    # ``--option=value`` that only newer versions take, though this one has the option
    later_values: tuple[str, ...] = ()
    gpu: str  # the GPU's name, such as ``A10G``
    compute_capability: str  # its compute capability, such as ``8.6``
    driver: str = DRIVER  # the driver's version
    cuda: str = ANY_CUDA  # the newest CUDA that the driver supports; empty: nvidia-smi does not print it
    compat: str = ""  # what the entrypoint finds when it tries CUDA's forward compatibility; empty: it tries nothing

    @classmethod
    def read(cls, path: Path) -> Machine:
        """The machine that :meth:`write` wrote."""
        fields: dict[str, Any] = json.loads(path.read_text())
        return cls(**{**fields, "options": tuple(fields["options"]), "later_values": tuple(fields["later_values"])})

    def write(self, path: Path) -> None:
        """Write it for the programs."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @property
    def number(self) -> str:
        """TensorRT's version as trtexec's first line has it: ``8601``, ``100400``."""
        major, minor, patch = [*map(int, self.tensorrt.split(".")), 0, 0][:3]
        return f"{major}{minor:02}{patch:02}" if major >= 10 else f"{major}{minor}{patch:02}"

    @property
    def int64_tensors(self) -> bool:
        """Whether an engine's tensor may be INT64: since TensorRT 10; before, it is INT32."""
        return self.major >= 10

    @property
    def major(self) -> int:
        return int(self.tensorrt.split(".")[0])

    @property
    def is_strongly_typed(self) -> bool:
        """Whether a network has the types of its graph, whatever the options: since TensorRT 11."""
        return self.major >= 11


def main(arguments: list[str]) -> int:
    """The program. Like nvidia-smi it names an unknown field and fails."""
    machine = Machine.read(Path(arguments[0]))
    known = {
        "name": f"NVIDIA {machine.gpu} (nvidia-smi-stand-in)",
        "compute_cap": machine.compute_capability,
        "driver_version": machine.driver,
    }
    if arguments[1:] == ["-q", "-d", "COMPUTE"]:
        cuda_line = f"CUDA Version                              : {machine.cuda}\n" if machine.cuda else ""
        sys.stdout.write(f"Driver Version                            : {machine.driver}\n{cuda_line}")
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
