"""Operations on endpoints, the runtime's reports on them, and deployments watched until they end."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal

from tritonstack_local import REGION
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import find
from tritonstack_local.emulator.ministack_adapter.core import request_scope
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.deployment import Deployment, EndpointRecord, guardrails
from tritonstack_local.emulator.sagemaker.fleets import (
    NO_CAPACITY,
    Instances,
    check_same_variants,
    check_scaled,
    check_weights,
    fleet_refusal,
    scale,
    shown_metrics,
)
from tritonstack_local.emulator.sagemaker.pools import summaries
from tritonstack_local.emulator.sagemaker.records import ENDPOINT, refused
from tritonstack_local.emulator.sagemaker.state import SageMakerState, settled, store

logger = logging.getLogger("tritonstack.emulator")


def advance(record: EndpointRecord, deployment: Deployment, *, broken: str | None) -> bool:
    """Take the deployment to where it should be by now. Whether anything changed.

    A fleet that is still starting has its own timeouts here; SageMaker's limit covers the whole deployment.
    """
    if deployment.over_time:
        broken = broken or "The deployment took longer than its MaximumExecutionTimeoutInSeconds."
    if broken is not None and deployment.step is not None:
        # Every request goes to the old fleet again, and the new one ends.
        logger.warning("%s: the deployment is rolled back: %s", record.name, broken)
        record.fail(f"{broken} The endpoint was rolled back to {record.config_name}.")
    elif deployment.baking and deployment.baked:
        if deployment.at_last_step:
            record.succeed()
        else:
            deployment.shift()
    else:
        return False
    return True


def broken_alarm(names: Sequence[str]) -> str | None:
    """A sentence about the alarms that are in ALARM or missing; None where all is well."""
    states = {name: (find(name) or {}).get("StateValue") for name in names}
    missing = [name for name in names if states[name] is None]
    if missing:
        return f"There is no alarm {', '.join(missing)}."
    firing = [name for name in names if states[name] == "ALARM"]
    return f"Alarm {', '.join(firing)} went into state ALARM." if firing else None


Request = dict[str, Any]
UpdateOutcome = Literal["in_service", "shifted", "failed"]
Reported = Literal["ended", "in_progress"]
"""What a deployment is after a report: over, or shifting traffic."""
STILL_ASSOCIATED = (
    "Cannot delete endpoint with inference component associated. Please delete inference component and try it again."
)
"""gruntwork-io/cloud-nuke, issue 1142; another report has DeleteEndpoint pass and leave the components."""


class Endpoints:
    """The operations on endpoints."""

    def __init__(self, state: SageMakerState) -> None:
        self._state = state
        self.instances = Instances(state)
        self.silently_back: Callable[[str], bool] = lambda _name: False
        """Whether an endpoint's update is to be rolled back without a FailureReason (``gateway.Faults``)."""

    def create_endpoint(self, request: Request) -> dict[str, Any]:
        """CreateEndpoint: the endpoint is Creating until its fleet is reported."""
        name = request["EndpointName"]
        with self._state.changed:
            config = self._state.endpoint_configs.get(request["EndpointConfigName"])
            self.instances.check_limit(config.name, "CreateEndpoint")
            record = EndpointRecord(name=name, arn=ENDPOINT.arn(name), request=request, config_name=config.name)
            deployment = self._new_deployment(record, request, status="Creating")
            self._state.endpoints.add(record)
            store(self._state, record.arn, request.get("Tags", []))
            self._deploy(record, deployment, status="Creating")
        return {"EndpointArn": record.arn}

    def update_endpoint(self, request: Request) -> dict[str, Any]:
        """UpdateEndpoint: only of an endpoint InService; the old fleet serves until the new one is reported.

        "DeleteEndpoint is the only operation that can be performed on a failed endpoint" (DescribeEndpoint). The old
        config must be there, too: where it was deleted SageMaker's refusal names it (hashicorp/terraform-provider-aws,
        issue 40048).
        """
        with self._state.changed:
            record = self._state.endpoints.get(request["EndpointName"])
            self._state.endpoint_configs.get(request["EndpointConfigName"])
            if record.status == "Failed":
                raise refused(f'Cannot update failed endpoint "{record.arn}".', "UpdateEndpoint")
            if not record.settled:
                raise refused(f'Cannot update in-progress endpoint "{record.arn}".', "UpdateEndpoint")
            self._state.endpoint_configs.get(record.config_name)
            check_scaled(self._state, record, request["EndpointConfigName"])
            self.instances.check_limit(request["EndpointConfigName"], "UpdateEndpoint")
            self._deploy(record, self._new_deployment(record, request, status="Updating"), status="Updating")
        return {"EndpointArn": record.arn}

    def bake(self) -> None:
        """Take deployments with guardrails to where they should be by now; called after each look at the alarms."""
        for record in self._state.endpoints.everywhere():
            deployment = record.pending
            if deployment is None or deployment.guardrails is None:
                continue
            with request_scope(*record.place):
                try:
                    broken = broken_alarm(deployment.guardrails.alarms)
                except Exception as error:  # it would bake for ever, and the endpoints after it with it
                    logger.exception("%s: its alarms cannot be looked at", record.name)
                    broken = f"The local AWS failed to look at its alarms: {error!r}."
            with self._state.changed:
                if record.pending is deployment and advance(record, deployment, broken=broken):
                    self._state.changed.notify_all()

    def _new_deployment(self, record: EndpointRecord, request: Request, *, status: str) -> Deployment:
        """The deployment of a request. Raises RefusedError: SageMaker would refuse it; nothing is changed yet."""
        config = self._state.endpoint_configs.get(request["EndpointConfigName"])
        variants = [self._variant(variant, record, request) for variant in config.request["ProductionVariants"]]
        check_weights([variant["DesiredWeight"] for variant in variants], "UpdateEndpoint")
        wanted = request.get("DeploymentConfig")
        read = guardrails(wanted, counts=[variant["DesiredInstanceCount"] for variant in variants])
        # A first fleet receives every request, and where the config stays there is no second one: nothing is shifted.
        shifts = status == "Updating" and config.name != record.config_name
        if shifts and read is not None:
            check_same_variants(read, before=record.variants, after=variants)
        return Deployment(
            config_name=config.name,
            variants=tuple(variants),
            deployment_config=wanted,
            guardrails=read if shifts else None,
        )

    def _deploy(self, record: EndpointRecord, deployment: Deployment, *, status: str) -> None:
        record.begin(deployment, status=status)
        alone, landings = self._without_container(record), self.instances.landings(deployment.config_name)
        deployment.land(landings or {})
        denied = fleet_refusal(self._state, deployment, endpoint=record.name)
        if denied is not None:
            logger.warning("%s: %s", record.name, denied)
            record.fail(denied)
        elif landings is None:
            logger.warning("%s: no capacity, as it was asked for", record.name)
            record.fail(NO_CAPACITY)
        elif alone:
            logger.warning("%s: InService at once, NO CONTAINER WAS STARTED (%s)", record.name, alone)
            record.succeed()
        self._state.changed.notify_all()

    def _without_container(self, record: EndpointRecord) -> str:
        """Why no container of this endpoint is ever started; empty where the runtime starts one."""
        if not self._state.fleets:
            return "TRITONSTACK_FLEETS=none"
        config = self._state.endpoint_configs.get(
            record.config_name if record.pending is None else record.pending.config_name
        )
        if not any("ModelName" in each for each in config.request["ProductionVariants"]):
            return "its variants have no model: its inference components start containers"
        region = record.arn.split(":")[3]
        return "" if region == REGION else f"it is in {region}, and the local runtime serves {REGION} alone"

    def _variant(self, variant: dict[str, Any], record: EndpointRecord, request: Request) -> dict[str, Any]:
        """A variant as DescribeEndpoint shows it; an update may retain the count and weight of the same variant."""
        count, weight = variant.get("InitialInstanceCount", 1), variant.get("InitialVariantWeight", 1.0)
        images = []
        if "ModelName" in variant:  # else its components have images
            image = self._state.models.get(variant["ModelName"]).request["PrimaryContainer"]["Image"]
            images = [{"SpecifiedImage": image, "ResolvedImage": image}]
        before = next((v for v in record.variants if v["VariantName"] == variant["VariantName"]), None)
        if before and request.get("RetainAllVariantProperties"):
            excluded = {x["VariantPropertyType"] for x in request.get("ExcludeRetainedVariantProperties", [])}
            count = count if "DesiredInstanceCount" in excluded else before["DesiredInstanceCount"]
            weight = weight if "DesiredWeight" in excluded else before["DesiredWeight"]
        shown = {
            "VariantName": variant["VariantName"],
            "CurrentInstanceCount": count,
            "DesiredInstanceCount": count,
            "CurrentWeight": weight,
            "DesiredWeight": weight,
            **({"DeployedImages": images} if images else {}),
        }
        if "CapacityReservationConfig" in variant:
            shown["CapacityReservationConfig"] = {
                **variant["CapacityReservationConfig"],
                "UsedByCurrentEndpoint": count,
            }
        shown |= {each: variant[each] for each in ("RoutingConfig", "ManagedInstanceScaling") if each in variant}
        return shown | summaries(variant, {})

    def describe_endpoint(self, request: Request) -> dict[str, Any]:
        """DescribeEndpoint, with ``PendingDeploymentSummary`` while a deployment is in progress."""
        record = self._state.endpoints.get(request["EndpointName"])
        config = self._state.endpoint_configs.find(record.config_name)
        shown = {} if config is None else {"MetricsConfig": shown_metrics(config.request)}
        return {**record.describe(), **shown}

    def update_endpoint_weights_and_capacities(self, request: Request) -> dict[str, Any]:
        """UpdateEndpointWeightsAndCapacities: called by Application Auto Scaling and for manual scaling.

        Where AWS has no instances the endpoint keeps its instances, with a FailureReason (UNVERIFIED:
        the guide describes no endpoint whose scale-out lacks capacity).
        """
        operation = "UpdateEndpointWeightsAndCapacities"
        with self._state.changed:
            record = self._state.endpoints.get(request["EndpointName"])
            if record.status != "InService":
                raise refused(f'Cannot update in-progress endpoint "{record.arn}".', operation)
            wanted = request["DesiredWeightsAndCapacities"]
            added = self._added(record, wanted)
            self.instances.check_limit(record.config_name, operation, added=added)
            landings = self.instances.landings(record.config_name, added=added)
            if landings is not None:
                scale(record, wanted, landings=landings)
            record.failure_reason = NO_CAPACITY if landings is None else None
            self._state.changed.notify_all()
        return {"EndpointArn": record.arn}

    def _added(self, record: EndpointRecord, wanted: list[Request]) -> dict[str, int]:
        """Variant → how many instances it is to have more than it has."""
        now = {variant["VariantName"]: variant["DesiredInstanceCount"] for variant in record.variants}
        counts = [(each["VariantName"], each.get("DesiredInstanceCount", 0)) for each in wanted]
        return {name: max(0, count - now.get(name, count)) for name, count in counts}

    def delete_endpoint(self, request: Request) -> None:
        """DeleteEndpoint: at once; refused while a deployment is in progress, as SageMaker refuses it."""
        with self._state.changed:
            record = self._state.endpoints.get(request["EndpointName"])
            if not record.settled:
                raise refused(f'Cannot update in-progress endpoint "{record.arn}".', "DeleteEndpoint")
            if any(each.endpoint.lower() == record.name.lower() for each in self._state.components):
                raise RefusedError(
                    "ValidationException", STILL_ASSOCIATED, source="gruntwork-io/cloud-nuke, issue 1142"
                )
            self._state.endpoints.remove(record.name)
            self._state.forget_scaled(record.name)
            self._state.tags.pop(record.arn, None)

    def report(
        self, *, endpoint: str, config: str, outcome: UpdateOutcome, reason: str, instances: int = 0
    ) -> Reported | None:
        """Apply a report of the runtime on a new fleet; None where no deployment awaits it.

        The report names no account and region: endpoints of that name with that pending config are meant, wherever.
        ``in_service``: the fleet is up. ``shifted``: it receives requests with ``instances`` instances. ``failed``: it
        cannot be started, for a ``reason``.
        """
        with self._state.changed:
            meant = [record for record in self._state.endpoints.everywhere() if _deploys(record, endpoint, config)]
            outcomes = [
                None
                if self._goes_back(record, outcome)
                else _apply_report(record, outcome, reason=reason, instances=instances)
                for record in meant
            ]
            self._state.changed.notify_all()
        return next((one for one in outcomes if one is not None), None)

    def _goes_back(self, record: EndpointRecord, outcome: UpdateOutcome) -> bool:
        """Whether the update rolls back silently once the new fleet is up."""
        if outcome != "in_service" or record.status != "Updating" or not self.silently_back(record.name):
            return False
        logger.warning("%s: rolled back to %s in silence, as it was asked for", record.name, record.config_name)
        record.fail(None)
        return True

    def mark(self) -> str:
        """A digest of the descriptions of all endpoints, tags included; it changes with any of them.

        The runtime requests it a few times a second, which costs either side a tenth of listing and describing.
        """
        with self._state.changed:
            described = [(e.describe(), self._state.tags.get(e.arn)) for e in self._state.endpoints.everywhere()]
            components = [(each.name, each.generation, each.status) for each in self._state.components.everywhere()]
        return hashlib.sha256(repr((described, components)).encode()).hexdigest()[:16]

    def wait(self, arn: str, *, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> EndpointRecord | None:
        """Wait until no deployment of the endpoint is in progress, or ``cancelled``; None where it is gone.

        A deployment without a report for ``seconds`` fails, but for the time in which its alarms are watched.
        """
        return settled(
            self._state, self._state.endpoints, arn, seconds=seconds, cancelled=cancelled, goes_on=_watches_alarms
        )


def _watches_alarms(record: EndpointRecord) -> bool:
    return record.pending is not None and record.pending.baking


def _deploys(record: EndpointRecord, endpoint: str, config: str) -> bool:
    pending = record.pending
    return (
        record.name.lower() == endpoint.lower()
        and pending is not None
        and pending.config_name.lower() == config.lower()
    )


def _apply_report(record: EndpointRecord, outcome: UpdateOutcome, *, reason: str, instances: int) -> Reported | None:
    """Apply the runtime's report on the new fleet of an endpoint."""
    deployment = record.pending
    if deployment is None:
        return None
    if outcome == "failed":
        record.fail(reason)
    elif deployment.guardrails is None:
        if outcome == "shifted":
            return None
        record.succeed()
    elif outcome == "in_service":
        if deployment.step is None:  # else the runtime was started again, and the new fleet with it
            deployment.shift()
    elif deployment.step is None or deployment.step.instances != instances:
        return None
    elif not deployment.baking:
        deployment.bake()
    return "ended" if record.settled else "in_progress"
