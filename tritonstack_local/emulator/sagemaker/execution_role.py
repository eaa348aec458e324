"""Permissions of execution roles: what SageMaker looks at when a model is created, and when a fleet starts.

Source of the actions: developer guide, "SageMaker AI roles", CreateModel API, and "Auto-Rollback Configuration and
Monitoring" (alarms). Sources of the sentences: CreateModel in philschmid/llm-sagemaker-sample, issue 2; images in
aws/sagemaker-python-sdk, issue 2002; model data in aws-samples/cvat-on-aws-china, issue 3. Those of networks, logs and
alarms are UNVERIFIED, and that an endpoint fails which may not write its log.
"""

from __future__ import annotations

import logging
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from ministack.core.responses import get_region

from tritonstack import aws_names
from tritonstack_local.emulator.iam.authorization import role_principal
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import (
    arn_of,
    interface_needs,
    log_needs,
    object_needs,
    pull_needs,
    refusal_of,
)
from tritonstack_local.emulator.sagemaker.deployment import Deployment
from tritonstack_local.emulator.sagemaker.records import refused
from tritonstack_local.emulator.sagemaker.state import SageMakerState

logger = logging.getLogger("tritonstack.emulator")
Request = Mapping[str, Any]


def check_model_data(request: Request) -> None:
    """Raise RefusedError where a model's role may not read its data, or list the prefix of a multi-model container."""
    url, role = request["PrimaryContainer"].get("ModelDataUrl"), request["ExecutionRoleArn"]
    denied = refusal_of(
        role_principal(role, "SageMaker"), _data_needs(request), by=f"sagemaker: model {request['ModelName']}"
    )
    if denied is not None:
        raise refused(
            f'Could not access model data at {url}. Please ensure that the role "{role}" exists and that its trust'
            ' relationship policy allows the action "sts:AssumeRole" for the service principal'
            ' "sagemaker.amazonaws.com". Also ensure that the role has "s3:GetObject" permissions and that the object'
            f" is located in {get_region()}. If your Model uses multiple models or uncompressed models, please ensure"
            f' that the role has "s3:ListBucket" permission. ({denied.sentence})',
            "CreateModel",
        )


def fleet_refusal(state: SageMakerState, deployment: Deployment, *, endpoint: str) -> str | None:
    """FailureReason of a fleet that a role of its models may not start; None where they may."""
    config, by = state.endpoint_configs.get(deployment.config_name).request, f"sagemaker: endpoint {endpoint}"
    for variant in config["ProductionVariants"]:
        model = state.models.get(variant["ModelName"]).request
        role, stream = (
            role_principal(model["ExecutionRoleArn"], "SageMaker"),
            f"{variant['VariantName']}/i-0123456789abcdef0",
        )
        log = log_needs(f"{aws_names.ENDPOINT_LOG_GROUPS}{endpoint}", stream)
        for needs, what in _of_start(model, deployment):
            denied = refusal_of(role, needs, by=by)
            if denied is not None:
                missing = f"The role '{role.arn}' does not have {denied.need.action.partition(':')[2]} permission for"
                return f"{what if what.endswith('.') else f'{missing} {what}.'} ({denied.sentence})"
        named = {"cloudwatch:namespace": aws_names.SAGEMAKER}
        quiet = [*_capture_needs(config), *log, Need(action="cloudwatch:PutMetricData", resource="*", context=named)]
        for need in quiet:  # left out in silence
            if denied := refusal_of(role, [need], by=by):
                logger.warning("%s: %s", endpoint, denied.sentence)
    return None


def _of_start(model: Request, deployment: Deployment) -> Iterator[tuple[tuple[Need, ...], str]]:
    """Needs in the order of a start, each with what a permission lacks for, or the sentence of its refusal."""
    container, vpc = model["PrimaryContainer"], model.get("VpcConfig") or {}
    interfaces = interface_needs(vpc.get("Subnets", ()), vpc.get("SecurityGroupIds", ()), service="sagemaker")
    yield interfaces, "the network of the model"
    yield pull_needs(container["Image"]), f"the image: '{container['Image']}'"
    sentence = (
        f'Failed to download model data for container "container_1" from URL: "{container.get("ModelDataUrl")}". Please'
        " ensure that there is an object located at the URL and that the role passed to CreateModel has permissions to"
        " download the object."
    )
    yield _data_needs(model), sentence
    names = deployment.guardrails.alarms if deployment.guardrails else ()
    alarms = (
        Need(action="cloudwatch:DescribeAlarms", resource=arn_of("cloudwatch", f"alarm:{name}")) for name in names
    )
    yield tuple(alarms), "the alarms of the deployment"


def _data_needs(model: Request) -> tuple[Need, ...]:
    container = model["PrimaryContainer"]
    url = urllib.parse.urlsplit(container.get("ModelDataUrl") or "")
    if url.netloc and container.get("Mode") == "MultiModel":
        prefix = {"s3:prefix": url.path.removeprefix("/")}
        return (Need(action="s3:ListBucket", resource=f"arn:aws:s3:::{url.netloc}", context=prefix),)
    return object_needs("GetObject", url.netloc, url.path.removeprefix("/")) if url.netloc else ()


def _capture_needs(config: Request) -> tuple[Need, ...]:
    """Writing captured requests; SageMaker makes up the name of a file."""
    capture = config.get("DataCaptureConfig") or {}
    if not capture.get("EnableCapture"):
        return ()
    url = urllib.parse.urlsplit(capture["DestinationS3Uri"].rstrip("/"))
    return object_needs("PutObject", url.netloc, f"{url.path.removeprefix('/')}/0.jsonl")
