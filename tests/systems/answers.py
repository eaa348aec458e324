"""Each published system's response to its sample, how fast and on what: the table at the end of ``make systems``.

The expected response is made by the export, in the framework that the model comes from.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tritonstack.catalogue.instances import load_build_machines
from tritonstack.client import ModelClient
from tritonstack.client.model_client import ModelResponse
from tritonstack.models.manifest import EngineEntry, Manifest
from tritonstack.models.sample import Arrays, compare_answer, request_arrays, to_tensors
from tritonstack.naming import builds_parameter, endpoint_name
from tritonstack_local.aws import LocalAws

PROPERTY = "answered"
"""The property of a test's report that holds a row."""
WIDTH = 200
"""Columns of the table: a log has no terminal to ask."""
_STAND_IN = re.compile(r"tritonstack stand-in: (?P<what>.*) \(model (?P<model>\S+)\)")
_RUN = re.compile(r"(?:^|/)local-engine-(?P<folder>[a-z0-9-]+?)(-\d+)?-[0-9a-f]{8}(?:/|$)")
"""The name of an engine's run. Copies of a model share the engine of one of them, whose number the name carries."""

EngineBuilds = Mapping[tuple[str, str], Sequence["EngineBuild"]]
"""(GPU, model folder) → the runs that built its engine."""


@dataclass(frozen=True, kw_only=True)
class EngineBuild:
    """One run of CodeBuild's engine project or of SageMaker Processing."""

    service: str
    machine: str
    status: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """Two requests to one archive.

    Attributes:
        name: ``endpoint/model``.
        backends: Triton's backends that the archive needs.
        stand_ins: their stand-ins in the container that responded, as its log names them.
        engine: what built its TensorRT engine: service, machine, and whether a stand-in; empty where it has none.
        difference: the largest from the source framework's response, over both requests.
        tolerance: the largest that the recipe allows.
        cold_ms: the first response time where the request loaded the model; None where it was loaded already.
        warm_ms: the second response time.
        evicted: models that were unloaded to make room for it.
    """

    name: str
    backends: Sequence[str]
    stand_ins: Sequence[str]
    engine: str
    difference: float
    tolerance: float
    cold_ms: float | None
    warm_ms: float
    evicted: int

    @property
    def document(self) -> dict[str, Any]:
        """The row as a test's report carries it."""
        return asdict(self)


def manifest_of(client: ModelClient, name: str) -> Manifest:
    """The manifest of ``endpoint/model``, from the environment's bucket."""
    return Manifest.model_validate(client.manifest(name))


def sample_arrays(client: ModelClient, name: str) -> Arrays:
    """The sample request of ``endpoint/model``, as a client sends it."""
    manifest, table = manifest_of(client, name), client.tensor_table(name)
    assert table is not None
    return request_arrays(
        manifest.sample,
        adapters=manifest.adapters,
        model=manifest.model,
        files=client.client_files(table, list(manifest.client_files)),
        file=manifest.sample.file,
    )


def invoked(client: ModelClient, name: str, *, variant: str | None = None) -> tuple[ModelResponse, float]:
    """The response of ``endpoint/model`` to its sample request, and its largest difference from the expected one.

    Of several variants, ``variant`` names the one that serves it.

    Raises:
        WorkFailedError: a tensor differs from the expected one by more than the recipe's tolerance.
    """
    sample = manifest_of(client, name).sample
    outputs = [tensor["name"] for tensor in sample.answer["outputs"]]
    response = client.invoke(name, sample_arrays(client, name), outputs, variant=variant)
    return response, compare_answer(sample, to_tensors(response.outputs), model=name)


def row_of(aws: LocalAws, client: ModelClient, name: str, *, builds: EngineBuilds, variant: str | None = None) -> Row:
    """Send an archive its sample request twice, while its endpoint gets no other requests.

    Raises:
        WorkFailedError: a tensor differs from the expected one by more than the recipe's tolerance.
    """
    endpoint, _, _ = name.partition("/")
    manifest = manifest_of(client, name)
    engines = [_builder(builds, manifest.folder, entry) for entry in manifest.engines.values()]
    before = fleet_of(aws, endpoint, variant=variant)
    first, of_first = invoked(client, name, variant=variant)
    between = fleet_of(aws, endpoint, variant=variant)
    second, of_second = invoked(client, name, variant=variant)
    is_cold = between["loads"] > before["loads"]
    return Row(
        name=name,
        backends=manifest.backends,
        stand_ins=_stand_ins(between, manifest),
        engine=", ".join(engines),
        difference=max(of_first, of_second),
        tolerance=manifest.sample.tolerance,
        cold_ms=first.milliseconds if is_cold else None,
        warm_ms=second.milliseconds,
        evicted=between["unloads"] - before["unloads"],
    )


