"""Load tests in the cloud: started, followed, their results fetched; stopped where the waiting person interrupts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import naming
from tritonstack.config import EndpointSettings, Environment, LoadTestSettings
from tritonstack.errors import InputError, Problem, WorkFailedError, listing, nearest
from tritonstack.served import Served
from tritonstack_capacity.bench.cloud.bucket_objects import TestObjects
from tritonstack_capacity.bench.cloud.configurations import archived_configurations, deployed_configuration
from tritonstack_capacity.bench.cloud.most_cost import MostCost, most_cost
from tritonstack_capacity.bench.cloud.runs import BuildRun, ExecutionRun, RemoteRun
from tritonstack_capacity.bench.cloud.settings_file import (
    bench_test_settings,
    recommender_test_settings,
    resumed_settings,
)
from tritonstack_capacity.bench.results_folder import JSON

Progress = Callable[[str], None]
Ask = Callable[[MostCost], None]
"""States what a test takes at most, and returns if it may start; else raises."""
CLEAN_UP_SECONDS = 20 * 60.0
"""How long a stopped test's clean-up is waited for: a run of its function, and one more try."""


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """Files that a test left."""

    kind: str  # ``bench`` or ``recommender``
    folder: Path  # where its files lie here
    failed: str  # why it came to nothing, or not to all; "" where all was measured


KINDS = ("bench", "recommender")
"""Of tests: of multi-model endpoints, and of single models."""


