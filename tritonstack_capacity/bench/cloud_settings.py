"""Settings of a load test in the cloud, its objects in the bucket, and deployed endpoints as its configurations."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import VERSION
from tritonstack.client.model_client import ModelClient
from tritonstack.config import EndpointSettings, Environment
from tritonstack.config.load_test import BenchBuildSettings, RecommenderSettings
from tritonstack.errors import WorkFailedError
from tritonstack.naming import load_test_job_prefix, load_test_prefix
from tritonstack.paths import write_text
from tritonstack_capacity.bench.document import (
    BenchDocument,
    ResultPart,
    is_recommended,
    measurements_csv,
    result_part,
)
from tritonstack_capacity.bench.page import results_page
from tritonstack_capacity.bench.results_folder import CSV, JSON, PAGE, read_results
from tritonstack_capacity.bench.subject import Subject, describe_endpoint, find_target, payload_of
from tritonstack_capacity.csv_file import THIS_MACHINE

GENERATOR = "SageMaker Inference Recommender"
JSON_TYPES = ["application/json"]


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A single-model endpoint's model as it is deployed, and the request to it."""

    result: ResultPart  # of the document, without figures: what stays where a job finds nothing
    # of the deployed model, as SageMaker describes it
    container: dict[str, Any]
    vpc: dict[str, list[str]] | None
    # where its sample request lies, packed, and of what type that is
    payload_url: str
    content_type: str

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.result.configuration


def recommender_test_settings(
    test: str,
    configurations: Sequence[Configuration],
    *,
    environment: str,
    settings: RecommenderSettings,
    started: datetime,
    local: bool,
) -> dict[str, Any]:
    """The settings of a test with Inference Recommender."""
    prefix = load_test_job_prefix(environment)
    jobs = [each for one in configurations for each in _jobs(one, settings)]
    return {
        "id": test,
        "kind": "recommender",
        "poll_seconds": settings.poll_seconds,
        "group": f"{prefix}{test}",
        "packages": {one.name: package_request(one, settings) for one in configurations},
        "jobs": [{"name": f"{prefix}{test}-{number}", **job} for number, job in enumerate(jobs, start=1)],
        "document": _document(environment, settings, started=started, local=local),
        "results": {one.name: one.result.model_dump(mode="json") for one in configurations},
    }


def bench_test_settings(
    test: str, names: Sequence[str], *, environment: str, settings: BenchBuildSettings
) -> dict[str, Any]:
    """The settings of a test that CodeBuild runs: the options of ``tritonstack capacity bench``."""
    options = [*names, "--environment", environment, "--users", ",".join(map(str, settings.users))]
    options += ["--format", settings.payload_format, "--max-seconds", f"{settings.max_seconds:g}"]
    if settings.stop_latency_ms is not None:
        options += ["--stop-latency-ms", f"{settings.stop_latency_ms:g}"]
    return {"id": test, "kind": "bench", "options": options}


def package_request(one: Configuration, settings: RecommenderSettings) -> dict[str, Any]:
    """CreateModelPackage's request, less its group."""
    container = {name: one.container.get(name) for name in ("Image", "ModelDataUrl", "Environment")}
    container |= {"Framework": "PYTORCH", "NearestModelName": settings.nearest_model}
    return {
        "ModelPackageDescription": f"{one.name} of {one.result.endpoint}, for one load test",
        "InferenceSpecification": {
            "Containers": [{name: value for name, value in container.items() if value is not None}],
            "SupportedContentTypes": [one.content_type],
            "SupportedResponseMIMETypes": JSON_TYPES,
            "SupportedRealtimeInferenceInstanceTypes": list(_instance_types(one, settings)),
        },
        "Domain": settings.domain,
        "Task": settings.task,
        "SamplePayloadUrl": one.payload_url,
    }


