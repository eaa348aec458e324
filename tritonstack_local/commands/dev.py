"""``tritonstack local dev``: saved changes are built, invoked and released on the local AWS."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.archives.build import build_sources
from tritonstack.archives.publish import BuiltArchive, publish_archives
from tritonstack.archives.staging import renewal
from tritonstack.archives.wanted import leaves_engines
from tritonstack.cli.conventions import echo, environment_option
from tritonstack.cli.progress import ShownStep, Steps, ended_by_signals
from tritonstack.client import ModelClient
from tritonstack.client.errors import InvokeError, ModelFailedError
from tritonstack.client.releases import ModelRelease
from tritonstack.config import EndpointSettings
from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError, visible
from tritonstack.lint.registry import shown
from tritonstack.models.build_target import target_of
from tritonstack.models.comparison import base64_outputs, tensor_difference
from tritonstack.models.manifest import Manifest, Places
from tritonstack.models.python_failure import response_failure
from tritonstack.models.sample import ResponseDiffersError, compare_answer, to_tensors
from tritonstack.models.source import ArchiveSource
from tritonstack.models.source_files import listed_below
from tritonstack.models.tensorrt_models import lacks_plan
from tritonstack.naming import ArchiveName
from tritonstack.paths import LocalPaths, environment_file
from tritonstack.releases.records import DeployedSet, deployed_set, read_record, write_record
from tritonstack.releases.verification import SampleResponse, Verifier
from tritonstack_local.aws import require_local_aws
from tritonstack_local.commands.deploy import Deployable, deploy, deployable, one_deployment, started_local_aws

POLL_SECONDS = 0.2
QUIET_SECONDS = 0.1
"""Pause without a change before changed files are read: an editor writes a file in several steps."""
SHOWN_VALUES = 4
SHOWN_FILES = 3
OUTCOMES = (TritonstackError, OSError, BotoCoreError, ClientError)
"""Errors whose message has what to do. Any other is a fault of this program: it is printed with its traceback."""

Stamps = Mapping[Path, tuple[int, int]]
Outputs = Mapping[str, "np.ndarray[Any, Any]"]


@click.command("dev", epilog="example: tritonstack local dev -e local")
@environment_option()
def dev_command(*, environment: str) -> None:
    """Watch model_repos/ and the file of ENVIRONMENT; build, invoke and release on the local AWS what is saved.

    The response of each changed model to its sample request is printed next to its previous one. Changed settings are
    deployed. A mistake is shown, and what served before serves on. A local AWS is started where none runs, and stays up
    after Ctrl-C, which ends the watch.
    """
    file = environment_file(environment)
    if not file.is_file():
        deployable(environment)  # it names the environments that there are
    started_local_aws()
    work = Work(environment=environment)
    try:
        with ended_by_signals():
            follow_changes(work, Watch(lambda: stamps_of(file, work.places.repositories)))
    except KeyboardInterrupt:
        echo(work.last_words())


def follow_changes(work: Work, watch: Watch) -> None:
    """Bring the local AWS up to date, and again after each change, until interrupted."""
    with shown_mistakes():
        work.update()
    echo(f"watching {shown(work.places.repositories)} and {shown(work.file)}; Ctrl-C ends it")
    while files := watch.wait():
        names = sorted(map(shown, files))
        more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
        echo(f"\n{time.strftime('%H:%M:%S')} {', '.join(names[:SHOWN_FILES])}{more}")
        with shown_mistakes():
            work.update()


@contextmanager
def shown_mistakes() -> Iterator[None]:
    """Print an error, whichever it is, in place of raising it: the watch goes on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  (as documented)
        echo(f"{_shown(error)}\nnot released: what served before serves on")


def _shown(error: Exception) -> str:
    """An error's own message with its remedy; of a fault of this program the traceback."""
    if isinstance(error, OUTCOMES):
        return visible(str(error))
    lines = "".join(traceback.format_exception(error)).rstrip()
    return visible(f"tritonstack itself failed; please report it with these lines:\n{lines}")


