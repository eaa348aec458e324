"""Packing and unpacking against ``tar czf``, in one run on one tree: 400 MB of random FP16 and FP32 weights.

    python -m benchmarks packing

Prints ratios and returns 1 where one misses its target. Each time is the best of several runs, taken in turns, because
the machine may be shared; peak memory is that of a process of its own that packs and does nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.results import Figure, machine, tell

MEGABYTES = 400
ROUNDS = 3
SPEED = 9.0
LARGER = 1.10
UNPACKING = 0.68
MEMORY_MIB = 150

_PACK = """
import resource, sys, time
from pathlib import Path
from tritonstack.models.packing import pack
start = time.perf_counter()
pack(Path(sys.argv[1]), Path(sys.argv[2]))
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> int:
    """Run the comparison; 0 where every target is met."""
    stated = machine()
    with tempfile.TemporaryDirectory(prefix="packing-") as name:
        folder = Path(name)
        tree = folder / "tree"
        write_weights(tree, megabytes=MEGABYTES)
        ours, theirs = folder / "ours.tar.gz", folder / "theirs.tar.gz"
        packing, tarring, memory = [], [], 0.0
        for round_ in range(ROUNDS):
            seconds, peak = pack_in_a_process(tree, ours)
            packing.append(seconds)
            memory = max(memory, peak)
            if round_ < ROUNDS - 1:  # the slow side varies little, and takes 15 s
                tarring.append(timed(lambda: run("tar", "czf", str(theirs), "-C", str(tree), ".")))
        unpack_ours, unpack_theirs = [], []
        for _ in range(ROUNDS + 2):
            unpack_ours.append(unpacked(ours, folder / "unpacked"))
            unpack_theirs.append(unpacked(theirs, folder / "unpacked"))
        sizes = ours.stat().st_size / theirs.stat().st_size
    print(
        f"packing: tar czf {min(tarring):.2f} s, ours {min(packing):.2f} s; unpacking with tar xzf: "
        f"theirs {min(unpack_theirs):.2f} s, ours {min(unpack_ours):.2f} s"
    )
    speed, slowness = min(tarring) / min(packing), min(unpack_ours) / min(unpack_theirs)
    figures = [
        Figure("packing, as fast as tar czf", speed, "times", SPEED, at_least=True),
        Figure("size, of tar czf's", sizes, "times", LARGER),
        Figure("unpacking, of the time for tar czf's", slowness, "times", UNPACKING),
        Figure("peak memory of packing", memory, "MiB", MEMORY_MIB),
    ]
    return tell("packing", figures, machine=stated)


def write_weights(tree: Path, *, megabytes: int) -> None:
    """Half FP32, half FP16, normally distributed as initialised weights are, in a model repository's layout."""
    version = tree / "weights" / "1"
    version.mkdir(parents=True)
    (tree / "weights" / "config.pbtxt").write_text('name: "weights"\n')
    draw = np.random.default_rng(0)
    for name, kind in (("single.bin", np.float32), ("half.bin", np.float16)):
        with (version / name).open("wb") as stream:
            for _ in range(megabytes // 2):
                count = 1_000_000 // np.dtype(kind).itemsize
                stream.write((draw.standard_normal(count) * 0.02).astype(kind).tobytes())


def pack_in_a_process(tree: Path, target: Path) -> tuple[float, float]:
    """Seconds and peak resident memory in MiB of a process that packs ``tree``."""
    done = subprocess.run(
        [sys.executable, "-c", _PACK, str(tree), str(target)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def unpacked(archive: Path, target: Path) -> float:
    """Seconds that GNU tar, which SageMaker's containers have, needs for an archive."""
    run("rm", "-rf", str(target))
    target.mkdir()
    return timed(lambda: run("tar", "xzf", str(archive), "-C", str(target)))


def timed(work: Callable[[], None]) -> float:
    """Seconds that ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(*command: str) -> None:
    """A command that must succeed."""
    subprocess.run(command, check=True)
