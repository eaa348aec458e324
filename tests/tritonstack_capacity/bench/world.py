"""An AWS for benches: InvokeEndpoint on loopback, and the few other calls that a bench makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.client.fakes import (
    FakeEndpoint,
    FakeS3,
    FakeSession,
    FakeSsm,
    Reply,
    Request,
    client_error,
    echo,
    error_reply,
    serving_outputs,
)
from tests.tritonstack_capacity.bench.test_settings import SETTINGS
from tritonstack.client.errors import InvokeTarget
from tritonstack.client.releases import ModelRelease
from tritonstack_capacity.bench.document import ResultPart
from tritonstack_capacity.bench.load import Users
from tritonstack_capacity.bench.measuring import StabilityRule, Timing
from tritonstack_capacity.bench.settings import BenchSettings, Progress
from tritonstack_capacity.bench.subject import BenchTarget, Payload, Subject

DIGEST = "0123456789abcdef"
SHORT = replace(
    SETTINGS,
    names=("bert/bert",),
    environment="prod",
    loads=(Users(count=1), Users(count=2)),
    timing=Timing(warm_up=0.0, round=0.1),
    rule=StabilityRule(within=0.9, least=1, most=1, percentile=95.0),
    max_calls=100_000,
)


class Told(Progress):
    """Keeps what a test tells."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.now: list[str] = []
        super().__init__(note=self.notes.append, say=self.now.append)


class CopyingS3(FakeS3):
    """Copies and deletes beside it."""

    def copy(self, source: dict[str, str], bucket: str, key: str) -> None:
        assert source["Bucket"] == bucket == "bucket"
        if source["Key"] not in self.objects:
            raise client_error("404", "no such archive", status=404)
        self.objects[key] = self.objects[source["Key"]]

    def delete_object(self, *, Bucket: str, Key: str) -> None:  # noqa: N803
        assert Bucket == "bucket"
        del self.objects[Key]


class Metrics:
    """CloudWatch: has no figures, keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def get_metric_statistics(self, **_: Any) -> dict[str, Any]:
        return {"Datapoints": []}

    def put_metric_data(self, **told: Any) -> None:
        self.told.append(told)


class DescribedSageMaker:
    """Names its variant and where its archives lie. Its address is AWS's until a test gives it another."""

    def __init__(self) -> None:
        self.meta = SimpleNamespace(endpoint_url="https://api.sagemaker.us-east-1.amazonaws.com")

    def describe_endpoint(self, *, EndpointName: str) -> dict[str, Any]:  # noqa: N803
        return {"EndpointName": EndpointName, "EndpointConfigName": "config"}

    def describe_endpoint_config(self, *, EndpointConfigName: str) -> dict[str, Any]:  # noqa: N803
        assert EndpointConfigName == "config"
        named = {"VariantName": "g4dn-xlarge", "InstanceType": "ml.g4dn.xlarge", "InitialInstanceCount": 3}
        return {"ProductionVariants": [{"ModelName": "model", **named}]}

    def describe_model(self, *, ModelName: str) -> dict[str, Any]:  # noqa: N803
        assert ModelName == "model"
        return {
            "PrimaryContainer": {"Mode": "MultiModel", "ModelDataUrl": "s3://bucket/prefix/", "Image": "image:24.09"}
        }


class Session(FakeSession):
    """Makes clients with and without a config."""

    def client(self, service_name: str, *, config: Any = None) -> Any:
        return super().client(service_name, config=config)


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything that a test looks at."""

    endpoint: FakeEndpoint
    session: Session
    s3: CopyingS3
    metrics: Metrics


@contextmanager
def world(*, mode: str = "multi-model", models: tuple[str, ...] = ("bert",)) -> Iterator[World]:
    """An endpoint ``prod-bert`` with these models, which echo."""
    s3 = CopyingS3({f"prefix/{model}.{DIGEST}.tar.gz": {} for model in models})
    metrics = Metrics()
    ssm = FakeSsm({f"/tritonstack/prod/bert/{model}": DIGEST for model in models})
    ssm.parameters["/tritonstack/prod/_outputs/serving-bert"] = serving_outputs(mode)
    with FakeEndpoint().running() as endpoint:
        session = Session(endpoint.url, ssm=ssm, s3=s3, cloudwatch=metrics, sagemaker=DescribedSageMaker())
        yield World(endpoint=endpoint, session=session, s3=s3, metrics=metrics)


def subject(**changes: Any) -> Subject:
    """The model ``bert`` of the world's endpoint."""
    release = ModelRelease(endpoint="bert", model="bert", digest=DIGEST)
    given = Subject(
        configuration="plain",
        target=BenchTarget(
            name="bert/bert",
            release=release,
            call=InvokeTarget(endpoint_name="prod-bert", target_model=str(release.archive)),
            variant="g4dn-xlarge",
            instance_type="ml.g4dn.xlarge",
            instance_count=3,
            image="image:24.09",
        ),
        payload=Payload(inputs={"x": np.ones((1, 2), dtype=np.float32)}, outputs=None, source="the test"),
        payload_format="binary",
        manifest={"archive": {"sha256": "f" * 64}, "configs": {"bert": 'name: "bert"'}, "model": {}},
    )
    return replace(given, **changes)


def settings_with_input(folder: Path, **changes: Any) -> BenchSettings:
    """Short ones that send a file, so that no manifest is needed."""
    file = folder / "request.json"
    file.write_text(json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [3.0]}]}))
    return replace(SHORT, files=(str(file),), **changes)


def busy_but_once(endpoint: FakeEndpoint) -> None:
    """The first call is answered, all others are not."""
    answers = iter([echo])

    def reply(request: Request) -> Reply:
        answer = next(answers, None)
        return error_reply("ServiceUnavailable", 503) if answer is None else answer(request)

    endpoint.reply = reply


def loads(result: ResultPart) -> list[str]:
    """Of a result, by their names."""
    return [point.load for point in result.points]