def stamps_of(file: Path, repositories: Path) -> Stamps:
    """Each file that is watched → its time of modification and its size; what editors leave behind is not watched."""
    found: dict[Path, tuple[int, int]] = {}
    for path in (file, *(path for _, path, _ in listed_below(repositories))):
        try:
            status = path.stat()
        except OSError:
            continue  # gone in between
        found[path] = status.st_mtime_ns, status.st_size
    return found


class Watch:
    """Changes of files, found by polling: bind mounts of containers and network drives report no events."""

    def __init__(self, look: Callable[[], Stamps], *, sleep: Callable[[float], None] = time.sleep) -> None:
        """``look`` returns the files as they are; changes count from now on."""
        self._look, self._sleep = look, sleep
        self._seen = look()
        self._said = ""

    def wait(self) -> frozenset[Path]:
        """The files that were written, made or removed since the last time, once they stay as they are."""
        while True:
            now = self._now()
            while now != self._seen:
                self._sleep(QUIET_SECONDS)
                later = self._now()
                if later == now:
                    break
                now = later
            before, self._seen = self._seen, now
            if changed := frozenset(path for path in now.keys() | before.keys() if now.get(path) != before.get(path)):
                return changed
            self._sleep(POLL_SECONDS)

    def _now(self) -> Stamps:
        """The files; as they were last where they cannot be looked at now, which is printed once."""
        try:
            found, said = self._look(), ""
        except Exception as error:  # noqa: BLE001  (a folder that is unreadable now may be readable soon)
            found, said = self._seen, f"the files cannot be looked at: {_shown(error)}"
        if said and said != self._said:
            echo(said)
        self._said = said
        return found


