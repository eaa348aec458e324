"""``cdk synth`` of one environment against that of an empty CDK Python app, in turns; validation as each has it.

The bound is on what a person runs, the CDK command line; the apps alone are shown beside it, without a bound.

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
    ours, empty, app, empty_app = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="synthesis-") as name:
        folder = Path(name)
        script = folder / "app.py"
        script.write_text(EMPTY_APP)
        context = {**context_of(REPOSITORY / "cdk.json"), "environments": ENVIRONMENT}
        for number in range(ROUNDS + 1):
            # The command line reads cdk.json itself.
            chosen: dict[str, object] = {"environments": ENVIRONMENT}
            ours.append(synthesise(REPOSITORY / "app.py", folder / f"ours-{number}", context=chosen, cli=True))
            empty.append(synthesise(script, folder / f"empty-{number}", context={}, cli=True))
            app.append(synthesise(REPOSITORY / "app.py", folder / f"app-{number}", context=context, cli=False))
            empty_app.append(synthesise(script, folder / f"empty-app-{number}", context={}, cli=False))
    figures = [
        Figure("cdk synth of an empty CDK Python app", statistics.median(empty[1:]), "s"),
        Figure(f"cdk synth of environment {ENVIRONMENT}", statistics.median(ours[1:]), "s"),
        Figure("ratio", ratio(ours[1:], empty[1:]), "times", RATIO),
        Figure("ratio of the apps alone, without the command line", ratio(app[1:], empty_app[1:]), "times"),
    ]
    versions = {"aws-cdk-lib": importlib.metadata.version("aws-cdk-lib")}
    return tell("synthesis", figures, machine=stated, versions=versions)


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios, round by round."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def context_of(file: Path) -> dict[str, object]:
    """The context that the CDK command line would read from ``cdk.json``."""
    context: dict[str, object] = json.loads(file.read_text()).get("context", {})
    return context


def synthesise(script: Path, target: Path, *, context: dict[str, object], cli: bool) -> float:
    """Seconds of one synthesis: with the CDK command line, or the app alone, started as the command line starts it.

    Raises WorkFailedError: the app failed; with its output.
    """
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
