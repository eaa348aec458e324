"""The steps of a load test with SageMaker Inference Recommender, and the clean-up of a cancelled one.

Two callers:

* The state machine, with ``{"do": "register" | "start" | "look" | "gather" | "clean_up", "id": …, "job": …}``.
* EventBridge, when an execution of the state machine has not succeeded (ABORTED, TIMED_OUT, FAILED): a cancelled
  execution runs no further state, so that only this event stops its jobs and removes what it made.

A test is described by its settings, ``load-tests/<id>/settings.json`` in the environment's bucket, which
``tritonstack capacity bench --cloud`` wrote: the requests to SageMaker, and the results' document without its figures.
Names of jobs and model packages follow from the test's id, so that every step may be repeated.

Variables: ``ARTIFACT_BUCKET``, ``JOB_ROLE`` (the role of the jobs) and ``NAMES`` (prefix of the names of jobs, packages
and all that jobs make).
"""

from __future__ import annotations

import json
from typing import Any

from ..shared.clients import Aws
from . import steps
from .objects import Place


def handler(event: dict[str, Any], context: Any) -> Any:
    """Entry point of both callers. A failed step is the state machine's to catch, a failed event Lambda's to repeat."""
    aws, place = Aws(), Place.of_environment()
    seconds = float(context.get_remaining_time_in_millis()) / 1000 - steps.RESERVE_SECONDS
    if "detail" not in event:
        return steps.run(event, aws, place, seconds=seconds)
    # An execution's input names the test, and is far below the size that events omit.
    ended = event["detail"]
    test = {"id": json.loads(ended["input"])["id"], "why": f"its execution is {ended['status']}"}
    return steps.clean_up(test, aws, place, seconds=seconds)