def fleet_of(aws: LocalAws, endpoint: str, *, variant: str | None = None) -> Mapping[str, Any]:
    """The one fleet of an endpoint of environment ``local``, or that of a variant, as the runtime describes it."""
    name = endpoint_name(environment="local", endpoint=endpoint)
    found = next(item for item in aws.runtime_status()["endpoints"] if item["name"] == name)
    [fleet] = [each for each in found["fleets"] if each["variant"].startswith(f"{variant}-" if variant else "")]
    return dict(fleet)


def engine_builds(aws: LocalAws) -> EngineBuilds:
    """Every run that built an engine for environment ``local``."""
    project = aws.client("ssm").get_parameter(Name=builds_parameter(environment="local", value="engine-project-name"))
    codebuild, sagemaker = aws.client("codebuild"), aws.client("sagemaker")
    found: dict[tuple[str, str], list[EngineBuild]] = {}

    def add(service: str, machine: str, status: str, place: str) -> None:
        run = _RUN.search(place)
        assert run, place
        gpu = next(row.gpu for row in load_build_machines().machines if row.name == machine)
        found.setdefault((gpu, run["folder"]), []).append(EngineBuild(service=service, machine=machine, status=status))

    ids = codebuild.list_builds_for_project(projectName=project["Parameter"]["Value"])["ids"]
    for build in codebuild.batch_get_builds(ids=ids)["builds"]:
        add("CodeBuild", build["environment"]["computeType"], build["buildStatus"], build["source"]["location"])
    for summary in sagemaker.list_processing_jobs()["ProcessingJobSummaries"]:
        job = sagemaker.describe_processing_job(ProcessingJobName=summary["ProcessingJobName"])
        machine = job["ProcessingResources"]["ClusterConfig"]["InstanceType"]
        add("Processing", machine, job["ProcessingJobStatus"], job["ProcessingJobName"])
    return found


def _builder(builds: EngineBuilds, folder: str, engine: EngineEntry) -> str:
    """The service and machine that built an engine on its GPU, whose name the engine has from the driver."""
    runs = [run for (gpu, built), of in builds.items() if gpu in engine.gpu and built == folder for run in of]
    built_by = " and ".join(f"{run.service} {run.machine}" for run in runs) or "not found"
    return f"{built_by}, stand-in" if engine.stand_in else built_by


def _stand_ins(fleet: Mapping[str, Any], manifest: Manifest) -> list[str]:
    """Stand-ins of one archive by its container's log, which names the archive or a model inside it."""
    models = {manifest.archive.file, *manifest.configs}
    built_by = _STAND_IN.finditer(Path(fleet["log"]).read_text(errors="replace"))
    return list(dict.fromkeys(match["what"] for match in built_by if match["model"] in models))


def printed(rows: Iterable[Mapping[str, Any]]) -> str:
    table = Table(title="What each published system answered", title_justify="left", show_lines=False)
    for column in ("endpoint/model", "backend", "what stood in for it", "engine built by"):
        table.add_column(column, no_wrap=column in ("endpoint/model", "engine built by"))
    for column in ("difference", "tolerance", "cold ms", "warm ms", "evicted"):
        table.add_column(column, justify="right")
    for document in rows:
        row = Row(**document)
        table.add_row(
            row.name,
            ", ".join(backend for backend in row.backends if backend != "ensemble"),
            "; ".join(line.rpartition(" with ")[2] for line in row.stand_ins) or "nothing",
            row.engine or "has none",
            f"{row.difference:.1e}",
            f"{row.tolerance:.0e}",
            "loaded before" if row.cold_ms is None else f"{row.cold_ms:,.0f}",
            f"{row.warm_ms:,.0f}",
            str(row.evicted),
        )
    text = io.StringIO()
    Console(file=text, width=WIDTH, highlight=False).print(table)
    return text.getvalue()
