"""An AWS for benches: InvokeEndpoint on loopback, and the few other calls that a bench makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.client.fakes import FakeEndpoint, Reply, Request, echo, error_reply, serving_outputs
from tests.fake_aws import ARTIFACTS, FakeAws
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


class RecordedProgress(Progress):
    """Progress whose texts are recorded."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.now: list[str] = []
        super().__init__(note=self.notes.append, say=self.now.append)


@dataclass
class BenchAccount(FakeAws):
    """An account with one endpoint on three instances, whose archives are in ``s3://artifacts/prefix/``.

    Attributes:
        variants: names of its variants.
    """

    variants: tuple[str, ...] = ("g4dn-xlarge",)

    def _GetMetricStatistics(self, **_: Any) -> dict[str, Any]:
        return {"Datapoints": []}

    def _PutMetricData(self, **_: Any) -> None:
        pass

    def _DescribeEndpoint(self, EndpointName: str) -> dict[str, Any]:
        return {"EndpointName": EndpointName, "EndpointConfigName": "config"}

    def _DescribeEndpointConfig(self, EndpointConfigName: str) -> dict[str, Any]:
        assert EndpointConfigName == "config"
        each = {"ModelName": "model", "InstanceType": "ml.g4dn.xlarge", "InitialInstanceCount": 3}
        return {"ProductionVariants": [{"VariantName": name, **each} for name in self.variants]}

    def _DescribeModel(self, ModelName: str) -> dict[str, Any]:
        assert ModelName == "model"
        container = {"Mode": "MultiModel", "ModelDataUrl": f"s3://{ARTIFACTS}/prefix/", "Image": "image:24.09"}
        return {"PrimaryContainer": container}


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything that a test looks at."""

    endpoint: FakeEndpoint
    aws: BenchAccount


@contextmanager
def world(*, mode: str = "multi-model", models: tuple[str, ...] = ("bert",)) -> Iterator[World]:
    """An endpoint ``prod-bert`` with these models, which echo."""
    records = {f"/tritonstack/prod/bert/{model}": DIGEST for model in models}
    outputs = {"/tritonstack/prod/_outputs/serving-bert": serving_outputs(mode)}
    with FakeEndpoint().running() as endpoint:
        aws = BenchAccount(parameters=records | outputs, urls={"sagemaker-runtime": endpoint.url})
        aws.artifacts.update({f"prefix/{model}.{DIGEST}.tar.gz": b"archive" for model in models})
        yield World(endpoint=endpoint, aws=aws)


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
    """The first request has a response, all others are refused."""
    replies = iter([echo])

    def reply(request: Request) -> Reply:
        following = next(replies, None)
        return error_reply("ServiceUnavailable", 503) if following is None else following(request)

    endpoint.reply = reply


def loads(result: ResultPart) -> list[str]:
    """Of a result, by their names."""
    return [point.load for point in result.points]
