"""Inference components: models that an endpoint's variant runs in copies, each scaled by itself.

Sources: API reference (CreateInferenceComponent, UpdateInferenceComponent, UpdateInferenceComponentRuntimeConfig,
DescribeInferenceComponent) and developer guide, "Scale an endpoint to zero instances". Sentences that no page has name
where they were seen.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.component_record import ComponentRecord
from tritonstack_local.emulator.sagemaker.deployment import EndpointRecord
from tritonstack_local.emulator.sagemaker.fleets import Instances, component_refusal
from tritonstack_local.emulator.sagemaker.placement import Demand, Instance, Limits, Needs, Placement, room_of
from tritonstack_local.emulator.sagemaker.records import COMPONENT, refused
from tritonstack_local.emulator.sagemaker.state import SageMakerState, listing, settled, store

logger = logging.getLogger("tritonstack.emulator")
Request = dict[str, Any]

NO_ROOM = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of the inference "
    "component."
)
"""FailureReason of a component that no instance has room for (aws/sagemaker-python-sdk, issue 5558)."""
NO_CREATION_AT_ZERO = "Inference components copy count an integer larger than 0"
"""CreateInferenceComponent's refusal of CopyCount 0 (stdapi.ai, issue 43, seen in August 2026)."""
NOT_FOR_COMPONENTS = (
    "Inference Components are not supported in this Endpoint. Please make sure this endpoint can deploy inference "
    "components."
)
"""hashicorp/terraform-provider-aws, issue 40644."""


