"""The steps of a load test with SageMaker Inference Recommender, and what is left to do when one is cancelled.

Two callers:

* The state machine, with ``{"do": "register" | "start" | "look" | "gather" | "clean_up", "id": …, "job": …}``.
* EventBridge, when an execution of the state machine has ended otherwise than well (ABORTED, TIMED_OUT, FAILED): a
  cancelled execution runs no further state, so that nobody but this event stops its jobs and removes what it made.

What a test does stands in its plan, ``load-tests/<id>/plan.json`` in the environment's bucket, which ``tritonstack
bench --cloud`` wrote: the requests to SageMaker, and the results' document without its figures. Names of jobs and
model packages follow from the test's id, so that every step may be repeated.

The variables ``ARTIFACT_BUCKET``, ``JOB_ROLE`` (the role of the jobs) and ``NAMES`` (what the names of jobs, packages
and all that jobs make begin with) say where.

Standard library and boto3 only.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import steps
from .services import Clients, Place

if TYPE_CHECKING:
    from collections.abc import Mapping


def handler(event: dict[str, Any], context: Any) -> Any:
    """Entry point of both callers. A failed step is the state machine's to catch, a failed event Lambda's to repeat."""
    clients, place = Clients.of_session(), Place.of_environment()
    if "detail" in event:
        return _cancelled(event["detail"], clients, place, context)
    return steps.run(event, clients, place, seconds=_seconds(context))


def _cancelled(detail: Mapping[str, Any], clients: Clients, place: Place, context: Any) -> Any:
    """Clean up after the execution of an event. Its input names the test; it is far smaller than what events drop."""
    test = json.loads(detail["input"])["id"]
    event = {"id": test, "why": f"its execution is {detail['status']}"}
    return steps.clean_up(event, clients, place, seconds=_seconds(context))


def _seconds(context: Any) -> float:
    """How long this run may wait for jobs to end: all but what is needed for the rest."""
    return float(context.get_remaining_time_in_millis()) / 1000 - steps.RESERVE_SECONDS
