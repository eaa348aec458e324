"""Settings of a load test in the cloud, which its build or its state machine reads from the bucket."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tritonstack import VERSION
from tritonstack.catalogue import load_catalogue
from tritonstack.config.load_test import BenchBuildSettings, RecommenderSettings
from tritonstack.naming import load_test_job_prefix
from tritonstack_capacity.bench.cloud.configurations import GENERATOR, Configuration

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
