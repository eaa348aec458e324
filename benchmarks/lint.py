"""The linter over two hundred model folders in one process, against the same over one of them.

    python -m benchmarks lint

Returns 1 where a bound is missed. The folders are those that the differential tests draw, all kinds in turn, and an
ONNX file of 200 MB among them, whose weights the linter must not hold in memory.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.measuring import Figure, in_turns, ratio, tell, timed
from tests.differential.corpus.kinds import corpus
from tests.lint.onnx_files import write_graph

FOLDERS = 200
ROUNDS = 3
SECONDS = 20.0
MEMORY_MIB = 150
TIMES_ONE = 20.0
WEIGHTS_MB = 200

_LINT = """
import sys
from pathlib import Path
from tritonstack.lint.checks import lint_folder
found = sum(len(lint_folder(Path(folder))) for folder in sys.argv[1:])
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(found, int(peak.split()[1]) / 1024)
"""
# Not getrusage: its peak counts what the program that started this one had in memory, here the large file.


def main() -> int:
    """Run the comparison; 0 where every bound is kept."""
    memory: list[float] = []
    with tempfile.TemporaryDirectory(prefix="lint-") as name:
        folders = write_folders(Path(name))
        every, one = in_turns(
            partial(linted, folders, memory=memory), partial(linted, folders[:1], memory=memory), rounds=ROUNDS
        )
    figures = [
        Figure(f"lint of {FOLDERS} folders", max(every), "s", SECONDS),
        Figure("lint of one, the start of Python included", max(one), "s"),
        Figure(f"{FOLDERS} folders, of the time for one", ratio(every, one), "times", TIMES_ONE),
        Figure("peak memory", max(memory), "MiB", MEMORY_MIB),
    ]
    return tell("lint", figures)


def write_folders(folder: Path) -> list[Path]:
    """Model folders, the first of them with a large ONNX file."""
    large = folder / "large" / "net"
    (large / "1").mkdir(parents=True)
    (large / "config.pbtxt").write_text('backend: "onnxruntime"\n')
    tensor = {"name": "x", "dtype": "FP32", "shape": [1]}
    graph = {"inputs": [tensor], "outputs": [tensor | {"name": "y"}], "weights": {"w": WEIGHTS_MB * 1_000_000}}
    write_graph(large / "1" / "model.onnx", graph)
    cases = corpus("two hundred", FOLDERS - 1)
    for case in cases:
        case.write(folder / case.name)
    return [large.parent, *(folder / case.name for case in cases)]


def linted(folders: Sequence[Path], *, memory: list[float]) -> float:
    """Seconds of one process over all folders; its peak memory in MiB is added to ``memory``."""
    seconds, printed = timed([sys.executable, "-c", _LINT, *map(str, folders)])
    memory.append(float(printed.split()[1]))
    return seconds
