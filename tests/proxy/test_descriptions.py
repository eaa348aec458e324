"""Manifests, endpoint states, metadata and the repository index."""

from __future__ import annotations

import pytest
from botocore.exceptions import EndpointConnectionError

from tests.fake_aws import AwsError
from tests.proxy.world import MANIFESTS, ProxyAccount
from tritonstack.proxy.server import (
    Described,
    model_config,
    model_metadata,
    split_address,
    unready,
)


@pytest.mark.parametrize(
    ("status", "is_ready"),
    [("Creating", False), ("Failed", False), ("InService", True), ("SystemUpdating", True), ("RollingBack", True)],
)
def test_an_endpoint_is_ready_while_it_is_updated_and_not_before_it_is_created(status: str, *, is_ready: bool) -> None:
    sagemaker = ProxyAccount(states={"dev-e": status}).client("sagemaker")
    assert unready(sagemaker, "dev-e") == ("" if is_ready else f"endpoint dev-e is {status}")


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (AwsError("AccessDeniedException"), ""),
        (AwsError("ValidationException", 'Could not find endpoint "dev-e".'), "there is no endpoint dev-e"),
        (EndpointConnectionError(endpoint_url="u"), ""),
    ],
)
def test_an_endpoint_whose_state_cannot_be_described_is_assumed_ready(failure: Exception, reason: str) -> None:
    sagemaker = ProxyAccount(refused={"DescribeEndpoint": failure}).client("sagemaker")
    assert unready(sagemaker, "dev-e") == reason


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("m", ("m", "")),
        ("e/m", ("e/m", "")),
        ("m.step", ("m", "step")),
        ("e/m.step.2", ("e/m", "step.2")),
        ("e/m.0123456789abcdef.tar.gz", ("e/m.0123456789abcdef.tar.gz", "")),
    ],
)
def test_a_full_stop_names_a_step(name: str, parts: tuple[str, str]) -> None:
    assert split_address(name) == parts


def test_a_configuration_without_tensors_takes_the_manifest_s() -> None:
    """ONNX Runtime completes such a configuration itself; the build read the tensors from the model."""
    manifest = {**MANIFESTS["digits-onnx"], "configs": {"digits-onnx": 'backend: "onnxruntime" max_batch_size: 8'}}
    config = model_config(Described(manifest=manifest, name="digits-onnx"))
    assert config["input"] == [{"name": "pixels", "data_type": "TYPE_FP32", "dims": [4]}]
    assert config["output"] == [{"name": "pixels", "data_type": "TYPE_FP32", "dims": [4]}]
    assert model_metadata(Described(manifest=manifest, name="d"))["platform"] == "onnxruntime"
