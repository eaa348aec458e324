"""Settings of a load test in the cloud, and its objects in the bucket."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import VERSION
from tritonstack.catalogue import load_catalogue
from tritonstack.config.load_test import BenchBuildSettings, RecommenderSettings
from tritonstack.errors import WorkFailedError
from tritonstack.naming import load_test_job_prefix, load_test_prefix
from tritonstack.paths import write_text
from tritonstack_capacity.bench.cloud_configurations import GENERATOR, Configuration
from tritonstack_capacity.bench.document import BenchDocument, is_recommended, measurements_csv
from tritonstack_capacity.bench.page import results_page
from tritonstack_capacity.bench.results_folder import CSV, JSON, PAGE, read_results
from tritonstack_capacity.csv_file import CONSTRUCTED_MARK, THIS_MACHINE

JSON_TYPES = ["application/json"]
MOST_AT_ONCE = 5
"""Load tests of one job at the same time, each on an endpoint of its own: ours."""


def recommender_test_settings(
    test: str,
    configurations: Sequence[Configuration],
    *,
    environment: str,
    settings: RecommenderSettings,
    started: datetime,
    local: bool,
) -> dict[str, Any]:
    """The settings of a test with Inference Recommender: default jobs first, which the load tests after them follow."""
    prefix = load_test_job_prefix(environment)
    jobs = [_default(one) for one in configurations] if settings.job in ("default", "both") else []
    if settings.job in ("advanced", "both"):
        jobs += [each for one in configurations for each in _load_tests(one, settings)]
    named = [{"name": f"{prefix}{test}-{number}", **job} for number, job in enumerate(jobs, start=1)]
    if settings.job == "both":
        first = {job["configuration"]: job["name"] for job in named if job["job_type"] == "Default"}
        for job in named:
            if job["job_type"] == "Advanced":
                job["after"] = first[job["configuration"]]
    return {
        "id": test,
        "kind": "recommender",
        "poll_seconds": settings.poll_seconds,
        "group": settings.model_package_group or f"{prefix}{test}",
        "keep_packages": settings.model_package_group is not None,
        # SageMaker's clock may be behind this machine's.
        "registered_after": (started - timedelta(minutes=15)).isoformat(timespec="seconds"),
        "packages": {one.name: package_request(one, settings) for one in configurations},
        "jobs": named,
        "document": _document(environment, settings, started=started, local=local),
        "results": {one.name: one.result.model_dump(mode="json") for one in configurations},
    }


def resumed_settings(earlier: Mapping[str, Any], *, test: str, kept: Collection[str]) -> dict[str, Any]:
    """The settings of a test that goes on with an earlier one: the jobs in ``kept`` stay, the others get new names.

    The function of the steps starts no job that exists already, and gathers the results of all. Only configurations
    with a job to come are registered again.
    """
    prefix = str(earlier["document"]["environment"])
    start = f"{load_test_job_prefix(prefix)}{test}"
    names = {
        job["name"]: job["name"] if job["name"] in kept else f"{start}-{number}"
        for number, job in enumerate(earlier["jobs"], start=1)
    }
    jobs = [
        {**job, "name": names[job["name"]], **({"after": names[job["after"]]} if "after" in job else {})}
        for job in earlier["jobs"]
    ]
    left = {job["configuration"] for job in earlier["jobs"] if job["name"] not in kept}
    return {
        **earlier,
        "id": test,
        "group": earlier["group"] if earlier["keep_packages"] else start,
        "packages": {name: one for name, one in earlier["packages"].items() if name in left},
        "jobs": jobs,
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
    container |= {
        "Framework": settings.framework,
        "FrameworkVersion": settings.framework_version,
        "NearestModelName": settings.nearest_model,
    }
    what = f"{one.name} of {one.result.endpoint}"
    return {
        "ModelPackageDescription": what if settings.model_package_group else f"{what}, for one load test",
        "InferenceSpecification": {
            "Containers": [{name: value for name, value in container.items() if value is not None}],
            "SupportedContentTypes": [one.content_type],
            "SupportedResponseMIMETypes": JSON_TYPES,
            "SupportedRealtimeInferenceInstanceTypes": list(_supported_types(one, settings)),
        },
        "Domain": settings.domain,
        "Task": settings.task,
        "SamplePayloadUrl": one.payload_url,
    }


def _supported_types(one: Configuration, settings: RecommenderSettings) -> tuple[str, ...]:
    """The types that a default job may choose among: all with the GPU that the archive is built for."""
    if settings.instance_types or settings.job == "advanced":
        return _instance_types(one, settings)
    own = load_catalogue().instance(one.result.instance_type)
    others = () if own is None else tuple(each.name for each in load_catalogue().instances_with(own.gpu))
    return tuple(dict.fromkeys((one.result.instance_type, *others)))


def _instance_types(one: Configuration, settings: RecommenderSettings) -> tuple[str, ...]:
    return settings.instance_types or (one.result.instance_type,)


def _default(one: Configuration) -> dict[str, Any]:
    return _job(one, "Default", None, load="as Inference Recommender chooses", request={"InputConfig": {}})


def _load_tests(one: Configuration, settings: RecommenderSettings) -> list[dict[str, Any]]:
    """A job for each instance type; one for all recommended types where a default job recommends them."""
    load = ", then ".join(
        f"{phase.initial_users}+{phase.users_per_minute}:{phase.seconds}" for phase in settings.phases
    )
    recommended = settings.job == "both" and not settings.instance_types
    return [
        _job(one, "Advanced", None if recommended else each, load=load, request=_advanced(each, settings))
        for each in _instance_types(one, settings)
    ]


def _job(
    one: Configuration, kind: str, instance_type: str | None, *, load: str, request: dict[str, Any]
) -> dict[str, Any]:
    if one.vpc is not None:
        request["InputConfig"]["VpcConfig"] = one.vpc
    any_type = "any type" if kind == "Default" else "the recommended types"
    request |= {"JobType": kind, "JobDescription": f"{one.name} on {instance_type or any_type}"[:128]}
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
    ranges = [{"Name": name, "Value": list(values)} for name, values in settings.environment_parameters.items()]
    varied = {"EnvironmentParameterRanges": {"CategoricalParameterRanges": ranges}} if ranges else {}
    tests = settings.combinations
    return {
        "InputConfig": {
            "JobDurationInSeconds": settings.duration_seconds,
            "TrafficPattern": {
                "TrafficType": "PHASES",
                "Phases": [dict(zip(names, phase, strict=True)) for phase in phases],
            },
            "ResourceLimit": {"MaxNumberOfTests": tests, "MaxParallelOfTests": min(tests, MOST_AT_ONCE)},
            "EndpointConfigurations": [{"InstanceType": instance_type, **varied}],
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

    def read_settings(self) -> dict[str, Any] | None:
        """The settings, or None where there is no such test."""
        content = self._read("settings.json")
        found: dict[str, Any] | None = None if content is None else json.loads(content)
        return found

    def put_payloads(self, configurations: Sequence[Configuration]) -> None:
        """Write the packed sample requests."""
        for one in configurations:
            bucket, _, key = one.payload_url.removeprefix("s3://").partition("/")
            self._s3.put_object(Bucket=bucket, Key=key, Body=one.payload)

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
        table = "\n".join([head, *(row.replace(",", f"{CONSTRUCTED_MARK},", 1) for row in rows), ""])
    else:
        table = measurements_csv(document)
    write_text(folder / CSV, table)
    return document
