"""The whole bench: every configuration in every format, one after the other, kept as it goes."""

from __future__ import annotations

import asyncio
import functools
import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from tritonstack import VERSION
from tritonstack.client.model_client import ModelClient
from tritonstack.errors import InputError, Problem, WorkFailedError, collecting, refuse
from tritonstack.local_aws import is_local
from tritonstack.paths import CHECKOUT
from tritonstack_capacity.bench.document import BenchDocument, EndpointPart, ResultPart, settings_part
from tritonstack_capacity.bench.one_model import Keep, OneModel, endpoint_figures
from tritonstack_capacity.bench.perf_analyzer import find_program, kserve_data
from tritonstack_capacity.bench.results_folder import write_results
from tritonstack_capacity.bench.settings import BenchSettings, Progress
from tritonstack_capacity.bench.subject import Subject, configured_names, find_target, payload_of
from tritonstack_capacity.bench.utilization import EndpointUtilization


def machine() -> dict[str, str]:
    """Processor, cores, memory, system, and the load that it had before."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "load_before": f"{os.getloadavg()[0]:.1f}",
    }


def versions() -> dict[str, str]:
    """Versions of this code and of the libraries that send the requests."""
    found = {name: importlib.metadata.version(name) for name in ("aiohttp", "botocore", "numpy", "uvloop")}
    return {"tritonstack": VERSION, "commit": _commit(), "python": platform.python_version(), **found}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str:
    if CHECKOUT is None:
        return "installed wheel"
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


POLL_SECONDS = 10.0
LOCAL_POLL_SECONDS = 1.0


class Bench:
    """Runs a bench. Everything is found and refused before the first load begins."""

    def __init__(self, settings: BenchSettings, *, session: Any, model_repos: Path) -> None:
        """``session``: makes AWS clients; ``model_repos``: the model folders, whose overlays are configurations."""
        self._settings = settings
        self._session = session
        self._local = is_local(session.client("sagemaker"))
        self._model_repos = model_repos
        self._client = ModelClient(environment=settings.environment, session=session)

    def subjects(self) -> list[Subject]:
        """The subjects to measure, in order.

        Raises InputError: names that lead nowhere, payloads that do not fit; all of them; WorkFailedError: the
        generator is not installed.
        """
        if self._settings.generator == "perf-analyzer":
            find_program()
        found: list[Subject] = []
        problems: list[Problem] = []
        for configuration, name in self._names().items():
            with collecting(problems):
                found += self._subjects_of(configuration, name)
        refuse(problems)
        return found

    async def run(
        self, subjects: Sequence[Subject], folder: Path, *, command: Sequence[str], progress: Progress
    ) -> BenchDocument:
        """Measure them. What is measured so far lies in ``folder`` at any time.

        A subject that fails is a result without a load, or with those that it had, with the reason; the others follow.

        ``command`` is kept with the results.

        Raises:
            WorkFailedError: results cannot be written.
        """
        document = self._new_document(command)
        write_results(folder, document)
        for subject in subjects:
            result = await self._measured(subject, functools.partial(_keep, folder, document), progress)
            document = _keep(folder, document, result)
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        document = document.model_copy(update={"complete": True, "ended": ended})
        write_results(folder, document)
        return document

    async def _measured(self, subject: Subject, keep: Keep, progress: Progress) -> ResultPart:
        began = datetime.now(UTC)
        one = OneModel(self._settings, subject, session=self._session, progress=progress, keep=keep)
        try:
            await one.run()
        except WorkFailedError as error:
            progress.note(f"{subject.title}: {error}")
            return one.result.model_copy(update={"ended_by": f"failed: {error}", "failed": True})
        progress.say(f"{subject.title}: SageMaker's own figures")
        figures = await self._endpoint_figures(subject, one.result, began)
        points, stop = one.result.points, self._settings.stop
        failed = bool(points) and not any(
            point.all.answered and not stop.too_many_failed(point.all) for point in points
        )
        result = one.result.model_copy(update={"endpoint_figures": figures, "failed": failed})
        return result if self._local else self._with_utilization(subject, result, one.times)

    def _with_utilization(
        self, subject: Subject, result: ResultPart, times: Sequence[tuple[datetime, datetime]]
    ) -> ResultPart:
        """The result with CloudWatch's utilization of each load and of the whole test, where it has any."""
        variant = subject.target.variant
        if variant is None or not times:
            return result
        used = EndpointUtilization(
            self._session.client("cloudwatch"),
            endpoint=result.endpoint,
            variant=variant,
            begin=times[0][0],
            end=times[-1][1],
        )
        points = [
            point.model_copy(update={"utilization": used.during(begin, end)})
            for point, (begin, end) in zip(result.points, times, strict=True)
        ]
        return result.model_copy(update={"points": points, "utilization": used.highest()})

    def _names(self) -> dict[str, str]:
        settings = self._settings
        if not settings.configurations:
            return {name: name for name in settings.names}
        return configured_names(settings.names[0], settings.configurations, model_repos=self._model_repos)

    def _subjects_of(self, configuration: str, name: str) -> Iterator[Subject]:
        settings = self._settings
        target = find_target(self._client, self._session, name=name)
        if settings.cold_starts and target.call.target_model is None:
            found = f"{settings.cold_starts}, and {target.call.endpoint_name} is in single-model mode"
            advice = "there a cold start is a deployment: tritonstack releases shows how long its load took"
            raise InputError([Problem(field="--cold-starts", found=found, allowed="0", advice=advice)])
        streams = target.call.target_model is None and self._client.streams(name)
        if streams:
            refuse(_not_of_streams(settings))
        payload = payload_of(self._client, name, files=settings.files, outputs=settings.outputs)
        manifest = self._client.manifest(name)
        for payload_format in ("json",) if streams else settings.formats:
            payload.body(payload_format)  # JSON cannot carry every datatype
            if settings.generator == "perf-analyzer":
                kserve_data(payload, manifest)  # nor can perf_analyzer
            yield Subject(
                configuration=configuration,
                target=target,
                payload=payload,
                payload_format=payload_format,
                manifest=manifest,
                streams=streams,
            )

    def _new_document(self, command: Sequence[str]) -> BenchDocument:
        return BenchDocument(
            complete=False,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            ended=None,
            environment=self._settings.environment,
            local=self._local,
            machine=machine(),
            versions=versions(),
            seed=self._settings.seed,
            command=list(command),
            settings=settings_part(self._settings),
            results=[],
        )

    async def _endpoint_figures(self, subject: Subject, result: ResultPart, began: datetime) -> list[EndpointPart]:
        """SageMaker's own figures of the test, once it has those of all its requests."""
        variant = subject.target.variant
        if variant is None or self._settings.container:
            return []
        cloudwatch, end = self._session.client("cloudwatch"), datetime.now(UTC)
        deadline = time.monotonic() + self._settings.cloudwatch_wait_seconds
        while True:
            found = endpoint_figures(cloudwatch, endpoint=result.endpoint, variant=variant, begin=began, end=end)
            if (found and found[0].invocations >= result.calls) or time.monotonic() >= deadline:
                break
            poll = LOCAL_POLL_SECONDS if self._local else POLL_SECONDS
            await asyncio.sleep(min(poll, max(0.0, deadline - time.monotonic())))
        return found


def _not_of_streams(settings: BenchSettings) -> list[Problem]:
    """Options that a bench of streams does not have."""
    problems = []
    if settings.container:
        allowed = "without it: the local container streams by another port than SageMaker's"
        problems.append(Problem(field="--container", found="with an endpoint that streams", allowed=allowed))
    if settings.generator == "perf-analyzer":
        allowed = "client: the proxy that perf_analyzer calls passes no streams"
        problems.append(Problem(field="--generator", found="perf-analyzer with streams", allowed=allowed))
    return problems


def _keep(folder: Path, document: BenchDocument, result: ResultPart) -> BenchDocument:
    """Write the document with one result more, and give it."""
    more = document.model_copy(update={"results": [*document.results, result]})
    write_results(folder, more)
    return more
