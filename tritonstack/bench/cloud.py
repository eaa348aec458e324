"""Load tests in the cloud: started, followed, their results fetched; stopped where the person who waits gives up."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import naming
from tritonstack.bench.cloud_configurations import configuration_of
from tritonstack.bench.cloud_objects import TestObjects
from tritonstack.bench.cloud_plan import bench_plan, recommender_plan
from tritonstack.bench.cloud_run import BuildRun, ExecutionRun, RemoteRun
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.settings import Endpoint, Environment, LoadTestSettings

Progress = Callable[[str], None]
CLEAN_UP_SECONDS = 20 * 60.0
"""How long a stopped test's clean-up is waited for: a run of its function, and one more try."""
TOLD_AGAIN_SECONDS = 5 * 60.0


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What a test left.

    Attributes:
        kind: ``bench`` or ``recommender``.
        test: its id.
        folder: where its files lie here.
        failed: why it came to nothing, or not to all; "" where all was measured.
    """

    kind: str
    test: str
    folder: Path
    failed: str


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
    ) -> None:
        """Make clients and read nothing yet.

        Args:
            environment: the environment, which must have ``load_test``.
            session: makes AWS clients.
            local: it is the local AWS.
            progress: gets a line where something changed.
            wait: waits so many seconds.

        Raises:
            InputError: the environment has no load tests.
        """
        self._environment, self._session, self._local = environment, session, local
        self._progress, self._wait = progress, wait
        self._settings = require_load_test(environment)
        self._poll_seconds = 1.0 if local else 15.0

    def run(self, names: Sequence[str], folder: Path) -> list[Fetched]:
        """Test these endpoints (none: all that may be tested), and fetch what was found into ``folder``.

        Where it is interrupted, what runs remotely is stopped, its clean-up waited for, and what was found is fetched.

        Raises:
            InputError: no such endpoint.
            WorkFailedError: the stack is not deployed, or a test cannot be started.
            KeyboardInterrupt: once all is stopped.
        """
        endpoints = chosen_endpoints(self._environment, names)
        fetched = []
        for kind, chosen in (
            ("bench", [each for each in endpoints if each.multi_model]),
            ("recommender", [each for each in endpoints if not each.multi_model]),
        ):
            if chosen:
                fetched.append(self._one(kind, chosen, folder / kind))
        return fetched

    def _one(self, kind: str, endpoints: list[Endpoint], folder: Path) -> Fetched:
        test = f"{datetime.now(UTC):%y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        objects = TestObjects(self._session.client("s3"), bucket=self._value("bucket-name", artifacts=True), test=test)
        start = self._start_bench if kind == "bench" else self._start_recommender
        run = start(test, endpoints, objects)
        try:
            self._progress(f"{kind}: load test {test}, {run.identity}")
            failed = self._follow(run)
        except KeyboardInterrupt:
            self._cancel(run, objects)
            if objects.fetch(folder, local=self._local):
                self._progress(f"what was measured so far: {folder}")
            raise
        except (BotoCoreError, ClientError) as error:
            raise WorkFailedError(
                f"load test {test} is followed no longer: {error}\n  it goes on, and cleans up after itself: "
                f"{run.identity}\n  its results will be in {objects.url}"
            ) from error
        if not objects.fetch(folder, local=self._local):
            raise WorkFailedError(f"load test {test} left no results: {failed or 'it ended well'}")
        self._progress(f"{kind}: results in {folder}")
        return Fetched(kind=kind, test=test, folder=folder, failed=failed)

    def _start_bench(self, test: str, endpoints: list[Endpoint], objects: TestObjects) -> BuildRun:
        project = self._value("project-name")
        names = [f"{each.name}/{model}" for each in endpoints for model in each.models]
        plan = bench_plan(test, names, environment=self._environment.environment, settings=self._settings.bench)
        objects.put_plan(plan)
        return BuildRun(self._session.client("codebuild"), project=project, bucket=objects.bucket, test=test)

    def _start_recommender(self, test: str, endpoints: list[Endpoint], objects: TestObjects) -> ExecutionRun:
        machine = self._value("state-machine-arn")
        settings = self._settings.recommender
        configurations = [
            configuration_of(
                each,
                environment=self._environment,
                session=self._session,
                bucket=objects.bucket,
                test=test,
                payload_format=settings.payload_format,
            )
            for each in endpoints
        ]
        plan = recommender_plan(
            test,
            configurations,
            environment=self._environment.environment,
            settings=settings,
            started=datetime.now(UTC),
            local=self._local,
        )
        objects.put_plan(plan)
        clients = self._session.client("stepfunctions"), self._session.client("sagemaker")
        return ExecutionRun(*clients, machine=machine, plan=plan)

    def _follow(self, run: RemoteRun) -> str:
        """Until its end; why it came to nothing, or "". Each change is told once, and now and then what has not."""
        told: tuple[str, ...] = ()
        waited = 0.0
        while True:
            state = run.look()
            for line in state.at:
                if line not in told:
                    self._progress(line)
            told = state.at
            if state.ended:
                return state.failed
            self._wait(self._poll_seconds)
            before, waited = waited, waited + self._poll_seconds
            if before // TOLD_AGAIN_SECONDS < waited // TOLD_AGAIN_SECONDS:
                self._progress(f"{waited / 60:.0f} min: {', '.join(state.at)}")

    def _cancel(self, run: RemoteRun, objects: TestObjects) -> None:
        self._progress("stopping what runs remotely; again Ctrl-C leaves it to the cloud to clean up")
        run.stop()
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
            raise WorkFailedError(
                f"{name} cannot be read: {error}\n  do: deploy {self._environment.environment}/{stack}"
            ) from error


def require_load_test(environment: Environment) -> LoadTestSettings:
    """The environment's load tests. Raises InputError where it has none."""
    if environment.load_test is None:
        problem = Problem(
            file=f"environments/{environment.environment}.yaml",
            field="load_test",
            found="no load_test: nothing is deployed that could run one",
            allowed="load_test: {}, or with settings",
            advice="Add it, and deploy (docs/load-tests.md).",
        )
        raise InputError([problem])
    return environment.load_test


def chosen_endpoints(environment: Environment, names: Sequence[str]) -> list[Endpoint]:
    """The endpoints that ``names`` choose, of those that may be tested. Raises InputError with every wrong name."""
    allowed = environment.tested_endpoints
    known = {each.name for each in allowed}
    problems = [
        Problem(
            field="ENDPOINT",
            found=name,
            allowed=f"endpoints of {environment.environment} that load_test names: {', '.join(sorted(known))}",
        )
        for name in names
        if name not in known
    ]
    if problems:
        raise InputError(problems)
    return [each for each in allowed if not names or each.name in names]
