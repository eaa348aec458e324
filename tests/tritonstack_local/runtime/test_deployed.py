"""What is deployed, read from describe calls."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber

from tests.local_keys import KEYS
from tests.tritonstack_local.http_fake import responding
from tests.tritonstack_local.runtime.fakes import ROLE
from tritonstack_local.runtime.deployed import (
    DeployedEndpoint,
    DeploymentError,
    EmulatorReader,
    Reported,
    S3Location,
    Traffic,
    UnreachableError,
    read_model,
)
from tritonstack_local.runtime.settings import RuntimeSettings

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
ARN = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/e"
IMAGES = [{"SpecifiedImage": "triton:24.09"}]
MODEL: dict[str, Any] = {
    "ModelName": "m",
    "ExecutionRoleArn": ROLE,
    "PrimaryContainer": {
        "Image": "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3",
        "Mode": "MultiModel",
        "ModelDataUrl": "s3://bucket/endpoints/digits/24.09-t4/",
        "Environment": {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"},
    },
}


def reader(url: str = "http://127.0.0.1:1") -> EmulatorReader:
    """A reader of an address without a listener."""
    return EmulatorReader(RuntimeSettings(port=0, emulator_url=url, keys=KEYS, state=Path("unused")))


def described(stub: Stubber, *, tags: dict[str, str] | None = None, **changes: Any) -> None:
    """One round of list, describe and tags."""
    response = {
        "EndpointName": "e",
        "EndpointArn": ARN,
        "EndpointConfigName": "c1",
        "EndpointStatus": "InService",
        "CreationTime": WHEN,
        "LastModifiedTime": WHEN,
        "ProductionVariants": [{"VariantName": "v", "CurrentInstanceCount": 3, "DeployedImages": IMAGES}],
    } | changes
    summary = {
        name: response[name]
        for name in ("EndpointName", "EndpointArn", "CreationTime", "LastModifiedTime", "EndpointStatus")
    }
    stub.add_response("list_endpoints", {"Endpoints": [summary]})
    stub.add_response("describe_endpoint", response)
    stub.add_response("list_tags", {"Tags": [{"Key": key, "Value": value} for key, value in (tags or {}).items()]})


def only(found: tuple[DeployedEndpoint, ...]) -> DeployedEndpoint:
    """The only endpoint."""
    (one,) = found
    return one


@pytest.mark.parametrize(
    ("changes", "config", "pending"),
    [
        ({}, "c1", None),
        ({"EndpointStatus": "Creating", "PendingDeploymentSummary": {"EndpointConfigName": "c1"}}, None, "c1"),
    ],
    ids=["in service", "created"],
)
def test_an_endpoint_has_its_config_or_a_pending_one_and_counts(
    changes: dict[str, Any], config: str | None, pending: str | None
) -> None:
    one = reader()
    with Stubber(one._sagemaker) as stub:
        described(stub, tags={"tritonstack:local-max-loaded-models": "8"}, **changes)
        found = only(one.endpoints())
    assert (found.config, found.pending) == (config, pending)
    assert (found.instance_counts, found.max_loaded_models) == ({"v": 3}, 8)
    assert found.tags == {"tritonstack:local-max-loaded-models": "8"}


def test_an_update_has_both_and_a_second_one_to_the_same_config_differs() -> None:
    one = reader()
    with Stubber(one._sagemaker) as stub:
        for second in (1, 2):
            pending = {"EndpointConfigName": "c2", "StartTime": WHEN.replace(second=second)}
            described(stub, EndpointStatus="Updating", PendingDeploymentSummary=pending)
        first, second_update = only(one.endpoints()), only(one.endpoints())
    assert (first.config, first.pending) == ("c1", "c2")
    assert first.generation != second_update.generation


def test_a_local_aws_that_does_not_respond_is_unreachable() -> None:
    with pytest.raises(UnreachableError):
        reader().endpoints()
    with pytest.raises(UnreachableError):
        reader().report(endpoint="e", config="c", outcome="in_service")


def test_another_emulator_behind_the_same_address_is_noticed_once() -> None:
    noticed: list[str] = []
    one = EmulatorReader(
        RuntimeSettings(port=0, emulator_url="http://127.0.0.1:1", keys=KEYS, state=Path("unused")),
        restarted=lambda: noticed.append("restarted"),
    )
    for instance, expected in (("a", 0), ("a", 0), ("b", 1), ("b", 1)):
        with responding(f'{{"mark": "m", "instance": "{instance}"}}'.encode()) as (port, _):
            one._settings = replace(one._settings, emulator_url=f"http://127.0.0.1:{port}")
            assert one.mark() == "m"
        assert len(noticed) == expected


def test_weights_are_read_of_the_config_in_service_and_of_the_pending_one() -> None:
    one = reader()
    pending, now = (
        [{"VariantName": name, "CurrentWeight": weight, "DeployedImages": IMAGES} for name, weight in weights.items()]
        for weights in ({"a": 0.5, "b": 0.5}, {"a": 1.0, "b": 0.0})
    )
    with Stubber(one._sagemaker) as stub:
        summary = {"EndpointConfigName": "c2", "StartTime": WHEN, "ProductionVariants": pending}
        described(stub, EndpointStatus="Updating", PendingDeploymentSummary=summary, ProductionVariants=now)
        found = only(one.endpoints())
    assert found.weights == {("c1", "a"): 1.0, ("c1", "b"): 0.0, ("c2", "a"): 0.5, ("c2", "b"): 0.5}


def test_a_config_is_read_with_its_variants_models_and_timeouts() -> None:
    one = reader()
    variant = {
        "VariantName": "v",
        "ModelName": "m",
        "InstanceType": "ml.g4dn.xlarge",
        "InitialInstanceCount": 2,
        "ModelDataDownloadTimeoutInSeconds": 600,
        "ContainerStartupHealthCheckTimeoutInSeconds": 120,
    }
    with Stubber(one._sagemaker) as stub:
        named = {"EndpointConfigName": "c1", "EndpointConfigArn": ARN, "CreationTime": WHEN}
        other = {**variant, "VariantName": "other", "ModelName": "m2"}
        stub.add_response("describe_endpoint_config", {**named, "ProductionVariants": [variant, other]})
        for name in ("m", "m2"):
            response = MODEL | {"ModelName": name, "CreationTime": WHEN, "ModelArn": ARN}
            stub.add_response("describe_model", response, {"ModelName": name})
        found, second = one.config("c1")
    assert (second.name, second.variant, second.model.name) == ("c1", "other", "m2")
    assert (found.variant, found.instance_count, found.download_seconds, found.startup_seconds) == ("v", 2, 600, 120)
    assert (found.model.multi_model, found.model.cache_enabled, found.model.role) == (True, True, ROLE)
    assert found.model.data == S3Location(bucket="bucket", key="endpoints/digits/24.09-t4/")
    container = MODEL["PrimaryContainer"] | {"MultiModelConfig": {"ModelCacheSetting": "Disabled"}}
    assert not read_model(MODEL | {"PrimaryContainer": container}).cache_enabled


@pytest.mark.parametrize(
    ("container", "reason"),
    [
        ({"Image": "i"}, "is no s3://bucket/key"),
        ({"Image": "i", "ModelDataUrl": "https://bucket/one.tar.gz"}, "is no s3://bucket/key"),
        ({"Image": "i", "ModelDataUrl": "s3://bucket"}, "is no s3://bucket/key"),
    ],
)
def test_model_data_that_cannot_be_served_is_refused(container: dict[str, Any], reason: str) -> None:
    with pytest.raises(DeploymentError, match=reason):
        read_model({"ModelName": "m", "PrimaryContainer": container})


@pytest.mark.parametrize(
    ("status", "response", "expected"),
    [
        (200, b'{"deployment": "ended"}', Reported.ENDED),
        (200, b'{"deployment": "in_progress"}', Reported.IN_PROGRESS),
        (409, b"{}", Reported.NOT_AWAITED),
        (200, b"what?", None),
        (500, b"{}", None),
    ],
)
def test_a_report_returns_the_deployment_as_it_is_now_or_is_tried_again_by_its_caller(
    status: int, response: bytes, expected: Reported | None
) -> None:
    refused = pytest.raises(UnreachableError) if expected is None else nullcontext()
    with responding(response, status=status) as (port, seen), refused:
        reported = reader(f"http://127.0.0.1:{port}").report(endpoint="e", config="c", outcome="shifted", instances=2)
        assert reported is expected
    assert seen == ["POST /_tritonstack/endpoints/e/report HTTP/1.1"]


@pytest.mark.parametrize(
    ("stage", "expected"),
    [("Creating", None), ("ActivatingTraffic", Traffic(instances=1, of=4)), ("Baking", Traffic(instances=1, of=4))],
)
def test_the_instances_that_take_calls_are_read_while_traffic_is_shifted(stage: str, expected: Traffic | None) -> None:
    one = reader()
    variant = {
        "VariantName": "v",
        "CurrentInstanceCount": 1,
        "DesiredInstanceCount": 4,
        "VariantStatus": [{"Status": stage}],
    }
    with Stubber(one._sagemaker) as stub:
        pending = {"EndpointConfigName": "c2", "StartTime": WHEN, "ProductionVariants": [variant]}
        described(stub, EndpointStatus="Updating", PendingDeploymentSummary=pending)
        assert only(one.endpoints()).traffic == expected