class CloudTests:
    """Load tests on deployed endpoints of one environment."""

    def __init__(
        self,
        environment: Environment,
        *,
        session: Any,
        local: bool,
        progress: Progress,
        wait: Callable[[float], None] = time.sleep,
        ask: Ask = lambda _: None,
        served: Served | None = None,
    ) -> None:
        """Make clients and read nothing yet.

        Args:
            environment: it must have ``load_test``.
            session: makes the AWS clients.
            local: whether it is the local AWS.
            progress: called with each line about the tests' progress.
            wait: pauses between two looks.
            ask: called before Inference Recommender's jobs, which cost, are started.
            served: the environment matched with its model folders; needed with ``archives_only``.

        Raises:
            InputError: the environment has no load tests.
        """
        self._environment, self._session, self._local = environment, session, local
        self._progress, self._wait, self._ask, self._served = progress, wait, ask, served
        self._settings = require_load_test(environment)
        self._poll_seconds = 1.0 if local else 15.0

    def run(self, names: Sequence[str], folder: Path) -> list[Fetched]:
        """Test these endpoints (none: all that may be tested), and fetch the results into ``folder``.

        Where it is interrupted, what runs remotely is stopped, its clean-up waited for, and what was found is fetched.

        Raises InputError: no such endpoint; WorkFailedError: the stack is not deployed, or a test cannot be started,
        followed, stopped or fetched; the message states where its results will be, wherever it goes on;
        KeyboardInterrupt: once all is stopped.
        """
        chosen = by_kind(chosen_endpoints(self._environment, names))
        return [self._one(kind, endpoints, folder / kind) for kind, endpoints in chosen.items()]

    def resume(self, test: str, folder: Path) -> list[Fetched]:
        """Go on with a test of Inference Recommender that was interrupted, or is followed no longer.

        While its execution runs, it is followed again. Else another test is started, which keeps the jobs that were
        completed, and runs the others, as the earlier test's settings have them.

        Raises what :meth:`run` raises; InputError: there is no such test of this environment.
        """
        objects = self._objects(test)
        settings = objects.read_settings()
        if settings is None or settings["kind"] != "recommender":
            raise InputError(
                [
                    Problem(
                        field="--resume",
                        found=f"{test}, and no settings of such a test with Inference Recommender in {objects.url}",
                        allowed="the id of a load test, which the command printed when it started",
                    )
                ]
            )
        run = self._execution(settings)
        if run.find():
            return [self._followed("recommender", test, run, objects, folder / "recommender")]
        kept = {job["name"] for job in settings["jobs"] if run.status(job["name"]) == "COMPLETED"}
        if len(kept) == len(settings["jobs"]) and objects.exists(JSON):
            self._progress(f"load test {test}: every job is completed")
            objects.fetch(folder / "recommender", local=self._local)
            return [Fetched(kind="recommender", folder=folder / "recommender", failed="")]
        self._progress(f"load test {test}: {len(kept)} of {len(settings['jobs'])} jobs are completed, and kept")
        again = _new_test()
        written = resumed_settings(settings, test=again, kept=kept)
        self._ask(self._most_cost(written, kept=kept))
        objects = self._objects(again)
        objects.put_settings(written)
        return [self._followed("recommender", again, self._execution(written), objects, folder / "recommender")]

    def _one(self, kind: str, endpoints: list[EndpointSettings], folder: Path) -> Fetched:
        test = _new_test()
        objects = self._objects(test)
        start = self._bench_run if kind == "bench" else self._recommender_run
        return self._followed(kind, test, start(test, endpoints, objects), objects, folder)

    def _objects(self, test: str) -> TestObjects:
        return TestObjects(self._session.client("s3"), bucket=self._value("bucket-name", artifacts=True), test=test)

    def _followed(self, kind: str, test: str, run: RemoteRun, objects: TestObjects, folder: Path) -> Fetched:
        """Start the run unless it was, follow it to its end, and fetch the results."""
        try:
            if not run.identity:
                run.start()
            self._progress(f"{kind}: load test {test}, {run.identity}")
            failed = self._follow(run)
        except KeyboardInterrupt:
            self._interrupted(test, run, objects)
            if objects.fetch(folder, local=self._local):
                self._progress(f"what was measured so far: {folder}")
            if kind == "recommender":
                self._progress(f"go on with it: {self._again(test)}")
            raise
        except (BotoCoreError, ClientError) as error:
            if isinstance(error, ClientError) and not run.identity:
                raise WorkFailedError(f"load test {test} cannot be started: {error}") from error
            said = _goes_on(test, run, objects, what="is followed no longer", why=error)
            again = f"\n  follow it again: {self._again(test)}" if kind == "recommender" else ""
            raise WorkFailedError(said + again) from error
        if not objects.fetch(folder, local=self._local):
            raise WorkFailedError(f"load test {test} left no results: {failed or 'it ended well'}")
        self._progress(f"{kind}: results in {folder}")
        if failed and kind == "recommender":
            self._progress(f"run what failed once more: {self._again(test)}")
        return Fetched(kind=kind, folder=folder, failed=failed)

    def _again(self, test: str) -> str:
        local = " --local" if self._local else ""
        name = self._environment.environment
        return f"tritonstack capacity bench --cloud -e {name}{local} --resume {test}"

    def _bench_run(self, test: str, endpoints: list[EndpointSettings], objects: TestObjects) -> BuildRun:
        project = self._value("project-name")
        names = [f"{each.name}/{model}" for each in endpoints for model in self._settings.benched_models(each)]
        written = bench_test_settings(
            test, names, environment=self._environment.environment, settings=self._settings.bench
        )
        objects.put_settings(written)
        return BuildRun(self._session.client("codebuild"), project=project, bucket=objects.bucket, test=test)

    def _recommender_run(self, test: str, endpoints: list[EndpointSettings], objects: TestObjects) -> ExecutionRun:
        environment = self._environment
        self._value("state-machine-arn")  # before anything else of it is read: whether the stack is deployed
        if self._settings.archives_only:
            if self._served is None:
                raise ValueError("archives_only, and the environment is not matched with its model folders")
            configurations = archived_configurations(
                endpoints, served=self._served, session=self._session, bucket=objects.bucket, test=test
            )
        else:
            configurations = [
                deployed_configuration(
                    each, environment=environment, session=self._session, bucket=objects.bucket, test=test
                )
                for each in endpoints
            ]
        written = recommender_test_settings(
            test,
            configurations,
            environment=environment.environment,
            settings=self._settings.recommender,
            started=datetime.now(UTC),
            local=self._local,
        )
        self._ask(self._most_cost(written))
        objects.put_payloads(configurations)
        objects.put_settings(written)
        return self._execution(written)

    def _execution(self, settings: Mapping[str, Any]) -> ExecutionRun:
        machine = self._value("state-machine-arn")
        clients = self._session.client("stepfunctions"), self._session.client("sagemaker")
        return ExecutionRun(*clients, machine=machine, settings=settings)

    def _most_cost(self, settings: Mapping[str, Any], *, kept: Collection[str] = ()) -> MostCost:
        def usd_per_hour(instance_type: str) -> float | None:
            price = self._environment.price(instance_type)
            return None if price is None else price.usd_per_hour

        at_once = self._settings.recommender.at_once
        return most_cost(settings, kept=kept, at_once=at_once, usd_per_hour=usd_per_hour)

    def _follow(self, run: RemoteRun) -> str:
        """Wait for its end; returns why it failed, or "". Reports each change once."""
        reported: tuple[str, ...] = ()
        while True:
            state = run.look()
            for line in state.at:
                if line not in reported:
                    self._progress(line)
            reported = state.at
            if state.ended:
                return state.failed
            self._wait(self._poll_seconds)

    def _interrupted(self, test: str, run: RemoteRun, objects: TestObjects) -> None:
        """Stop the test, and wait until it is cleaned up. Where that fails, report what goes on."""
        self._progress(f"stopping load test {test}; again Ctrl-C leaves it to the cloud to clean up")
        what = "could not be stopped"
        try:
            if not run.identity:
                run.start()  # the interruption may have hit the first request's response
            run.stop()
            what = "was stopped, and its clean-up is followed no longer"
            self._await_clean_up(run, objects)
        except KeyboardInterrupt:
            self._progress(_goes_on(test, run, objects, what=what, why="interrupted"))
            raise
        except (BotoCoreError, ClientError) as error:
            raise WorkFailedError(_goes_on(test, run, objects, what=what, why=error)) from error

    def _await_clean_up(self, run: RemoteRun, objects: TestObjects) -> None:
        until = time.monotonic() + CLEAN_UP_SECONDS
        while not run.cleaned(objects.exists):
            if time.monotonic() > until:
                self._progress(f"not cleaned up in {CLEAN_UP_SECONDS / 60:.0f} minutes: see {run.identity}")
                return
            self._wait(self._poll_seconds)
        self._progress("stopped, and nothing is left of it but what it had measured")

    def _value(self, value: str, *, artifacts: bool = False) -> str:
        """A value that a stack recorded."""
        of = naming.artifact_parameter if artifacts else naming.load_test_parameter
        name = of(environment=self._environment.environment, value=value)
        try:
            return str(self._session.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])
        except ClientError as error:
            stack = "artifacts" if artifacts else "load-test"
            advice = f"deploy {self._environment.environment}/{stack}"
            raise WorkFailedError(f"{name} cannot be read: {error}\n  do: {advice}") from error


