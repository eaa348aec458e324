"""Instances of an endpoint's variants: starting, scaling, shortage, and what their execution roles need."""

from __future__ import annotations

import logging
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tritonstack import aws_names
from tritonstack.naming import component_log_group, endpoint_log_group
from tritonstack_local import NO_MODEL_DATA
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.iam.authorization import Principal, role_principal
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import (
    arn_of,
    interface_needs,
    log_needs,
    object_needs,
    pull_needs,
    refusal_of,
)
from tritonstack_local.emulator.ministack_adapter.core import get_region
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.deployment import EXCLUSIONS, Deployment, EndpointRecord, Guardrails
from tritonstack_local.emulator.sagemaker.pools import landing, models_of, scaled, types_of
from tritonstack_local.emulator.sagemaker.records import refused
from tritonstack_local.emulator.sagemaker.state import SageMakerState

# The local AWS has instances without limit; a fault takes them away (``gateway.Faults``).

NO_CAPACITY = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error. Please retry using a "
    "different ML instance type or after some time. Consider configuring InstancePools in your EndpointConfig with "
    "multiple instance types for priority-based fallback to improve capacity availability."
)
"""The FailureReason of an endpoint (aws/deep-learning-containers, pull request 6673, from a failed deployment)."""
LIMIT = "ResourceLimitExceeded"
Variant = Mapping[str, Any]


class Instances:
    """Limits and shortages of instances, by type."""

    def __init__(self, state: SageMakerState) -> None:
        """Counts the instances of the endpoints of ``state``."""
        self._state = state
        self.short_of: Callable[[str, str], bool] = lambda _instance_type, _what: False
        """Whether new instances of a type are refused for lack of ``limit`` or ``capacity`` (``gateway.Faults``)."""

    def check_limit(self, config_name: str, operation: str, *, added: Mapping[str, int] | None = None) -> None:
        """Refuse a request for instances beyond the account's quota.

        ``added``: variant → further instances; None: a whole fleet of the config. The sentence is SageMaker's
        (developer guide, "Check the status of a scaling activity by describing scaling activities").
        """
        for kind, count in self._requested(config_name, added):
            if self.short_of(kind, "limit"):
                used = self._used(kind)
                raise refused(
                    f"The account-level service limit '{kind} for endpoint usage' is {used} Instances, with current "
                    f"utilization of {used} Instances and a request delta of {count} Instances. Please use "
                    "AWS Service Quotas to request an increase for this quota. If AWS Service Quotas is not available, "
                    f"contact AWS support to request an increase for this quota. (Error Code: {LIMIT})",
                    operation,
                    code=LIMIT,
                )

    def landings(self, config_name: str, *, added: Mapping[str, int] | None = None) -> dict[str, str] | None:
        """Variant → the instance type that its instances land on, of each variant that starts any; ``added``: as above.

        None where AWS has no capacity for one of them, of none of its types.
        """
        found = {}
        for variant, _ in self._starting(config_name, added):
            kind = landing(variant, short=lambda each: self.short_of(each, "capacity"))
            if kind is None:
                return None
            found[variant["VariantName"]] = kind
        return found

    def _requested(self, config_name: str, added: Mapping[str, int] | None) -> Iterator[tuple[str, int]]:
        """Instance type and number of the instances that are to start; of instance pools each type that they may be of.

        That a quota of one pool's type refuses the request is UNVERIFIED: the guide's fallback is for capacity alone.
        """
        for variant, count in self._starting(config_name, added):
            yield from ((kind, count) for kind in types_of(variant))

    def _starting(self, config_name: str, added: Mapping[str, int] | None) -> Iterator[tuple[Variant, int]]:
        """Each variant that starts instances, with their number."""
        for variant in _variants(self._state, config_name):
            initial = variant.get("InitialInstanceCount", 1)
            if count := initial if added is None else added.get(variant["VariantName"], 0):
                yield variant, count

    def _used(self, kind: str) -> int:
        """Instances of a type that the account's endpoints have."""
        used = 0
        for record in self._state.endpoints:
            variants = _variants(self._state, record.config_name)
            names = {variant["VariantName"] for variant in variants if variant.get("InstanceType") == kind}
            used += sum(each["CurrentInstanceCount"] for each in record.variants if each["VariantName"] in names)
            pools = (pool for each in record.variants for pool in each.get("InstancePools", ()))
            used += sum(pool["CurrentInstanceCount"] for pool in pools if pool["InstanceType"] == kind)
        return used


METRICS_DEFAULTS = {"EnableDetailedObservability": True}
"""Default of a configuration made today (developer guide, "Getting started with detailed observability":
configurations created after June 17, 2026)."""


