"""The steps of a load test with SageMaker Inference Recommender, and the clean-up of a cancelled one.

Two callers:

* The state machine, with ``{"do": "register" | "start" | "look" | "gather" | "clean_up", "id": …, "job": …}``.
* EventBridge, when an execution of the state machine has not succeeded (ABORTED, TIMED_OUT, FAILED): a cancelled
  execution runs no further state, so that only this event stops its jobs and removes what it made.

A test is described by its plan, ``load-tests/<id>/plan.json`` in the environment's bucket, which ``tritonstack
capacity bench --cloud`` wrote: the requests to SageMaker, and the results' document without its figures. Names of jobs
and model packages follow from the test's id, so that every step may be repeated.

Variables: ``ARTIFACT_BUCKET``, ``JOB_ROLE`` (the role of the jobs) and ``NAMES`` (prefix of the names of jobs, packages
and all that jobs make).

Standard library and boto3 only.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..shared.clients import Aws
from . import steps
from .plan import Place

if TYPE_CHECKING:
    from collections.abc import Mapping


def handler(event: dict[str, Any], context: Any) -> Any:
    """Entry point of both callers. A failed step is the state machine's to catch, a failed event Lambda's to repeat."""
    aws, place = Aws(), Place.of_environment()
    if "detail" in event:
        return _cancelled(event["detail"], aws, place, context)
    return steps.run(event, aws, place, seconds=_seconds(context))


def _cancelled(detail: Mapping[str, Any], aws: Aws, place: Place, context: Any) -> Any:
    """Clean up after an execution. Its input names the test, and is far below the size that events omit."""
    test = json.loads(detail["input"])["id"]
    event = {"id": test, "why": f"its execution is {detail['status']}"}
    return steps.clean_up(event, aws, place, seconds=_seconds(context))


def _seconds(context: Any) -> float:
    """How long this run may wait for jobs to end."""
    return float(context.get_remaining_time_in_millis()) / 1000 - steps.RESERVE_SECONDS
