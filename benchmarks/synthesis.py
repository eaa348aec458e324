"""``cdk synth`` of one environment against that of an empty CDK Python app, in turns; validation as each has it.

Compiled modules are kept (``__pycache__``), as a person's Python keeps them, and the first round is not counted.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.measuring import Figure, in_turns, ratio, tell, timed
from tritonstack.paths import REPOSITORY, cdk_program

ENVIRONMENT = "local"
ROUNDS = 5
RATIO = 1.5
EMPTY_APP = """
import aws_cdk as cdk

app = cdk.App(analytics_reporting=False)
cdk.Stack(app, "Empty")
app.synth()
"""


def main() -> int:
    """Measure. Returns 0 where the bound is kept, 1 where it is missed; raises where an app cannot be synthesised."""
    with tempfile.TemporaryDirectory(prefix="synthesis-") as name:
        out, script = Path(name, "out"), Path(name, "app.py")
        script.write_text(EMPTY_APP)
        ours, empty = in_turns(
            partial(synthesise, REPOSITORY / "app.py", out, "--context", f"environments={ENVIRONMENT}"),
            partial(synthesise, script, out),
            rounds=ROUNDS,
        )
    figures = [
        Figure("cdk synth of an empty CDK Python app", statistics.median(empty), "s"),
        Figure(f"cdk synth of environment {ENVIRONMENT}", statistics.median(ours), "s"),
        Figure("ratio", ratio(ours, empty), "times", RATIO),
    ]
    return tell("synthesis", figures)


def synthesise(script: Path, target: Path, *options: str) -> float:
    """Seconds of one synthesis by the CDK command line. Raises WorkFailedError: the app failed; with its output."""
    shutil.rmtree(target, ignore_errors=True)
    app = ["--app", f"{sys.executable} {script}", "--output", str(target)]
    command = [str(cdk_program()), "synth", "--quiet", "--no-notices", *app, *options]
    return timed(command, folder=script.parent, JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION="20")[0]