def shown_metrics(config: Mapping[str, Any]) -> dict[str, Any]:
    """MetricsConfig of a config's request, as DescribeEndpoint and DescribeEndpointConfig show it."""
    return {**METRICS_DEFAULTS, **config.get("MetricsConfig", {})}


def _variants(state: SageMakerState, config_name: str) -> Sequence[Variant]:
    """The variants of a config; none where it was deleted."""
    found = [config for config in state.endpoint_configs if config.name == config_name]
    return [variant for config in found for variant in config.request["ProductionVariants"]]


def check_scaled(state: SageMakerState, record: EndpointRecord, config_name: str) -> None:
    """Refuse an update that takes away a variant which is a scalable target, or gives it another instance type.

    A change of its model passes (developer guide, "Update endpoints that use auto scaling").
    """
    before = _instance_types(state, record.config_name)
    after = _instance_types(state, config_name)
    changed = sorted(
        name for name in state.scaled_variants(record.name) if name not in after or after[name] != before.get(name)
    )
    if changed:
        raise RefusedError(
            "ValidationException",
            f'The variant(s) "[{", ".join(changed)}]" must be deregistered as scalable targets with AWS Auto Scaling'
            " before they can be removed or have their instance type updated.",
            source="SageMaker developer guide, Update endpoints that use auto scaling",
        )


def check_same_variants(guardrails: Guardrails, *, before: Sequence[Variant], after: Sequence[Variant]) -> None:
    """Refuse traffic that shifts in steps between fleets with other variants.

    The guide states it for every blue/green deployment; that a whole shift passes is UNVERIFIED.
    """
    names = [{variant["VariantName"] for variant in variants} for variants in (before, after)]
    if len(guardrails.steps) > 1 and names[0] != names[1]:
        raise RefusedError(
            "ValidationException",
            "When doing a blue/green or rolling deployment, your new endpoint configuration must have the same variant"
            f" name as the old endpoint configuration: {sorted(names[1])} instead of {sorted(names[0])}.",
            source=EXCLUSIONS,
        )


def check_weights(weights: Sequence[float], operation: str) -> None:
    """Refuse weights without a sum: "the ratio of the VariantWeight to the sum of all" (ProductionVariant) is none."""
    if sum(weights) <= 0:
        sentence = "The sum of the weights of an endpoint's production variants must be greater than 0."
        raise refused(sentence, f"{operation} (derived)")


def scale(record: EndpointRecord, wanted: Sequence[dict[str, Any]], *, landings: Mapping[str, str]) -> None:
    """Give variants other weights, or one another number of instances, at once: none takes time to start here.

    ``landings``: variant → the instance type of what is added.

    "Variant weight of one or more variants […], or capacity of one variant" (API reference).
    """
    operation = "UpdateEndpointWeightsAndCapacities"
    variants = {variant["VariantName"]: dict(variant) for variant in record.variants}
    if sum("DesiredInstanceCount" in each for each in wanted) > 1:
        raise refused("The capacity of one variant can be updated in a request.", operation)
    for each in wanted:
        variant = variants.get(each["VariantName"])
        if variant is None:
            raise refused(
                f"Endpoint {record.name} has no variant {each['VariantName']}; it has {', '.join(variants)}.",
                operation,
            )
        if "DesiredInstanceCount" in each:
            count = variant["CurrentInstanceCount"] = variant["DesiredInstanceCount"] = each["DesiredInstanceCount"]
            if "InstancePools" in variant:
                added = landings.get(variant["VariantName"])
                variant["InstancePools"] = scaled(variant["InstancePools"], to=count, added=added)
        if "DesiredWeight" in each:
            variant["CurrentWeight"] = variant["DesiredWeight"] = each["DesiredWeight"]
    check_weights([variant["DesiredWeight"] for variant in variants.values()], operation)
    record.variants = tuple(variants.values())
    record.modified = clock.now()


def _instance_types(state: SageMakerState, config_name: str) -> dict[str, tuple[str, ...]]:
    """Variant → instance type, of a config; of instance pools their list (another list is UNVERIFIED)."""
    return {variant["VariantName"]: types_of(variant) for variant in _variants(state, config_name)}


