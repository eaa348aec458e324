"""Calls that the end-to-end tests make, with boto3 alone."""

from __future__ import annotations

import json
from typing import Any

from tritonstack.naming import ArchiveName, release_parameter
from tritonstack_local.aws import LocalAws


def target_model(aws: LocalAws, *, endpoint: str, model: str, environment: str = "local") -> str:
    """The TargetModel that the release record of a model names."""
    name = release_parameter(environment=environment, endpoint=endpoint, model=model)
    digest: str = aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    return str(ArchiveName(model=model, digest=digest))


def body(value: float) -> bytes:
    """A request for one of the tests' own models."""
    return json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [value]}]}).encode()


def invoke(client: Any, *, endpoint: str, target: str, value: float, environment: str = "local") -> float:
    """Call one of the tests' own models; its one output value."""
    answer = client.invoke_endpoint(
        EndpointName=f"{environment}-{endpoint}",
        TargetModel=target,
        ContentType="application/json",
        Body=body(value),
    )
    output = json.loads(answer["Body"].read())["outputs"][0]["data"][0]
    return float(output)
