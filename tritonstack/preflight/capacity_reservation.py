"""Capacity reservations of endpoints: the plan is active, of the endpoint's type, and holds instances enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tritonstack.arns import Arn
from tritonstack.config import EndpointSettings
from tritonstack.preflight.quotas import highest_count
from tritonstack.preflight.subject import CheckedItem, PreflightResult, Subject

TRAINING_PLAN = "training-plan"


def check_capacity_reservation(subject: Subject) -> Iterator[PreflightResult]:
    """The plans that endpoints name in ``capacity_reservation``."""
    for endpoint in subject.environment.endpoints:
        if endpoint.capacity_reservation is None:
            continue
        item = CheckedItem(
            check="capacity-reservation",
            subject=f"{endpoint.name}: {endpoint.capacity_reservation}",
            needed=f"an active plan of {_most(endpoint)} or more of {endpoint.instance_type}",
        )
        yield from item.look(_reservation, subject, endpoint, Arn.parse(endpoint.capacity_reservation))


def _most(endpoint: EndpointSettings) -> int:
    """Instances of the endpoint's variants at their highest, without an update's second fleet."""
    return sum(highest_count(each) for each in endpoint.variant_settings)


def _reservation(item: CheckedItem, subject: Subject, endpoint: EndpointSettings, arn: Arn) -> PreflightResult:
    kind, _, name = arn.resource.partition("/")
    if subject.local:
        return item.unknown("the local AWS has no training plans", advice="Run it against AWS.")
    if arn.account != subject.environment.account or kind != TRAINING_PLAN:
        return item.unknown(
            "SageMaker's API describes training plans of this account alone",
            advice="Ask who owns the reservation for its instance type, its instances and its end.",
        )
    plan = subject.calls.ask("sagemaker", "describe_training_plan", absent=("ResourceNotFound",), TrainingPlanName=name)
    if plan is None:
        return item.fails("no such training plan", advice="Name one of `aws sagemaker list-training-plans`.")
    problem = _problem(plan, endpoint)
    return _size(item, plan, endpoint) if problem is None else item.fails(problem[0], advice=problem[1])


def _problem(plan: Mapping[str, Any], endpoint: EndpointSettings) -> tuple[str, str] | None:
    """Why no instance of the endpoint starts in a plan, and what to do; None where they do."""
    if plan["Status"] != "Active":
        advice = "Deploy within the plan's window: an endpoint works in it alone. Or remove capacity_reservation."
        return f"the plan is {plan['Status']}", advice
    types = {each["InstanceType"] for each in plan.get("ReservedCapacitySummaries", [])}
    if types and endpoint.instance_type not in types:
        return (
            f"the plan is of {', '.join(sorted(types))}",
            "Set the endpoint's instance_type to the plan's, or name another plan.",
        )
    return None


def _size(item: CheckedItem, plan: Mapping[str, Any], endpoint: EndpointSettings) -> PreflightResult:
    """Compare the instances of an active plan with the endpoint's."""
    held, until = plan.get("TotalInstanceCount"), f" until {plan['EndTime']:%-d %b %Y}" if "EndTime" in plan else ""
    if held is None:
        return item.passes(f"active{until}; after that the endpoint stops")
    if held < _most(endpoint):
        advice = "Lower scaling.maximum (or the instance count): beyond the plan SageMaker starts none."
        return item.fails(f"it holds {held}{until}", advice=advice)
    if held < 2 * _most(endpoint):
        return item.warns(
            f"it holds {held}{until}: an update that starts a whole second fleet may not find its instances there",
            advice="Set rollout: {kind: rolling} on the endpoint, or reserve twice as many. After the plan's end the "
            "endpoint stops.",
        )
    return item.passes(f"active, holds {held}{until}; after that the endpoint stops")