# --- Permissions of execution roles: what SageMaker looks at when a model is created, and when a fleet starts ---
#
# Source of the actions: developer guide, "SageMaker AI roles", CreateModel API, and "Auto-Rollback Configuration and
# Monitoring" (alarms). Sources of the sentences: CreateModel in philschmid/llm-sagemaker-sample, issue 2; images in
# aws/sagemaker-python-sdk, issue 2002; model data in aws-samples/cvat-on-aws-china, issue 3. Those of networks and
# alarms are UNVERIFIED, and that an endpoint which may not write its log serves without.

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
    # Of instance pools each Model, although SageMaker may look at that of the landed type alone (UNVERIFIED); none of a
    # variant without a model, whose components start by themselves.
    for variant, name in ((each, name) for each in config["ProductionVariants"] for name in models_of(each)):
        model = state.models.get(name).request
        role, stream = (
            role_principal(model["ExecutionRoleArn"], "SageMaker"),
            f"{variant['VariantName']}/i-0123456789abcdef0",
        )
        log = log_needs(endpoint_log_group(endpoint), stream)
        alarms = deployment.guardrails.alarms if deployment.guardrails else ()
        if refusal := _start_refusal(role, model, alarms=alarms, by=by):
            return refusal
        _log_refusals(role, [*_capture_needs(config), *log, _metrics_need(aws_names.SAGEMAKER)], of=endpoint, by=by)
    return None


def component_refusal(model: Request, *, component: str) -> str | None:
    """FailureReason of an inference component that the role of its model may not start; None where it may."""
    role, by = role_principal(model["ExecutionRoleArn"], "SageMaker"), f"sagemaker: inference component {component}"
    log = log_needs(component_log_group(component), "i-0123456789abcdef0")
    if refusal := _start_refusal(role, model, alarms=(), by=by):
        return refusal
    _log_refusals(role, [*log, _metrics_need(aws_names.COMPONENT_INSTANCES)], of=component, by=by)
    return None


def _start_refusal(role: Principal, model: Request, *, alarms: Sequence[str], by: str) -> str | None:
    """The sentence of the first permission that a start lacks."""
    for needs, what in _of_start(model, alarms):
        denied = refusal_of(role, needs, by=by)
        if denied is not None:
            missing = f"The role '{role.arn}' does not have {denied.need.action.partition(':')[2]} permission for"
            return f"{what if what.endswith('.') else f'{missing} {what}.'} ({denied.sentence})"
    return None


def _metrics_need(namespace: str) -> Need:
    return Need(action="cloudwatch:PutMetricData", resource="*", context={"cloudwatch:namespace": namespace})


def _log_refusals(role: Principal, needs: Sequence[Need], *, of: str, by: str) -> None:
    """What a start goes on without, in silence towards the caller."""
    for need in needs:
        if denied := refusal_of(role, [need], by=by):
            logger.warning("%s: %s", of, denied.sentence)


def _of_start(model: Request, alarms: Sequence[str]) -> Iterator[tuple[tuple[Need, ...], str]]:
    """Needs in the order of a start, each with what a permission lacks for, or the sentence of its refusal."""
    container, vpc = model["PrimaryContainer"], model.get("VpcConfig") or {}
    interfaces = interface_needs(vpc.get("Subnets", ()), vpc.get("SecurityGroupIds", ()), service="sagemaker")
    yield interfaces, "the network of the model"
    yield pull_needs(container["Image"]), f"the image: '{container['Image']}'"
    yield _data_needs(model), NO_MODEL_DATA.format(container.get("ModelDataUrl"))
    watched = (
        Need(action="cloudwatch:DescribeAlarms", resource=arn_of("cloudwatch", f"alarm:{each}")) for each in alarms
    )
    yield tuple(watched), "the alarms of the deployment"


def _data_needs(model: Request) -> tuple[Need, ...]:
    container = model["PrimaryContainer"]
    url = urllib.parse.urlsplit(container.get("ModelDataUrl") or "")
    if url.netloc and container.get("Mode") == "MultiModel":
        # Which of the two SageMaker names is UNVERIFIED.
        named = dict.fromkeys((url.path.removeprefix("/"), url.path.strip("/")))
        bucket = f"arn:aws:s3:::{url.netloc}"
        return tuple(Need(action="s3:ListBucket", resource=bucket, context={"s3:prefix": each}) for each in named)
    return object_needs("GetObject", url.netloc, url.path.removeprefix("/")) if url.netloc else ()


def _capture_needs(config: Request) -> tuple[Need, ...]:
    """Writing captured requests; SageMaker makes up the name of a file."""
    capture = config.get("DataCaptureConfig") or {}
    if not capture.get("EnableCapture"):
        return ()
    url = urllib.parse.urlsplit(capture["DestinationS3Uri"].rstrip("/"))
    return object_needs("PutObject", url.netloc, f"{url.path.removeprefix('/')}/0.jsonl")