def _new_test() -> str:
    return f"{datetime.now(UTC):%y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _goes_on(test: str, run: RemoteRun, objects: TestObjects, *, what: str, why: object) -> str:
    """Message for a test that the cloud goes on with, alone: ``what`` of it failed here, and ``why``."""
    at = run.identity or "where it was started at all, which is not known"
    return (
        f"load test {test} {what}: {why}\n  the cloud goes on with it, and cleans up: {at}\n"
        f"  what it measures will be in {objects.url}"
    )


def by_kind(endpoints: Sequence[EndpointSettings]) -> dict[str, list[EndpointSettings]]:
    """The kinds of tests that these endpoints take, and which is of which."""
    of: dict[str, list[EndpointSettings]] = {
        kind: [each for each in endpoints if each.multi_model is (kind == "bench")] for kind in KINDS
    }
    return {kind: found for kind, found in of.items() if found}


def require_load_test(environment: Environment) -> LoadTestSettings:
    """The environment's load tests. Raises InputError where it has none."""
    if environment.load_test is None:
        found, allowed = "no load_test: nothing is deployed that could run one", "load_test: {}, or with settings"
        file = f"environments/{environment.environment}.yaml"
        advice = "Add it, and deploy (tritonstack docs load-tests)."
        raise InputError([Problem(file=file, field="load_test", found=found, allowed=allowed, advice=advice)])
    return environment.load_test


def chosen_endpoints(environment: Environment, names: Sequence[str]) -> list[EndpointSettings]:
    """The endpoints that ``names`` choose, of those that may be tested. Raises InputError with every wrong name."""
    allowed = environment.tested_endpoints
    known = {each.name for each in allowed}
    may = f"endpoints of {environment.environment} that load_test names: {listing(sorted(known))}"
    if wrong := [name for name in names if name not in known]:
        raise InputError(
            [Problem(field="NAME", found=name, allowed=may, advice=nearest(name, known)) for name in wrong]
        )
    return [each for each in allowed if not names or each.name in names]
