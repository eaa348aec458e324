"""A review of a one-line change over the committed environments against one synthesis of them, and how synthesis grows.

All with validation, as a review runs it, and without the CDK command line, which a review does not start. In turns; the
first round is not counted. Peak memory is that of the review and every process that it starts, their resident sets
added up, sampled.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.results import Figure, machine, tell
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
SAMPLES_PER_SECOND = 20


def main() -> int:
    """Measure. Returns 0 where every bound is kept, else 1; raises where something fails."""
    stated = machine()
    reviews, all_of_them, memory = [], [], []
    one: list[float] = []
    many: list[float] = []
    with tempfile.TemporaryDirectory(prefix="review-bench-") as name:
        folder = Path(name)
        project = changed_project(folder / "project")
        copies = {count: copied(folder / f"copies-{count}", count) for count in (1, MANY)}
        for number in range(ROUNDS + 1):
            seconds, peak = review(project)
            reviews.append(seconds)
            memory.append(peak)
            all_of_them.append(synthesis(project, folder / f"all-{number}", {}))
            for count, into in ((1, one), (MANY, many)):
                context: dict[str, object] = {"environments-folder": str(copies[count])}
                into.append(synthesis(REPOSITORY, folder / f"copies-{count}-{number}", context))
    environments = len(list((REPOSITORY / "environments").glob("*.yaml")))
    figures = [
        Figure(f"one synthesis of {environments} environments", median(all_of_them), "s"),
        Figure("review of a one-line change over them", median(reviews), "s"),
        Figure("ratio", ratio(reviews, all_of_them), "times", REVIEW_RATIO),
        Figure(f"one synthesis of {EXAMPLE} alone", median(one), "s"),
        Figure(f"one synthesis of {MANY} copies of it, in one process", median(many), "s"),
        Figure("ratio", ratio(many, one), "times", MANY_RATIO),
        Figure("peak memory of the review and all that it starts", max(memory) / 2**20, "MiB"),
    ]
    return tell("review", figures, machine=stated)


def median(seconds: Sequence[float]) -> float:
    """Of the rounds that count."""
    return statistics.median(seconds[1:])


def ratio(mine: Sequence[float], other: Sequence[float]) -> float:
    """The median of the ratios, round by round."""
    return statistics.median(one / two for one, two in zip(mine[1:], other[1:], strict=True))


def changed_project(folder: Path) -> Path:
    """A clone of this repository as it is committed, with one line of one environment's settings changed.

    Raises WorkFailedError: git failed, or the line is not there.
    """
    command = ["git", "clone", "--quiet", "--shared", str(REPOSITORY), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise WorkFailedError(f"git clone: {ran.stderr.strip()}")
    file = folder / "environments" / f"{EXAMPLE}.yaml"
    text = file.read_text()
    if text.count(OLD) != 1:
        raise WorkFailedError(f"{file.name} has {text.count(OLD)} lines with {OLD}: one is needed to change it")
    file.write_text(text.replace(OLD, NEW))
    (folder / "cdk.json").write_text(with_this_python((folder / "cdk.json").read_text()))
    return folder


def with_this_python(text: str) -> str:
    """``cdk.json`` whose app is run by the Python that runs this."""
    return json.dumps({**json.loads(text), "app": f"{sys.executable} app.py"})


def copied(folder: Path, count: int) -> Path:
    """A folder of that many copies of one environment under names of their own."""
    folder.mkdir()
    source = REPOSITORY / "environments" / f"{EXAMPLE}.yaml"
    for number in range(count):
        target = folder / f"copy{number}.yaml"
        shutil.copyfile(source, target)
        target.write_text(target.read_text().replace(f"environment: {EXAMPLE}\n", f"environment: {target.stem}\n"))
    return folder


def synthesis(project: Path, outdir: Path, context: dict[str, object]) -> float:
    """Seconds of one synthesis with validation, in one process of Python and its Node."""
    started = time.perf_counter()
    synthesise(project, outdir, context=context)
    seconds = time.perf_counter() - started
    if not any(outdir.rglob("*.template.json")):
        raise WorkFailedError(f"{project} synthesised nothing")
    shutil.rmtree(outdir)
    return seconds


def review(project: Path) -> tuple[float, int]:
    """Seconds and peak bytes of ``tritonstack review`` with all of its files.

    Raises WorkFailedError: it failed, or saw no change.
    """
    out = project / ".local" / "review"
    forms = [f"--{form}={out / form}" for form in ("json", "markdown", "html")]
    command = [sys.executable, "-m", "tritonstack", "review", "--base", "HEAD", *forms]
    environment = {**os.environ, "PYTHONPATH": str(project), "TRITONSTACK_PROJECT": str(project)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    with subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        sampler = Sampler(process.pid)
        said, complained = process.communicate()
        seconds = time.perf_counter() - started
        peak = sampler.end()
    if process.returncode != 0 or "changed in place" not in said:
        raise WorkFailedError(f"review ended with {process.returncode}:\n{said}{complained}")
    return seconds, peak


class Sampler:
    """The most that a process and its children hold at once."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._ended = threading.Event()
        self._peak = 0
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def end(self) -> int:
        """Stop. Returns bytes."""
        self._ended.set()
        self._thread.join()
        return self._peak

    def _sample(self) -> None:
        while not self._ended.wait(1 / SAMPLES_PER_SECOND):
            self._peak = max(self._peak, self._held())

    def _held(self) -> int:
        try:
            family = [self._process, *self._process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return 0
        return sum(map(held, family))


def held(process: psutil.Process) -> int:
    """Bytes of a process's resident set; 0 where it has ended."""
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
