"""``tritonstack capacity bench`` itself: from its options to results, or from results to the same once more."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import uvloop

from tritonstack.client.errors import ReleaseLookupError
from tritonstack.client.files import InputFile
from tritonstack.client.model_client import ModelClient
from tritonstack.commands.calling import calling_session, explain_name, refuse_without_credentials
from tritonstack.commands.progress import Step, Steps
from tritonstack.commands.session import shell_is_local
from tritonstack.errors import InputError, Problem
from tritonstack.paths import LocalPaths, project_folder
from tritonstack_capacity.bench.bench import Bench
from tritonstack_capacity.bench.document import comparisons, differences, recorded_settings
from tritonstack_capacity.bench.measuring import StabilityRule, StopConditions, Timing
from tritonstack_capacity.bench.options import OptionReader, check
from tritonstack_capacity.bench.results_folder import ResultsFolder, read_results, results_file
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.commands import bench_view

if TYPE_CHECKING:
    from tritonstack_capacity.bench.document import BenchDocument
    from tritonstack_capacity.bench.subject import Subject

DEFAULT_USERS = "1,2,4,8"
SECONDS_OF_CLOUDWATCH, LOCAL_SECONDS = 180.0, 6.0
"""A minute's figures come a minute or two after it; the local AWS's every five seconds."""
OTHER_FILES = 256
"""Open besides a socket a call."""


def run_bench(
    names: Sequence[str],
    options: Mapping[str, Any],
    *,
    folder: Path | None,
    as_json: bool,
    problems: Sequence[Problem],
) -> int:
    """Measure what the options say, and print it; 1 where some of it came to nothing.

    ``problems``: what was found wrong with the options before.

    Raises:
        InputError: every option that is wrong, or every name that leads nowhere.
    """
    local = options["local"] or options["environment"] == "local" or shell_is_local("sagemaker")
    settings = _settings(names, options, OptionReader(problems), local=local)
    document = _run(settings, local=options["local"], folder=folder, as_json=as_json)
    return _code(document)


def repeat_bench(results: Path, *, folder: Path | None, as_json: bool) -> int:
    """Measure again what ``results`` are of, print it, and say what is another than it was.

    Raises:
        InputError: they are no results of this program's own, or what they name is not there any more.
    """
    file = results_file(results)
    then = read_results(file)
    settings = recorded_settings(then, file)
    check(settings, OptionReader(), local=then.local)
    now = _run(settings, local=then.local, folder=folder, as_json=as_json)
    for line in (*differences(then, now), *comparisons(then, now)):
        click.echo(line, err=True)
    return _code(now)


def _run(settings: BenchSettings, *, local: bool, folder: Path | None, as_json: bool) -> BenchDocument:
    session = calling_session(settings.environment, local=local)
    bench = Bench(settings, session=session, model_repos=project_folder() / "model_repos")
    subjects = _subjects(bench, settings, session)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    root = LocalPaths.from_environment().root / "bench"
    results = ResultsFolder(folder or root / f"{settings.environment}-{stamp}")
    results.make()
    make_room(settings.most_under_way + OTHER_FILES)
    with _told() as told:
        command = ("tritonstack", *sys.argv[1:])
        try:
            document = uvloop.run(bench.run(subjects, results, command=command, progress=told))
        except KeyboardInterrupt:
            told.note(f"what was measured so far: {results.folder}")
            raise
        failed = sum(result.failed for result in document.results)
        told.step.end_with(f"{failed} of {len(document.results)} came to nothing" if failed else str(results.folder))
    bench_view.show(document, results, as_json=as_json)
    return document


def make_room(files: int) -> None:
    """Let this process have so many open files, as far as it may: a shell's usual 1,024 are too few for 1,000 calls."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _subjects(bench: Bench, settings: BenchSettings, session: Any) -> list[Subject]:
    try:
        return bench.subjects()
    except (InputError, ReleaseLookupError) as error:
        refuse_without_credentials(error, settings.environment, session)
        client = ModelClient(environment=settings.environment, session=session)
        explain_name(error, client, settings.environment, session)
        raise


def _code(document: BenchDocument) -> int:
    return 1 if any(result.failed for result in document.results) else 0


@dataclass(frozen=True, kw_only=True)
class _Told:
    """A test's words on the terminal: notes stay, what is done now is shown with its time."""

    steps: Steps
    step: Step

    def note(self, line: str, /) -> None:
        self.steps.note(line)

    def say(self, text: str, /) -> None:
        self.step.say(text)


@contextmanager
def _told() -> Iterator[_Told]:
    steps = Steps()
    with steps.step("bench") as step:
        yield _Told(steps=steps, step=step)


def _settings(names: Sequence[str], options: Mapping[str, Any], reader: OptionReader, *, local: bool) -> BenchSettings:
    """Checked, and files by their whole paths: results are repeated from other folders too."""
    percentile = options["percentile"]
    wait = options["cloudwatch_wait"]
    default = None if options["rate"] or options["phases"] else DEFAULT_USERS
    settings = BenchSettings(
        names=tuple(names),
        configurations=tuple(part for part in (options["configurations"] or "").split(",") if part),
        loads=(*reader.users(options["users"] or default), *reader.rates(options["rate"], options["arrivals"])),
        phases=reader.phases(options["phases"]),
        formats=reader.formats(options["payload_format"]),
        timing=Timing(warm_up=options["warm_up"], round=options["seconds"]),
        rule=StabilityRule(
            within=options["stable_within"] / 100,
            confidence=options["confidence"] / 100,
            least=options["rounds"],
            most=options["max_rounds"],
            percentile=percentile,
        ),
        stop=StopConditions(
            latency_ms=options["stop_latency_ms"], percentile=percentile, per_minute=options["stop_rate"]
        ),
        files=tuple(options["files"]),
        outputs=tuple(options["outputs"]),
        timeout_seconds=options["timeout"],
        cloudwatch_wait_seconds=wait if wait is not None else LOCAL_SECONDS if local else SECONDS_OF_CLOUDWATCH,
        **{name: options[name] for name in _AS_THEY_ARE},
    )
    check(settings, reader, local=local)
    return replace(settings, files=tuple(_whole_path(file) for file in settings.files))


_AS_THEY_ARE = (
    "environment",
    "container",
    "cold_starts",
    "max_calls",
    "max_seconds",
    "most_under_way",
    "seed",
    "generator",
    "publish_metric",
)


def _whole_path(text: str) -> str:
    file = InputFile.parse(text)
    path = file.path.resolve()
    return str(path) if file.input is None else f"{file.input}={path}"
