"""Who is called: an endpoint's model, what it runs on, and how botocore names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.client.calls import Target
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import Release


@dataclass(frozen=True, kw_only=True)
class BenchTarget:
    """One model behind an endpoint.

    Attributes:
        name: as the person named it.
        release: its current archive.
        call: how InvokeEndpoint names it.
        fleet: what it runs on.
    """

    name: str
    release: Release
    call: Target
    fleet: Fleet


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """An endpoint's instances, as SageMaker describes them; None where this caller may not ask."""

    variant: str | None
    instance_type: str | None
    instance_count: int | None
    image: str | None


def find_target(client: ModelClient, session: Any, *, name: str) -> BenchTarget:
    """The target of a name. Raises what ``ModelClient.target`` raises."""
    call = client.target(name)
    fleet = describe_fleet(session.client("sagemaker"), call.endpoint_name)
    return BenchTarget(name=name, release=client.resolve(name), call=call, fleet=fleet)


def describe_fleet(sagemaker: Any, endpoint: str) -> Fleet:
    """What SageMaker says of an endpoint."""
    try:
        described = sagemaker.describe_endpoint(EndpointName=endpoint)
        config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
        variant = config["ProductionVariants"][0]
        model = sagemaker.describe_model(ModelName=variant["ModelName"])
    except (ClientError, BotoCoreError):
        return Fleet(variant=None, instance_type=None, instance_count=None, image=None)
    containers = [model["PrimaryContainer"]] if "PrimaryContainer" in model else model.get("Containers", [])
    first = containers[0] if containers else {}
    live = (described.get("ProductionVariants") or [{}])[0]
    return Fleet(
        variant=variant.get("VariantName"),
        instance_type=variant.get("InstanceType"),
        instance_count=live.get("CurrentInstanceCount", variant.get("InitialInstanceCount")),
        image=first.get("Image"),
    )
