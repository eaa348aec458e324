"""What a load test in the cloud does, as its plan in the bucket has it: requests to SageMaker, or options of bench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tritonstack import VERSION
from tritonstack.naming import load_test_job_prefix
from tritonstack.settings.load_test import MOST_JOBS, BenchBuildSettings, RecommenderSettings

GENERATOR = "SageMaker Inference Recommender"
JSON_TYPES = ["application/json"]


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A single-model endpoint's model as it is deployed, and what it is asked.

    Attributes:
        name: how tables call it.
        model: as ``[endpoint/]model``.
        endpoint: SageMaker's name of the endpoint.
        instance_type: what the endpoint runs on.
        image, model_data_url, environment, vpc: of its container, as SageMaker describes the deployed model.
        archive, archive_sha256, config: of its archive; the last two None and empty where its manifest is not read.
        payload_url: where its sample request lies, packed.
        payload_format, content_type, payload, request_bytes: of that request.
    """

    name: str
    model: str
    endpoint: str
    instance_type: str
    image: str
    model_data_url: str
    environment: dict[str, str]
    vpc: dict[str, list[str]] | None
    archive: str
    archive_sha256: str | None
    config: dict[str, str]
    payload_url: str
    payload_format: str
    content_type: str
    payload: str
    request_bytes: int


def recommender_plan(
    test: str,
    configurations: Sequence[Configuration],
    *,
    environment: str,
    settings: RecommenderSettings,
    started: datetime,
    local: bool,
) -> dict[str, Any]:
    """The plan of a test with Inference Recommender.

    Args:
        test: its id.
        configurations: what is measured.
        environment: the environment's name.
        settings: how.
        started: when.
        local: whether it is the local AWS.

    Raises:
        ValueError: more than ``MOST_JOBS`` jobs.
    """
    prefix = load_test_job_prefix(environment)
    jobs = [each for one in configurations for each in _jobs(one, settings)]
    if len(jobs) > MOST_JOBS:
        raise ValueError(f"{len(jobs)} jobs; a test has {MOST_JOBS} at most")
    return {
        "id": test,
        "kind": "recommender",
        "poll_seconds": settings.poll_seconds,
        "group": f"{prefix}{test}",
        "packages": {one.name: package_request(one, settings) for one in configurations},
        "jobs": [{"name": f"{prefix}{test}-{number}", **job} for number, job in enumerate(jobs, start=1)],
        "document": _document(environment, settings, started=started, local=local),
        "results": {one.name: _result(one) for one in configurations},
    }


def bench_plan(test: str, names: Sequence[str], *, environment: str, settings: BenchBuildSettings) -> dict[str, Any]:
    """The plan of a test that CodeBuild runs: the options of ``tritonstack capacity bench``."""
    options = [
        *names,
        "--environment",
        environment,
        "--users",
        ",".join(map(str, settings.users)),
        "--format",
        settings.payload_format,
        "--max-seconds",
        f"{settings.max_seconds:g}",
    ]
    if settings.stop_latency_ms is not None:
        options += ["--stop-latency-ms", f"{settings.stop_latency_ms:g}"]
    return {"id": test, "kind": "bench", "options": options}


def package_request(one: Configuration, settings: RecommenderSettings) -> dict[str, Any]:
    """CreateModelPackage's request, less its group."""
    container = {
        "Image": one.image,
        "ModelDataUrl": one.model_data_url,
        "Environment": one.environment,
        "Framework": settings.framework,
        "FrameworkVersion": settings.framework_version,
        "NearestModelName": settings.nearest_model,
    }
    return {
        "ModelPackageDescription": f"{one.name} of {one.endpoint}, for one load test",
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
    return settings.instance_types or (one.instance_type,)


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
    return {
        "InputConfig": {
            "JobDurationInSeconds": settings.duration_seconds,
            "TrafficPattern": {
                "TrafficType": "PHASES",
                "Phases": [
                    {
                        "InitialNumberOfUsers": phase.initial_users,
                        "SpawnRate": phase.users_per_minute,
                        "DurationInSeconds": phase.seconds,
                    }
                    for phase in settings.phases
                ],
            },
            "ResourceLimit": {"MaxNumberOfTests": 1, "MaxParallelOfTests": 1},
            "EndpointConfigurations": [{"InstanceType": instance_type}],
        },
        "StoppingConditions": {
            "MaxInvocations": settings.max_invocations,
            "ModelLatencyThresholds": [
                {
                    "Percentile": settings.latency.percentile,
                    "ValueInMilliseconds": settings.latency.milliseconds,
                }
            ],
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


def _result(one: Configuration) -> dict[str, Any]:
    """A result of the document, without figures: what stays where a job finds nothing."""
    return {
        "configuration": one.name,
        "name": one.model,
        "endpoint": one.endpoint,
        "archive": one.archive,
        "archive_sha256": one.archive_sha256,
        "config": one.config,
        "variant": None,
        "instance_type": one.instance_type,
        "instance_count": 1,
        "image": one.image,
        "way": "endpoint",
        "generator": GENERATOR,
        "payload_format": one.payload_format,
        "payload": one.payload,
        "request_bytes": one.request_bytes,
        "answer_bytes": 0,
        "first_call_ms": 0.0,
        "cold": None,
        "points": [],
        "endpoint_figures": [],
        "published": 0,
        "ended_by": "it was never started",
    }