def _jobs(one: Configuration, settings: RecommenderSettings) -> list[dict[str, Any]]:
    """One job for each instance type; a default job chooses types itself, so there is one of it."""
    jobs = []
    if settings.job in ("default", "both"):
        jobs.append(_job(one, "Default", None, load="as Inference Recommender chooses", request={"InputConfig": {}}))
    if settings.job in ("advanced", "both"):
        load = ", then ".join(
            f"{phase.initial_users}+{phase.users_per_minute}:{phase.seconds}" for phase in settings.phases
        )
        for instance_type in _instance_types(one, settings):
            request = _advanced(instance_type, settings)
            jobs.append(_job(one, "Advanced", instance_type, load=load, request=request))
    return jobs


def _instance_types(one: Configuration, settings: RecommenderSettings) -> tuple[str, ...]:
    return settings.instance_types or (one.result.instance_type,)


def _job(
    one: Configuration, kind: str, instance_type: str | None, *, load: str, request: dict[str, Any]
) -> dict[str, Any]:
    if one.vpc is not None:
        request["InputConfig"]["VpcConfig"] = one.vpc
    request |= {"JobType": kind, "JobDescription": f"{one.name} on {instance_type or 'any type'}"[:128]}
    return {
        "configuration": one.name,
        "instance_type": instance_type,
        "job_type": kind,
        "load": load,
        "request": request,
    }


def _advanced(instance_type: str, settings: RecommenderSettings) -> dict[str, Any]:
    """A load test's request, less name, role and package."""
    names = ("InitialNumberOfUsers", "SpawnRate", "DurationInSeconds")
    phases = [(phase.initial_users, phase.users_per_minute, phase.seconds) for phase in settings.phases]
    threshold = {"Percentile": settings.latency.percentile, "ValueInMilliseconds": settings.latency.milliseconds}
    return {
        "InputConfig": {
            "JobDurationInSeconds": settings.duration_seconds,
            "TrafficPattern": {
                "TrafficType": "PHASES",
                "Phases": [dict(zip(names, phase, strict=True)) for phase in phases],
            },
            "ResourceLimit": {"MaxNumberOfTests": 1, "MaxParallelOfTests": 1},
            "EndpointConfigurations": [{"InstanceType": instance_type}],
        },
        "StoppingConditions": {
            "MaxInvocations": settings.max_invocations,
            "ModelLatencyThresholds": [threshold],
            "FlatInvocations": settings.flat_invocations.title(),
        },
    }


def _document(environment: str, settings: RecommenderSettings, *, started: datetime, local: bool) -> dict[str, Any]:
    """The results' document, without results: ``BenchDocument`` in JSON."""
    return {
        "schema_version": 1,
        "complete": False,
        "started": started.isoformat(timespec="seconds"),
        "ended": None,
        "environment": environment,
        "local": local,
        "machine": {"generator": f"{GENERATOR}'s own"},
        "versions": {"tritonstack": VERSION},
        "seed": 0,
        "settings": {
            "recommender": settings.model_dump(mode="json"),
            "rule": {"percentile": 95.0},
            "stop": {"latency_ms": settings.latency.milliseconds},
        },
    }


REQUEST = "request"
"""The one file of a payload's archive."""


def configuration_of(
    endpoint: EndpointSettings, *, environment: Environment, session: Any, bucket: str, test: str
) -> Configuration:
    """The endpoint's model as it is deployed; its sample request is put into the bucket.

    Raises ReleaseLookupError: it is not deployed; InputError: its sample cannot be read, or cannot be written in
    JSON.
    """
    client = ModelClient(environment=environment.environment, session=session)
    name = f"{endpoint.name}/{endpoint.models[0]}"
    target = find_target(client, session, name=name)
    _, _, model = describe_endpoint(session.client("sagemaker"), target.call.endpoint_name)
    container = model["PrimaryContainer"]
    payload = payload_of(client, name, files=(), outputs=())
    body = payload.body("json")  # no documentation states that Inference Recommender takes the binary form
    key = f"{load_test_prefix(test=test)}payloads/{endpoint.models[0]}.tar.gz"
    session.client("s3").put_object(Bucket=bucket, Key=key, Body=packed(body.content))
    subject = Subject(
        configuration=endpoint.models[0],
        target=target,
        payload=payload,
        payload_format="json",
        manifest=client.manifest(name),
    )
    tested = {
        "variant": None,
        "instance_type": endpoint.instance_type,
        "instance_count": 1,
        "image": container["Image"],
        "generator": GENERATOR,
        "ended_by": "it was never started",
    }
    return Configuration(
        result=result_part(subject, body, local=False, container=False).model_copy(update=tested),
        container=container,
        vpc=model.get("VpcConfig"),
        payload_url=f"s3://{bucket}/{key}",
        content_type=body.content_type,
    )


