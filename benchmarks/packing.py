"""Packing and unpacking against ``tar czf``, in one run on one tree: 400 MB of random FP16 and FP32 weights.

    python -m benchmarks packing

Returns 1 where a ratio misses its target. Each time is the best of several runs, taken in turns, because the machine
may be shared; peak memory is that of a process of its own that packs and does nothing else.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measuring import Figure, in_turns, tell, timed

MEGABYTES = 400
PACKINGS, UNPACKINGS = 2, 5
SPEED = 9.0
LARGER = 1.10
UNPACKING = 0.68
MEMORY_MIB = 150

_PACK = """
import resource, sys, time
from pathlib import Path
from tritonstack.archives.packing import pack
start = time.perf_counter()
pack(Path(sys.argv[1]), Path(sys.argv[2]))
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> int:
    """Run the comparison; 0 where every target is met."""
    with tempfile.TemporaryDirectory(prefix="packing-") as name:
        folder = Path(name)
        tree = folder / "tree"
        write_weights(tree, megabytes=MEGABYTES)
        ours, theirs = folder / "ours.tar.gz", folder / "theirs.tar.gz"
        memory: list[float] = []
        packing, tarring = in_turns(
            partial(packed, tree, ours, memory=memory),
            lambda: timed(["tar", "czf", str(theirs), "-C", str(tree), "."])[0],
            rounds=PACKINGS,
        )
        unpacking, untarring = in_turns(
            partial(unpacked, ours, folder / "unpacked"),
            partial(unpacked, theirs, folder / "unpacked"),
            rounds=UNPACKINGS,
        )
        sizes = ours.stat().st_size / theirs.stat().st_size
    figures = [
        Figure("packing by tar czf", min(tarring), "s"),
        Figure("packing, as fast as tar czf", min(tarring) / min(packing), "times", SPEED, at_least=True),
        Figure("size, of tar czf's", sizes, "times", LARGER),
        Figure("unpacking tar czf's by tar xzf", min(untarring), "s"),
        Figure("unpacking, of the time for tar czf's", min(unpacking) / min(untarring), "times", UNPACKING),
        Figure("peak memory of packing", max(memory), "MiB", MEMORY_MIB),
    ]
    return tell("packing", figures)


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


def packed(tree: Path, target: Path, *, memory: list[float]) -> float:
    """Seconds that a process takes to pack ``tree``; its peak resident memory in MiB is added to ``memory``."""
    _, printed = timed([sys.executable, "-c", _PACK, str(tree), str(target)])
    seconds, peak = map(float, printed.split())
    memory.append(peak)
    return seconds


def unpacked(archive: Path, target: Path) -> float:
    """Seconds that GNU tar, which SageMaker's containers have, needs for an archive."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    return timed(["tar", "xzf", str(archive), "-C", str(target)])[0]
