"""Deployed single-model endpoints as configurations of a load test: what runs, and the request that is sent."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import Any

from tritonstack.client.model_client import ModelClient
from tritonstack.naming import load_test_prefix
from tritonstack.settings import Endpoint, Environment
from tritonstack_capacity.bench.cloud_plan import Configuration
from tritonstack_capacity.bench.payload import Format, payload_of
from tritonstack_capacity.bench.target import find_target

REQUEST = "request"
"""The one file of a payload's archive."""


def configuration_of(
    endpoint: Endpoint, *, environment: Environment, session: Any, bucket: str, test: str, payload_format: Format
) -> Configuration:
    """The endpoint's model as it is deployed; its sample request is put into the bucket.

    Raises:
        ReleaseLookupError: it is not deployed.
        InputError: its sample cannot be read, or cannot be said in this format.
    """
    client = ModelClient(environment=environment.environment, session=session)
    name = f"{endpoint.name}/{endpoint.models[0]}"
    target = find_target(client, session, name=name)
    container, vpc = _deployed(session.client("sagemaker"), target.call.endpoint_name)
    payload = payload_of(client, name, files=(), outputs=())
    body = payload.body(payload_format)
    key = f"{load_test_prefix(test=test)}payloads/{endpoint.models[0]}.tar.gz"
    session.client("s3").put_object(Bucket=bucket, Key=key, Body=packed(body.content))
    manifest = client.manifest(name) or {}
    return Configuration(
        name=endpoint.models[0],
        model=name,
        endpoint=target.call.endpoint_name,
        instance_type=endpoint.instance_type,
        image=container["Image"],
        model_data_url=container["ModelDataUrl"],
        environment=dict(container.get("Environment", {})),
        vpc=vpc,
        archive=str(target.release.archive),
        archive_sha256=manifest.get("archive", {}).get("sha256"),
        config=dict(manifest.get("configs", {})),
        payload_url=f"s3://{bucket}/{key}",
        payload_format=payload_format,
        content_type=body.content_type,
        payload=payload.source,
        request_bytes=len(body.content),
    )


def packed(content: bytes) -> bytes:
    """A request as Inference Recommender takes samples: a ``.tar.gz`` of files; the same bytes for the same request."""
    entry = tarfile.TarInfo(REQUEST)
    entry.size = len(content)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)


def _deployed(sagemaker: Any, endpoint: str) -> tuple[dict[str, Any], dict[str, list[str]] | None]:
    """Container and VPC of the model behind an endpoint."""
    described = sagemaker.describe_endpoint(EndpointName=endpoint)
    config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
    model = sagemaker.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
    return dict(model["PrimaryContainer"]), model.get("VpcConfig")
