"""A review of a one-line change over the committed environments against one synthesis of them, and how synthesis grows.

All with validation, as a review runs it, and without the CDK command line, which a review does not start.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.measuring import Figure, in_turns, ratio, tell, timed
from tritonstack.errors import WorkFailedError
from tritonstack.paths import REPOSITORY
from tritonstack.review.assembly import synthesise

ROUNDS = 3
REVIEW_RATIO = 2.0
MANY = 10
MANY_RATIO = 2.5
EXAMPLE = "prod-eu"
"""The environment of which ten copies are synthesised."""
OLD, NEW = "maximum: 4", "maximum: 5"
"""The change of one line in its settings."""


def main() -> int:
    """Measure. Returns 0 where every bound is kept, else 1; raises where something fails."""
    with tempfile.TemporaryDirectory(prefix="review-bench-") as name:
        folder = Path(name)
        project = changed_project(folder / "project")
        copies = [{"environments-folder": str(copied(folder / f"copies-{count}", count))} for count in (1, MANY)]
        reviews, whole, one, many = in_turns(
            partial(review, project),
            partial(synthesis, project, folder / "out", {}),
            partial(synthesis, REPOSITORY, folder / "out", copies[0]),
            partial(synthesis, REPOSITORY, folder / "out", copies[1]),
            rounds=ROUNDS,
        )
    environments = len(list((REPOSITORY / "environments").glob("*.yaml")))
    figures = [
        Figure(f"one synthesis of {environments} environments", statistics.median(whole), "s"),
        Figure("review of a one-line change over them", statistics.median(reviews), "s"),
        Figure("ratio", ratio(reviews, whole), "times", REVIEW_RATIO),
        Figure(f"one synthesis of {EXAMPLE} alone", statistics.median(one), "s"),
        Figure(f"one synthesis of {MANY} copies of it, in one process", statistics.median(many), "s"),
        Figure("ratio", ratio(many, one), "times", MANY_RATIO),
    ]
    return tell("review", figures)


def changed_project(folder: Path) -> Path:
    """A clone of this repository as it is committed, with one line of one environment's settings changed.

    Its ``cdk.json`` has the app run by the Python that runs this. Raises WorkFailedError: the line is not there.
    """
    command = ["git", "clone", "--quiet", "--shared", str(REPOSITORY), str(folder)]
    subprocess.run(command, check=True)
    file = folder / "environments" / f"{EXAMPLE}.yaml"
    text = file.read_text()
    if text.count(OLD) != 1:
        raise WorkFailedError(f"{file.name} has {text.count(OLD)} lines with {OLD}: one is needed to change it")
    file.write_text(text.replace(OLD, NEW))
    cdk = folder / "cdk.json"
    cdk.write_text(json.dumps({**json.loads(cdk.read_text()), "app": f"{sys.executable} app.py"}))
    return folder


def copied(folder: Path, count: int) -> Path:
    """A folder of that many copies of one environment under names of their own."""
    folder.mkdir()
    text = (REPOSITORY / "environments" / f"{EXAMPLE}.yaml").read_text()
    for number in range(count):
        target = folder / f"copy{number}.yaml"
        target.write_text(text.replace(f"environment: {EXAMPLE}\n", f"environment: {target.stem}\n"))
    return folder


def synthesis(project: Path, outdir: Path, context: Mapping[str, str]) -> float:
    """Seconds of one synthesis with validation, in one process of Python and its Node."""
    started = time.perf_counter()
    synthesise(project, outdir, context=context)
    seconds = time.perf_counter() - started
    if not any(outdir.rglob("*.template.json")):
        raise WorkFailedError(f"{project} synthesised nothing")
    shutil.rmtree(outdir)
    return seconds


def review(project: Path) -> float:
    """Seconds of ``tritonstack review`` with all of its files. Raises WorkFailedError: it failed, or saw no change."""
    out = project / ".local" / "review"
    forms = [f"--{form}={out / form}" for form in ("json", "markdown", "html")]
    command = [sys.executable, "-m", "tritonstack", "review", "--base", "HEAD", *forms]
    seconds, printed = timed(command, folder=project, PYTHONPATH=str(project), TRITONSTACK_PROJECT=str(project))
    if "changed in place" not in printed:
        raise WorkFailedError(f"review reported no change:\n{printed}")
    return seconds