@dataclass(kw_only=True)
class Work:
    """One environment on the local AWS: its deployed and released state, and the steps that update it."""

    environment: str
    steps: Steps = field(default_factory=Steps)
    # what the last deployment made of the settings; None until they are deployed
    deployed: Deployable | None = None
    # (endpoint, model) → the digest that its record has
    digests: dict[tuple[str, str], str | None] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The environment's."""
        return environment_file(self.environment)

    @property
    def places(self) -> Places:
        """Folders of the builds: their archives apart from those that were proved."""
        project = Places.of_project()
        return replace(project, archives=LocalPaths.from_environment().root / "dev-archives")

    def update(self) -> None:
        """Deploy where the settings changed, else release the models that did.

        Raises:
            InputError: the settings, a recipe or a model folder are wrong.
            WorkFailedError: a build, a load or a deployment failed.
        """
        wanted = deployable(self.environment)
        reason = self._reason_to_deploy(wanted)
        if reason:
            self._deploy(wanted, reason)
            return
        problems: list[str] = []
        is_same = True
        for endpoint in wanted.served.environment.endpoints:
            for model, digest in wanted.served.release_sets[endpoint.name].items():
                if self.digests[endpoint.name, model] == digest:
                    continue
                is_same = False
                try:
                    self._release(wanted.served.sources[model], digest, endpoint)
                except Exception as error:  # noqa: BLE001  (of one model; the others are released all the same)
                    problems.append(_shown(error))
        if problems:
            raise WorkFailedError("\n".join(problems))
        if is_same:
            echo("all models are as released")

    def last_words(self) -> str:
        """The line about what stays when the watch ends."""
        sets = self.deployed.served.release_sets if self.deployed else {}
        moved = [f"{name}/{model}" for (name, model), digest in self.digests.items() if sets[name][model] != digest]
        left = f"{', '.join(sorted(moved))}: released, and not deployed: " if moved else ""
        advice = f"tritonstack local deploy -e {self.environment}\n" if left else ""
        return f"\n{left}{advice}the local AWS stays up: tritonstack local down stops it"

    def _reason_to_deploy(self, wanted: Deployable) -> str:
        """Reason for a deployment; empty where moving release records is enough."""
        if self.deployed is None and not self._is_deployed(wanted):
            return "this environment, or its settings as they are now, are not deployed"
        if self.deployed is None:
            self.deployed = wanted
        if wanted.served.environment != self.deployed.served.environment:
            return "the settings changed"
        for endpoint in wanted.served.environment.endpoints:
            for model, digest in wanted.served.release_sets[endpoint.name].items():
                if self.digests[endpoint.name, model] == digest:
                    continue
                if not endpoint.multi_model:
                    return f"{endpoint.name} has one model, {model}, whose archive its deployment names"
                if lacks_plan(wanted.served.sources[model]) and leaves_engines(wanted.settings.builds):
                    return f"the engine of {model} is built by a deployment"
        return ""

    def _is_deployed(self, wanted: Deployable) -> bool:
        """Whether every endpoint is deployed, with these models, since the settings were written. Reads the records."""
        assembly = LocalPaths.from_environment().assembly(self.environment) / "manifest.json"
        if not assembly.is_file() or assembly.stat().st_mtime < self.file.stat().st_mtime:
            return False
        session = require_local_aws().session()
        for name, models in wanted.served.release_sets.items():
            found = deployed_set(session, environment=self.environment, endpoint=name)
            if found is None or found.models.keys() != models.keys():
                return False
            for model in models:
                record = read_record(session, environment=self.environment, endpoint=name, model=model)
                self.digests[name, model] = record.digest
        return True

    def _deploy(self, wanted: Deployable, reason: str) -> None:
        echo(f"{reason}: deploying")
        began = time.monotonic()
        with one_deployment(self.steps):
            deploy(wanted.settings, require_local_aws(), self.steps, builds=wanted.builds)
        self.deployed = wanted
        self.digests = {
            (endpoint, model): digest
            for endpoint, models in wanted.served.release_sets.items()
            for model, digest in models.items()
        }
        echo(f"deployed in {time.monotonic() - began:.0f} s")

    def _release(self, source: ArchiveSource, digest: str, endpoint: EndpointSettings) -> None:
        """Build, publish and invoke a model, then move its record; print its response next to the previous one."""
        name, began = f"{endpoint.name}/{source.name}", time.monotonic()
        session = require_local_aws().session()
        with self.steps.step(name) as step:
            deployed = deployed_set(session, environment=self.environment, endpoint=endpoint.name)
            if deployed is None:
                self.deployed = None
                advice = f"tritonstack local deploy -e {self.environment}"
                raise InputError([Problem(found=f"{endpoint.name} is gone", allowed="deployed", advice=advice)])
            manifest = self._publish(source, digest, endpoint, session=session, step=step)
            record = read_record(session, environment=self.environment, endpoint=endpoint.name, model=source.name)
            client = ModelClient(environment=self.environment, session=session)
            verifier = Verifier(self.environment, session=session, client=client)
            step.say("invoking it")
            new = ModelRelease(endpoint=endpoint.name, model=source.name, digest=digest)
            before = _answer_before(verifier, new, record.digest, deployed)
            answer = _answer_now(verifier, new, deployed, name=endpoint.sagemaker_name(self.environment))
            platform = str(deployed.platform)
            write_record(session, record, digest, environment=self.environment, platform=platform, writer="dev")
            self.digests[endpoint.name, source.name] = digest
            answered = f"response in {answer.total_milliseconds / 1000:.2g} s, its load included"
            step.end_with(f"{answered}; released {time.monotonic() - began:.1f} s after the change was seen")
        for line in answer_lines(before, answer.outputs):
            echo(f"  {line}")
        echo(f"  {expectation(source, manifest, answer.outputs)}")

    def _publish(
        self, source: ArchiveSource, digest: str, endpoint: EndpointSettings, *, session: Any, step: ShownStep
    ) -> Manifest:
        """Build an archive, the endpoint's response in place of a proof, and publish it under the endpoint's prefix."""
        step.say("building it")
        [built] = build_sources([source], places=self.places, prove=False, report=step.say).built
        archive = BuiltArchive(
            source=source,
            name=ArchiveName(model=source.name, digest=digest),
            place=Place(endpoint=endpoint.name, platform=endpoint.platform),
            target=target_of(source, None),
            manifest=built.manifest,
        )
        step.say("publishing it")
        bucket = ArtifactBucket(environment=self.environment, session=session)
        publish_archives([archive], bucket=bucket, local=True, places=self.places, report=step.say)
        return built.manifest