def packed(content: bytes) -> bytes:
    """A request as Inference Recommender takes samples: a ``.tar.gz`` of files; the same bytes for the same request."""
    entry = tarfile.TarInfo(REQUEST)
    entry.size = len(content)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)


GONE = frozenset({"404", "NoSuchKey"})


class TestObjects:
    """Settings and results of one test.

    Attributes:
        bucket: where they lie.
        url: the folder that they lie in.
    """

    __test__ = False  # no test of ours, whatever its name begins with

    def __init__(self, s3: Any, *, bucket: str, test: str) -> None:
        """``test``: its id."""
        self._s3, self.bucket, self._prefix = s3, bucket, load_test_prefix(test=test)
        self.url = f"s3://{bucket}/{self._prefix}"

    def put_settings(self, settings: dict[str, Any]) -> None:
        """Write the settings."""
        body = json.dumps(settings, indent=1).encode()
        self._s3.put_object(
            Bucket=self.bucket, Key=f"{self._prefix}settings.json", Body=body, ContentType="application/json"
        )

    def exists(self, name: str) -> bool:
        """Whether the test has such an object."""
        return self._read(name) is not None

    def fetch(self, folder: Path, *, local: bool) -> bool:
        """Write the results into ``folder``, with their page; whether there were any.

        ``local``: they are of the local AWS. Then the document states it, and a measurement here has the name of no
        instance type of SageMaker's.

        Raises WorkFailedError: they cannot be read there or written here; they stay in the bucket.
        """
        try:
            return self._fetch(folder, local=local)
        except OSError as error:
            why = error.strerror or error
            said = f"{folder}: the results of the load test cannot be written: {why}"
            raise WorkFailedError(f"{said}\n  they are in {self.url}") from error
        except (BotoCoreError, ClientError) as error:
            said = f"the results of the load test cannot be fetched: {error}"
            raise WorkFailedError(f"{said}\n  they are in {self.url}") from error

    def _fetch(self, folder: Path, *, local: bool) -> bool:
        found = {name: content for name in (CSV, JSON) if (content := self._read(name)) is not None}
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in found.items():
            write_text(folder / name, content.decode())
        if JSON not in found:
            return False
        document = read_results(folder / JSON)
        if local:
            document = _mark_local(folder, document)
        write_text(folder / PAGE, results_page(document))
        return True

    def _read(self, name: str) -> bytes | None:
        try:
            answer = self._s3.get_object(Bucket=self.bucket, Key=f"{self._prefix}{name}")
        except ClientError as error:
            if error.response["Error"]["Code"] in GONE:
                return None
            raise
        content: bytes = answer["Body"].read()
        return content


def _mark_local(folder: Path, document: BenchDocument) -> BenchDocument:
    recommended = is_recommended(document)
    results = [
        each if recommended else each.model_copy(update={"instance_type": THIS_MACHINE, "instance_count": 1})
        for each in document.results
    ]
    document = document.model_copy(update={"local": True, "results": results})
    write_text(folder / JSON, json.dumps(document.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")
    if recommended:
        # Names of configurations come first: no fleet is sized by such a row unawares.
        head, *rows = (folder / CSV).read_text().splitlines()
        table = "\n".join([head, *(row.replace(",", " (constructed),", 1) for row in rows), ""])
    else:
        table = measurements_csv(document)
    write_text(folder / CSV, table)
    return document
