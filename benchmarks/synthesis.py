"""``cdk synth`` of one environment against that of an empty CDK Python app, in turns; validation as each has it.

The bound is on what a person runs, the CDK command line; the apps alone are shown beside it, without a bound.

Compiled modules are kept (``__pycache__``), as a person's Python keeps them, and the first round is not counted.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.measuring import in_turns, ratio
from benchmarks.results import Figure, machine, tell
from tritonstack.errors import WorkFailedError
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
    stated = machine()
    app = REPOSITORY / "app.py"
    chosen: dict[str, object] = {"environments": ENVIRONMENT}
    # The command line reads cdk.json itself.
    whole = {**json.loads((REPOSITORY / "cdk.json").read_text()).get("context", {}), **chosen}
    with tempfile.TemporaryDirectory(prefix="synthesis-") as name:
        out, script = Path(name, "out"), Path(name, "app.py")
        script.write_text(EMPTY_APP)
        ours, empty, app_alone, empty_alone = in_turns(
            partial(synthesise, app, out, context=chosen, cli=True),
            partial(synthesise, script, out, context={}, cli=True),
            partial(synthesise, app, out, context=whole, cli=False),
            partial(synthesise, script, out, context={}, cli=False),
            rounds=ROUNDS,
        )
    figures = [
        Figure("cdk synth of an empty CDK Python app", statistics.median(empty), "s"),
        Figure(f"cdk synth of environment {ENVIRONMENT}", statistics.median(ours), "s"),
        Figure("ratio", ratio(ours, empty), "times", RATIO),
        Figure("ratio of the apps alone, without the command line", ratio(app_alone, empty_alone), "times"),
    ]
    return tell("synthesis", figures, machine=stated)


def synthesise(script: Path, target: Path, *, context: dict[str, object], cli: bool) -> float:
    """Seconds of one synthesis: with the CDK command line, or the app alone, started as the command line starts it.

    Raises WorkFailedError: the app failed; with its output.
    """
    shutil.rmtree(target, ignore_errors=True)
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(target),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, str(script)]
    if cli:
        options = [part for name, value in context.items() for part in ("--context", f"{name}={value}")]
        app = ["--app", " ".join(command), "--output", str(target)]
        command = [str(cdk_program()), "synth", "--quiet", "--no-notices", *app, *options]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=script.parent, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        raise WorkFailedError(f"{script} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    if not any(target.rglob("*.template.json")):
        raise WorkFailedError(f"{script} synthesised nothing")
    return seconds