def _answer_before(verifier: Verifier, new: ModelRelease, digest: str | None, deployed: DeployedSet) -> Outputs | str:
    """Response of the release before to the new one's sample request, or the reason why there is none."""
    if digest in (None, new.digest):
        return "nothing was released before"
    try:
        return verifier.ask(replace(new, digest=digest), deployed, sample_of=new).outputs
    except Exception as error:  # noqa: BLE001  (the new response is shown all the same)
        return " ".join((str(error) if isinstance(error, OUTCOMES) else repr(error)).split())


def _answer_now(verifier: Verifier, new: ModelRelease, deployed: DeployedSet, *, name: str) -> SampleResponse:
    """Response of a release to its sample request. Raises :class:`WorkFailedError` where there is none."""
    try:
        return verifier.ask(new, deployed)
    except InvokeError as error:
        advice = f"fix it and save; the server's log: tritonstack local logs {name}"
        reason = str(error)
        if isinstance(error, ModelFailedError):
            repositories = Places.of_project().repositories
            reason = response_failure(error, model=new.model, repositories=repositories)
        raise WorkFailedError(f"{new.model} does not respond to its sample: {reason}\n  do:      {advice}") from error


def answer_lines(before: Outputs | str, now: Outputs) -> Iterator[str]:
    """Each output, next to its previous value."""
    if isinstance(before, str):
        yield f"before: {before}"
        before = {}
    for name, array in now.items():
        old = before.get(name)
        if old is None:
            yield f"{name}  {values_text(array)}"
        elif old.dtype == array.dtype and old.shape == array.shape and np.array_equal(old, array):
            yield f"{name}  {values_text(array)}, as before"
        else:
            yield f"{name}  {values_text(old)} → {values_text(array)}{_largest_difference(name, old, array)}"


def values_text(array: np.ndarray[Any, Any]) -> str:
    """The first values, and how many there are where that is not all."""
    flat = array.ravel().tolist()
    shown_values = ", ".join(map(_value_text, flat[:SHOWN_VALUES]))
    more = f", … {list(array.shape)}" if len(flat) > SHOWN_VALUES else ""
    return f"[{shown_values}{more}]"


def _value_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return repr(value.decode(errors="replace")) if isinstance(value, bytes) else str(value)


def _largest_difference(name: str, old: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> str:
    """Difference of two responses with more values than are shown; empty where all are shown, or there are none."""
    expected, found = (base64_outputs(to_tensors({name: array}))[name] for array in (old, new))
    _, difference = tensor_difference(name, expected, found, tolerance=0.0, equal_nan=True)
    if difference is None or difference.reason or old.size <= SHOWN_VALUES:
        return ""
    before, now = difference.values
    largest = "" if difference.largest is None else f"largest difference {difference.largest:.3g}, at "
    count = f"{difference.differing:,} of {difference.total:,} values differ"
    return f"; {count}: {largest}{difference.place} {before} → {now}"


def expectation(source: ArchiveSource, manifest: Manifest, outputs: Outputs) -> str:
    """Whether a response is the one that the recipe's sample expects, and what to do where it is not."""
    recipe = source.recipe
    file = shown(source.folder / recipe.sample.answer)
    try:
        compare_answer(manifest.sample, to_tensors(outputs), model=source.name)
    except ResponseDiffersError as error:
        return f"not what {file} expects: {error}; released here, and build and deploy refuse it\n  {renewal(source)}"
    return f"as {file} expects"