class Components:
    """The operations on inference components, and the placement of their copies."""

    def __init__(self, state: SageMakerState, instances: Instances) -> None:
        """``instances``: shortages of instance types."""
        self._state = state
        self._instances = instances
        self._placements: dict[tuple[str, str], Placement] = {}  # endpoint's ARN and variant → its instances

    def create_inference_component(self, request: Request) -> dict[str, Any]:
        """CreateInferenceComponent: Creating until the runtime reports its first copy."""
        operation = "CreateInferenceComponent"
        specification, copies = _specification(request, operation), _copies(request, operation)
        if copies < 1:
            raise refused(NO_CREATION_AT_ZERO, operation)
        with self._state.changed:
            endpoint = self._state.endpoints.get(request["EndpointName"])
            if endpoint.status != "InService":
                raise refused(f'Endpoint "{endpoint.arn}" is not in service, it is {endpoint.status}.', operation)
            variant = self._variant(endpoint, request.get("VariantName"))
            self._state.models.get(specification["ModelName"])
            record = ComponentRecord(
                name=request["InferenceComponentName"],
                arn=COMPONENT.arn(request["InferenceComponentName"]),
                request=request,
                endpoint=endpoint.name,
                variant=variant["VariantName"],
                specification=specification,
                desired=copies,
            )
            self._state.components.add(record)
            store(self._state, record.arn, request.get("Tags", []))
            self._start(endpoint, record)
        return {"InferenceComponentArn": record.arn}

    def update_inference_component(self, request: Request) -> dict[str, Any]:
        """UpdateInferenceComponent: what serves goes on until the new copies respond."""
        operation = "UpdateInferenceComponent"
        if not request.keys() & {"Specification", "RuntimeConfig"}:
            # hashicorp/terraform-provider-aws, pull request 48894, has it of a name alone and of DeploymentConfig alone
            raise refused("One of Specification and RuntimeConfig is required.", operation)
        with self._state.changed:
            record = self._changeable(request["InferenceComponentName"])
            specification = _specification(request, operation) if "Specification" in request else None
            if specification is not None:
                self._state.models.get(specification["ModelName"])
            copies = _copies(request, operation) if "RuntimeConfig" in request else record.desired
            record.begin("UPDATE", copies=copies, specification=specification)
            record.deployment_config = request.get("DeploymentConfig", record.deployment_config)
            self._start(self._state.endpoints.get(record.endpoint), record)
        return {"InferenceComponentArn": record.arn}

    def update_inference_component_runtime_config(self, request: Request) -> dict[str, Any]:
        """UpdateInferenceComponentRuntimeConfig: other copies, which may be 0; what auto scaling calls."""
        with self._state.changed:
            record = self._changeable(request["InferenceComponentName"])
            record.begin("UPDATE_RC", copies=request["DesiredRuntimeConfig"]["CopyCount"])
            self._start(self._state.endpoints.get(record.endpoint), record)
        return {"InferenceComponentArn": record.arn}

    def describe_inference_component(self, request: Request) -> dict[str, Any]:
        record = self._state.components.get(request["InferenceComponentName"])
        endpoint = self._state.endpoints.get(record.endpoint)
        model = self._state.models.find(record.specification["ModelName"])
        image = "" if model is None else model.request["PrimaryContainer"]["Image"]  # a model may be deleted before
        return record.describe(endpoint_arn=endpoint.arn, image=image)

    def list_inference_components(self, request: Request) -> dict[str, Any]:
        """ListInferenceComponents, the newest first."""
        wanted = (("EndpointNameEquals", "endpoint"), ("VariantNameEquals", "variant"))
        found = [
            record
            for record in self._state.components
            if all(request.get(member, getattr(record, name)) == getattr(record, name) for member, name in wanted)
        ]
        page = listing(COMPONENT, found, request)
        for summary in page["InferenceComponents"]:
            record = self._state.components.get(summary["InferenceComponentName"])
            summary |= {
                "EndpointName": record.endpoint,
                "EndpointArn": self._state.endpoints.get(record.endpoint).arn,
                "VariantName": record.variant,
                "InferenceComponentStatus": record.status,
                "LastModifiedTime": record.modified,
            }
        return page

    def delete_inference_component(self, request: Request) -> None:
        """DeleteInferenceComponent: at once; refused while a change is in progress."""
        with self._state.changed:
            record = self._changeable(request["InferenceComponentName"], failed=True)
            self._state.components.remove(record.name)
            self._state.tags.pop(record.arn, None)
            self._place(self._state.endpoints.get(record.endpoint))
            self._state.changed.notify_all()

    def look(self) -> None:
        """Place copies that had no room, and end idle instances; called after each look at the alarms."""
        with self._state.changed:
            for endpoint in self._state.endpoints.everywhere():
                for variant, placement in self._placements_of(endpoint).items():
                    ended = placement.release(now=clock.now())
                    if ended:
                        logger.info("%s: %d idle instances of %s end", endpoint.name, ended, variant)
                self._place(endpoint)

    def report(self, *, component: str, generation: int, outcome: str, reason: str) -> bool:
        """Apply a report of the runtime on a component's change; False where none waits for it.

        ``in_service``: its container responds, or is gone where no copy is wanted. ``failed``: it cannot be started.
        """
        with self._state.changed:
            waiting = [
                record
                for record in self._state.components.everywhere()
                if record.name.lower() == component.lower() and record.generation == generation and not record.settled
            ]
            for record in waiting:
                if outcome == "failed":
                    record.fail(reason)
                else:
                    self._finish(record)
            self._state.changed.notify_all()
        return bool(waiting)

    def wait(
        self, arn: str, *, seconds: float, cancelled: Callable[[], bool] = lambda: False
    ) -> ComponentRecord | None:
        """Wait until no change of the component is in progress, or ``cancelled``; None where it is gone.

        A change without a report for ``seconds`` fails.
        """
        return settled(self._state, self._state.components, arn, seconds=seconds, cancelled=cancelled)

    def documents(self) -> list[dict[str, Any]]:
        """All components as the runtime reads them: what serves, and what a change in progress moves to."""
        with self._state.changed:
            return [
                {
                    "name": record.name,
                    "endpoint": record.endpoint,
                    "variant": record.variant,
                    "generation": record.generation,
                    "serving": None if record.change == "CREATE" else record.specification,
                    "pending": (record.pending or record.specification) if record.change else None,
                    "copies": record.wanted,
                }
                for record in self._state.components.everywhere()
            ]

    def _changeable(self, name: str, *, failed: bool = False) -> ComponentRecord:
        """The component, where no change of it is in progress. Raises RefusedError."""
        record = self._state.components.get(name)
        if not record.settled or (record.status == "Failed" and not failed):
            state = "FAILED" if record.change is None else f"{record.change}_IN_PROGRESS"
            raise RefusedError(
                "ValidationException",
                f'Cannot update inference component "{record.arn}" while it is in state {state}.',
                source="the sentence with UPDATE_RC_IN_PROGRESS, from tests of a public CDK construct against AWS",
            )
        return record

    def _variant(self, endpoint: EndpointRecord, name: str | None) -> dict[str, Any]:
        """The variant that a component goes to: one without a model of its own."""
        config = self._state.endpoint_configs.get(endpoint.config_name)
        variants: list[dict[str, Any]] = config.request["ProductionVariants"]
        found = next((each for each in variants if each["VariantName"] == name), None)
        if found is None:
            names = ", ".join(each["VariantName"] for each in variants)
            raise refused(
                f"Endpoint {endpoint.name} has no variant {name}; it has {names}.", "CreateInferenceComponent"
            )
        if "ModelName" in found:
            raise refused(NOT_FOR_COMPONENTS, "CreateInferenceComponent")
        return found

    def _start(self, endpoint: EndpointRecord, record: ComponentRecord) -> None:
        """Place the copies of a change, and end it at once where that is already known."""
        lacking = self._place(endpoint)
        model = self._state.models.get((record.pending or record.specification)["ModelName"]).request
        denied = component_refusal(model, component=record.name) if record.wanted else None
        if denied is not None:
            record.fail(denied)
        elif record.wanted and self._without_room(record, lacking):
            record.fail(NO_ROOM)
        elif not self._state.fleets:
            logger.warning("%s: InService at once, NO CONTAINER WAS STARTED (TRITONSTACK_FLEETS=none)", record.name)
            self._finish(record)
        if record.failure_reason is not None:
            self._place(endpoint)  # again without what could not be had
        self._state.changed.notify_all()

    def _finish(self, record: ComponentRecord) -> None:
        """The change is done: the old copies end, and as many of the new ones as there is room for are up."""
        record.succeed(copies=0)
        [endpoint] = [each for each in self._state.endpoints.everywhere() if _is_of(record, each)]
        lacking = self._place(endpoint)
        record.current = record.desired - lacking.get(_key(record), 0)

    def _without_room(self, record: ComponentRecord, lacking: dict[str, int]) -> bool:
        """Whether a change cannot go on for lack of room.

        A first creation, or a change of the number, goes on with the copies that have a place. New copies beside the
        old ones must all have one; at AWS such an update waits until its MaximumExecutionTimeoutInSeconds.
        """
        if record.pending is not None:
            return bool(lacking.get(_key(record, pending=True)))
        return lacking.get(_key(record)) == record.wanted

    def _place(self, endpoint: EndpointRecord) -> dict[str, int]:
        """Place the copies of an endpoint's components. Returns component → copies that have no place."""
        lacking: dict[str, int] = {}
        placements = self._placements_of(endpoint)
        for variant, placement in placements.items():
            records = [each for each in self._components_of(endpoint) if each.variant == variant]
            serving = [each for each in records if each.status != "Failed"]
            demands = [demand for each in serving for demand in _demands(each)]
            lacking |= placement.place(demands, now=clock.now())
            for record in serving:
                if record.settled and record.current:  # copies that had no room before
                    record.current = placement.running(_key(record))
        counts = {variant: len(placement.instances) for variant, placement in placements.items()}
        endpoint.variants = tuple(
            {**each, "CurrentInstanceCount": count, "DesiredInstanceCount": count}
            if (count := counts.get(each["VariantName"])) is not None
            else each
            for each in endpoint.variants
        )
        return lacking

    def _placements_of(self, endpoint: EndpointRecord) -> dict[str, Placement]:
        """Variant → its instances, by the limits of the endpoint's config of now.

        A variant's instances count from its first component on: "at least one component" is what lets an endpoint come
        to no instance (developer guide).
        """
        configs = (each for each in self._state.endpoint_configs.everywhere() if each.place == endpoint.place)
        config = next((each for each in configs if each.name == endpoint.config_name), None)
        found = {}
        for variant in [] if config is None else config.request["ProductionVariants"]:
            name, key = variant["VariantName"], (endpoint.arn, variant["VariantName"])
            if "ModelName" in variant or (key not in self._placements and not self._components_of(endpoint)):
                continue
            kind = variant["InstanceType"]
            placement = self._placements.get(key)
            if placement is None:
                started = [Instance(idle_since=clock.now()) for _ in range(variant.get("InitialInstanceCount", 1))]
                placement = self._placements[key] = Placement(
                    room=room_of(kind),
                    limits=Limits.of(variant),
                    instances=started,
                    may_start=functools.partial(self._may_start, kind),
                )
            placement.room, placement.limits = room_of(kind), Limits.of(variant)
            found[name] = placement
        return found

    def _may_start(self, instance_type: str) -> bool:
        return not self._instances.short_of(instance_type, "capacity")

    def _components_of(self, endpoint: EndpointRecord) -> list[ComponentRecord]:
        """In the order of their creation."""
        found = [each for each in self._state.components.everywhere() if _is_of(each, endpoint)]
        return sorted(found, key=lambda each: each.created)


