"""The largest body of InvokeEndpoint: AWS's pages disagree, and everything here takes one of the two figures."""

from __future__ import annotations

import inspect

import botocore.session

from tritonstack.aws.sagemaker_rules import API_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES
from tritonstack.proxy.server import make_server
from tritonstack_local.runtime.settings import RuntimeSettings


def test_proxy_and_local_runtime_take_the_limit_of_the_hosting_page() -> None:
    """SageMaker developer guide, "Model deployment options in SageMaker AI": 25 MB for real-time inference."""
    assert MAX_PAYLOAD_BYTES == 25 * 2**20
    assert inspect.signature(make_server).parameters["max_payload_bytes"].default == MAX_PAYLOAD_BYTES
    assert RuntimeSettings.max_payload_bytes == MAX_PAYLOAD_BYTES


def test_the_other_limit_is_that_of_the_service_model() -> None:
    """API reference, InvokeEndpoint: Body."""
    body = botocore.session.get_session().get_service_model("sagemaker-runtime").shape_for("BodyBlob")
    assert body.metadata["max"] == API_PAYLOAD_BYTES < MAX_PAYLOAD_BYTES
