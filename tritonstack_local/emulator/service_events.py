"""Events of the AWS services themselves (``aws.codebuild``, ``aws.sagemaker``), and their way to Lambda.

PutEvents refuses such sources to everybody, as on AWS. A Lambda target is invoked asynchronously: when the function
fails, Lambda tries again after one minute and once more after another two (Lambda developer guide, "Error handling for
asynchronous invocation"). Those minutes are the clock's.
"""

from __future__ import annotations

import contextvars
import json
import logging
import threading
from typing import Any

from ministack.services import eventbridge, lambda_svc

from tritonstack_local.emulator.clock import clock

logger = logging.getLogger("tritonstack.emulator.events")
_RETRY_SECONDS = (60.0, 120.0)
_LONGEST_EVENT_AGE_SECONDS = 21600.0


def install() -> None:
    """Events bear the clock's time, and Lambda targets are tried again. Once a process."""
    eventbridge._now_ts = clock.now
    eventbridge._dispatch_to_lambda = _invoke_in_background


def emit(source: str, detail_type: str, detail: dict[str, Any], resources: list[str]) -> None:
    """Put one event on the default bus of the calling context's account and region; rules' targets get it.

    Args:
        source: the service (``aws.codebuild``).
        detail_type: the event's kind (``CodeBuild Build State Change``).
        detail: what the kind prescribes; anything that JSON can say.
        resources: ARNs.
    """
    eventbridge._ensure_default_bus()
    entry = {"Source": source, "DetailType": detail_type, "Detail": json.dumps(detail), "Resources": resources}
    eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)


def _invoke_in_background(arn: str, payload: str) -> None:
    """EventBridge's dispatch to a Lambda target; what becomes of it is told by the log only."""
    function, config, name = lambda_svc._get_func_record_for_ref(arn)
    if not function or not config:
        logger.warning("event not delivered: there is no function %s", name)
        return
    record = lambda_svc._execution_record_for_config(function, config)
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(_deliver, name, record, json.loads(payload)), daemon=True).start()


def _deliver(name: str, record: dict[str, Any], event: Any) -> None:
    """Invoke until it succeeds, the attempts are used up, or the event is too old; then its failure destination."""
    settings = _asynchronous_settings(record)
    attempts = settings.get("MaximumRetryAttempts")
    expires = clock.deadline(float(settings.get("MaximumEventAgeInSeconds") or _LONGEST_EVENT_AGE_SECONDS))
    waits = _RETRY_SECONDS[: len(_RETRY_SECONDS) if attempts is None else int(attempts)]
    result = lambda_svc._execute_function_with_config_scope(record, event)
    for wait in waits:
        if not result.get("error") or wait > expires.remaining:
            break
        logger.warning("function %s failed on an event, tried again in %g s: %s", name, wait, result.get("body"))
        clock.wait_for(lambda: False, clock.deadline(wait))
        result = lambda_svc._execute_function_with_config_scope(record, event)
    if result.get("error"):
        logger.error("function %s failed on an event for the last time: %s", name, result.get("body"))
        _send_to_failure_destination(name, record, event, result)


def _asynchronous_settings(record: dict[str, Any]) -> dict[str, Any]:
    """The function's EventInvokeConfig, empty where it has none."""
    every: dict[str, dict[str, Any]] = record.get("event_invoke_configs") or {}
    return record.get("event_invoke_config") or every.get("$LATEST") or {}


def _send_to_failure_destination(name: str, record: dict[str, Any], event: Any, result: dict[str, Any]) -> None:
    destination = (_asynchronous_settings(record).get("DestinationConfig") or {}).get("OnFailure") or {}
    queue = record["config"].get("DeadLetterConfig") or {}
    arn = destination.get("Destination") or queue.get("TargetArn")
    if arn:
        lambda_svc._route_async_failure(arn, name, event, result)
