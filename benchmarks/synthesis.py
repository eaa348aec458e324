"""Synthesis of one environment against that of an empty CDK Python app, in turns; validation as each has it.

Compiled modules are kept (``__pycache__``), as a person's Python keeps them, and the first round is not counted.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.results import Figure, machine, tell
from tritonstack.errors import WorkFailedError
from tritonstack.local.paths import REPOSITORY

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
    ours, empty = [], []
    with tempfile.TemporaryDirectory(prefix="synthesis-") as name:
        folder = Path(name)
        script = folder / "app.py"
        script.write_text(EMPTY_APP)
        context = {**context_of(REPOSITORY / "cdk.json"), "environments": ENVIRONMENT}
        for number in range(ROUNDS + 1):
            ours.append(synthesise(REPOSITORY / "app.py", folder / f"ours-{number}", context=context))
            empty.append(synthesise(script, folder / f"empty-{number}", context={}))
    ours, empty = ours[1:], empty[1:]
    ratio = statistics.median(mine / theirs for mine, theirs in zip(ours, empty, strict=True))
    figures = [
        Figure(what="an empty CDK Python app", value=statistics.median(empty), unit="s"),
        Figure(what=f"environment {ENVIRONMENT}", value=statistics.median(ours), unit="s"),
        Figure(what="ratio", value=ratio, unit="times", bound=RATIO),
    ]
    versions = {"aws-cdk-lib": importlib.metadata.version("aws-cdk-lib")}
    return tell("synthesis", figures, machine=stated, versions=versions)


def context_of(file: Path) -> dict[str, object]:
    """The context that the CDK command line would read from ``cdk.json``."""
    context: dict[str, object] = json.loads(file.read_text()).get("context", {})
    return context


def synthesise(script: Path, target: Path, *, context: dict[str, object]) -> float:
    """Seconds of one synthesis, started as the CDK command line starts it.

    Raises:
        WorkFailedError: the app failed; with its output.
    """
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(target),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, str(script)]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=script.parent, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        raise WorkFailedError(f"{script} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    if not any(target.rglob("*.template.json")):
        raise WorkFailedError(f"{script} synthesised nothing")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
