"""``python -m benchmarks [NAME …]``: each benchmark against its bound, in one run each.

The exit code is 1 where a bound is missed or a benchmark could not run, 2 for a name that is none, 130 after Ctrl-C.
All of them run.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import machine
from tritonstack.errors import TritonstackError

BENCHMARKS = {
    "packing": "packing and unpacking against tar czf",
    "lint": "the linter over two hundred model folders, against one",
    "synthesis": "synthesis of one environment against an empty CDK app",
    "review": "a review against one synthesis, and ten environments against one",
    "invoke-overhead": "a request through the runtime against one straight to Triton",
    "proxy-overhead": "a request through tritonstack proxy against one by boto3",
    "simulate": "five million requests of ten thousand models, replayed: time, memory, bits",
    "measurements": "the published claims, tried on the local Triton (20 minutes)",
}
"""Name of a module, whose ``main()`` returns 0 where every bound is kept, else 1 → what it holds against what."""
OUTCOMES = {0: "PASS", 1: "FAIL: a bound is missed"}


def main(names: Sequence[str]) -> int:
    """Run the named benchmarks, or all. Returns the exit code."""
    console = Console(highlight=False)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        console.print(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    machine()  # before a benchmark, which may take longer than the next commit
    summary = Table("benchmark", "what", "outcome")
    failed = False
    for name in names or BENCHMARKS:
        console.rule(name)
        try:
            missed = importlib.import_module(f"benchmarks.{name.replace('-', '_')}").main()
            outcome, failed = OUTCOMES[missed], failed or bool(missed)
        except (TritonstackError, subprocess.CalledProcessError, OSError, RuntimeError) as error:
            outcome, failed = f"could not run: {error}", True
        except KeyboardInterrupt:
            console.print(f"{name}: interrupted")
            return 130
        summary.add_row(name, BENCHMARKS[name], outcome)
    console.print(summary)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