def _is_of(record: ComponentRecord, endpoint: EndpointRecord) -> bool:
    return (record.place, record.endpoint) == (endpoint.place, endpoint.name)


def _key(record: ComponentRecord, *, pending: bool = False) -> str:
    """What the copies of a component's specification are placed by."""
    return f"{record.name}#{record.version + pending}"


def _demands(record: ComponentRecord) -> list[Demand]:
    """The copies that serve and, while an update is in progress, those that it starts beside them.

    By developer guide, "Update inference components" (RollingUpdatePolicy): a batch at a time, else all at once.
    """
    if record.pending is None:
        return [_demand(record, record.specification, copies=record.wanted)]
    batch = record.wanted
    if record.deployment_config is not None:
        batch = _batch(record.deployment_config["RollingUpdatePolicy"]["MaximumBatchSize"], copies=record.wanted)
    return [
        _demand(record, record.specification, copies=record.desired),
        _demand(record, record.pending, copies=batch, pending=True),
    ]


def _demand(record: ComponentRecord, specification: dict[str, Any], *, copies: int, pending: bool = False) -> Demand:
    return Demand(
        component=_key(record, pending=pending),
        copies=copies,
        needs=Needs.of(specification["ComputeResourceRequirements"]),
        strategy=(specification.get("SchedulingConfig") or {}).get("PlacementStrategy"),
    )


def _batch(size: dict[str, Any], *, copies: int) -> int:
    """Copies of a batch: at least one, at most all of them."""
    value: int = size["Value"]
    return min(copies, max(1, value if size["Type"] == "COPY_COUNT" else copies * value // 100))


def _specification(request: Request, operation: str) -> dict[str, Any]:
    """The specification of a request; what else could stand in its place is in ``unsupported.json``."""
    one: dict[str, Any] | None = request.get("Specification")
    if one is None or "ModelName" not in one:
        raise refused("Specification with ModelName is required.", operation)
    if "ComputeResourceRequirements" not in one:
        raise refused("ComputeResourceRequirements is required in Specification.", operation)
    return one


def _copies(request: Request, operation: str) -> int:
    if "RuntimeConfig" not in request:
        raise refused("RuntimeConfig is required.", operation)
    return int(request["RuntimeConfig"]["CopyCount"])
