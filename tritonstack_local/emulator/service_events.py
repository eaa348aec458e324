"""Events, logs and CloudWatch metrics of the services themselves; KMS keys of log groups and topics."""

from __future__ import annotations

import contextvars
import json
import logging
import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from tritonstack import aws_names
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudformation.provisioning import Properties, complete
from tritonstack_local.emulator.codebuild.build import Build
from tritonstack_local.emulator.iam.authorization import Principal, decide, enforced, role_principal, service_principal
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import install_roles, log_needs, refusal_of
from tritonstack_local.emulator.ministack_adapter import eventbridge, kms, lambda_functions, logs, sns, sqs
from tritonstack_local.emulator.ministack_adapter.cloudwatch import record_metric
from tritonstack_local.emulator.ministack_adapter.core import get_account_id, parse_arn, request_scope, rows_everywhere
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import JsonService, role_trusts

# --- Events ---
# PutEvents refuses such sources, as on AWS. A Lambda target is invoked asynchronously: when the function fails, Lambda
# tries again after one minute and once more after another two (Lambda developer guide, "Error handling for asynchronous
# invocation"). Those minutes are the clock's.

logger = logging.getLogger("tritonstack.emulator.events")
_RETRY_SECONDS = (60.0, 120.0)
_LONGEST_EVENT_AGE_SECONDS = 21600.0


def install() -> None:
    """Services act with their roles; events bear the clock's time, and rules hand them over by permission, counted."""
    install_roles()
    eventbridge.now_ts.replace(clock.now)
    eventbridge.dispatch_to_lambda.replace(_invoke_in_background)
    theirs = eventbridge.invoke_target.current

    def invoke(target: dict[str, Any], event: dict[str, Any], rule: dict[str, Any], view: Any = None) -> None:
        """An invocation that is not permitted counts, too."""
        refusal = delivery_refusal(target["Arn"], rule, role=target.get("RoleArn"))
        if refusal is None:
            theirs(target, event, rule, view)
        else:
            logger.error("event not delivered to %s: %s", target["Arn"], refusal)
            _keep_undelivered(target, event, rule)
        record_metric(aws_names.EVENTS, aws_names.INVOCATIONS, 1, "Count", {aws_names.RULE_NAME: rule["Name"]})

    eventbridge.invoke_target.replace(invoke)
    owner = SimpleNamespace(associate_kms_key=_set_log_group_key, disassociate_kms_key=_set_log_group_key)
    JsonService(owner, service="logs").serve_first(logs.handle_request)
    complete("AWS::SNS::Topic", apply=_set_topic_key)


def emit(source: str, detail_type: str, detail: dict[str, Any], resources: list[str]) -> None:
    """Put one event on the default bus of the calling context's account and region; rules' targets get it.

    Args:
        source: the service (``aws.codebuild``).
        detail_type: the event's kind (``CodeBuild Build State Change``).
        detail: what the kind prescribes; anything that JSON can hold.
        resources: ARNs.
    """
    eventbridge.ensure_default_bus()
    entry = {"Source": source, "DetailType": detail_type, "Detail": json.dumps(detail), "Resources": resources}
    eventbridge.put_events({"Entries": [entry]}, allow_aws_source=True)


def _invoke_in_background(arn: str, payload: str) -> None:
    """EventBridge's dispatch to a Lambda target; the outcome is in the log only."""
    function, config, name = lambda_functions.get_func_record_for_ref(arn)
    if not function or not config:
        logger.warning("event not delivered: there is no function %s", name)
        return
    record = lambda_functions.execution_record_for_config(function, config)
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(_deliver, name, record, json.loads(payload)), daemon=True).start()


def _deliver(name: str, record: dict[str, Any], event: Any) -> None:
    """Invoke until it succeeds, the attempts are used up, or the event is too old; then its failure destination."""
    settings = _asynchronous_settings(record)
    attempts = settings.get("MaximumRetryAttempts")
    expires = clock.deadline(float(settings.get("MaximumEventAgeInSeconds") or _LONGEST_EVENT_AGE_SECONDS))
    waits = _RETRY_SECONDS[: len(_RETRY_SECONDS) if attempts is None else int(attempts)]
    result = _invoked(name, record, event)
    for wait in waits:
        if not result.get("error") or wait > expires.remaining:
            break
        logger.warning("function %s failed on an event, tried again in %g s: %s", name, wait, result.get("body"))
        clock.wait_for(lambda: False, clock.deadline(wait))
        result = _invoked(name, record, event)
    if result.get("error"):
        logger.error("function %s failed on an event for the last time: %s", name, result.get("body"))
        _send_to_failure_destination(name, record, event, result)


def _invoked(name: str, record: dict[str, Any], event: Any) -> dict[str, Any]:
    """The result of one invocation; a fault of the local AWS is an error result, which is tried again."""
    try:
        result: dict[str, Any] = lambda_functions.execute_function(record, event)
    except Exception as error:
        logger.exception("function %s could not be invoked", name)
        return {"error": True, "body": f"the local AWS failed to invoke it: {error!r}"}
    return result


def _asynchronous_settings(record: dict[str, Any]) -> dict[str, Any]:
    """The function's EventInvokeConfig, empty where it has none."""
    every: dict[str, dict[str, Any]] = record.get("event_invoke_configs") or {}
    return record.get("event_invoke_config") or every.get("$LATEST") or {}


def _send_to_failure_destination(name: str, record: dict[str, Any], event: Any, result: dict[str, Any]) -> None:
    destination = (_asynchronous_settings(record).get("DestinationConfig") or {}).get("OnFailure") or {}
    queue = record["config"].get("DeadLetterConfig") or {}
    arn = destination.get("Destination") or queue.get("TargetArn")
    if arn:
        lambda_functions.route_async_failure(arn, name, event, result)


# EventBridge invokes functions, queues and topics as itself under their policies, and everything else with the role of
# the target (EventBridge user guide, "Permissions for EventBridge to access targets"). What it may not invoke goes to
# the target's dead-letter queue, without a retry (the same, "Using dead-letter queues to process undelivered events").
_INVOKES = {"lambda": "lambda:InvokeFunction", "sqs": "sqs:SendMessage"}
_STARTS = {
    "codebuild": "codebuild:StartBuild",
    "codepipeline": "codepipeline:StartPipelineExecution",
    "states": "states:StartExecution",
}


def delivery_refusal(arn: str, rule: dict[str, Any], *, role: str | None = None) -> str | None:
    """Why EventBridge may not invoke a target of a rule; None where it may. ``role``: the target's."""
    service = arn.split(":")[2]
    source = {"aws:SourceArn": str(rule["Arn"]), "aws:SourceAccount": get_account_id()}
    if service == "sns":
        return publishing_refusal(arn, service=EVENTS, source=source)
    if not enforced():
        return None
    if service in _INVOKES:
        caller, need = service_principal(EVENTS), Need(action=_INVOKES[service], resource=arn, context=source)
    elif service not in _STARTS:
        return None
    elif role_trusts(role or "", EVENTS):
        caller, need = role_principal(str(role), rule["Name"]), Need(action=_STARTS[service], resource=arn)
    else:
        return f"the target's role {role or '(none)'} cannot be assumed by {EVENTS}"
    refusal = refusal_of(caller, [need], by=f"events: rule {rule['Name']}")
    return refusal.sentence if refusal is not None else None


# --- Logs ---

_LONGEST_LINE = 200_000  # bytes; CloudWatch Logs takes 256 KiB an event


class LogStream:
    """One log stream, made at once; the group is made where it is missing. Usable from any thread.

    Attributes:
        refusal: why there is none, and no line is kept: the writer may not write it. None where it may.
    """

    def __init__(self, group: str, stream: str, *, writer: Principal, prefix: Callable[[], str]) -> None:
        """In the account and region of the calling context.

        ``writer``: the principal whose permissions are checked, once, now. ``prefix`` begins the lines of ``say``.
        """
        self._prefix = prefix
        self.refusal = refusal_of(writer, log_needs(group, stream), by=f"log of {group}")
        if self.refusal is not None:
            return
        self._context = contextvars.copy_context()
        self._stream = {"logGroupName": group, "logStreamName": stream}
        logs.create_log_group({"logGroupName": group})
        logs.create_log_stream(dict(self._stream))

    def say(self, text: str) -> None:
        """A line of the service's own."""
        self.line(self._prefix() + text)

    def line(self, text: str) -> None:
        """A line of a command's output, or several."""
        if self.refusal is not None:
            return
        at = int(clock.now() * 1000)
        lines = [line.encode()[:_LONGEST_LINE].decode(errors="ignore") for line in text.rstrip("\r\n").split("\n")]
        events = [{"timestamp": at, "message": line} for line in lines]
        # A copy, since two threads cannot be in one context at a time.
        self._context.copy().run(logs.put_log_events, {**self._stream, "logEvents": events})


# --- Metrics ---
# Sources: EventBridge user guide, "Monitoring Amazon EventBridge"; CodeBuild user guide, "CodeBuild CloudWatch
# metrics"; SQS developer guide, "Available CloudWatch metrics". Only what an alarm or a graph of this project reads is
# written.

_FAILED = frozenset({"FAILED", "TIMED_OUT"})
"""``FailedBuilds`` are those that failed "because of client error or a timeout"."""
_MINUTE = 60


def _keep_undelivered(target: dict[str, Any], event: dict[str, Any], rule: dict[str, Any]) -> None:
    """Send an event to the target's dead-letter queue, whose policy must let EventBridge in."""
    queue = (target.get("DeadLetterConfig") or {}).get("Arn")
    if queue and delivery_refusal(queue, rule) is None:
        payload = json.dumps(eventbridge.pattern_event_view(event).event_with_detail())
        eventbridge.dispatch_to_sqs(parse_arn(queue), payload)


def count_build(build: Build) -> None:
    """Write of a build that has ended; a stopped one neither failed nor succeeded."""
    of = {aws_names.PROJECT_NAME: build.parameters.project}
    record_metric(aws_names.CODEBUILD, aws_names.BUILDS, 1, "Count", of)
    record_metric(aws_names.CODEBUILD, aws_names.BUILD_DURATION, clock.now() - build.start, "Seconds", of)
    ends = {aws_names.SUCCEEDED_BUILDS: build.status == "SUCCEEDED", aws_names.FAILED_BUILDS: build.status in _FAILED}
    for name, holds in ends.items():
        if holds:
            record_metric(aws_names.CODEBUILD, name, 1, "Count", of)


class QueueDepths:
    """Number of messages that wait in each queue, once a minute."""

    def __init__(self) -> None:
        self._written: dict[str, int] = {}

    def write(self) -> None:
        """Write this minute's data that is not written yet; called before each evaluation of the alarms."""
        minute = int(clock.now() // _MINUTE)
        for (account, region, _), queue in rows_everywhere(sqs.queues()):
            arn = queue["attributes"]["QueueArn"]
            if self._written.get(arn) == minute:
                continue
            self._written[arn] = minute
            sqs.refresh_counts(queue)
            waiting, of = int(queue["attributes"]["ApproximateNumberOfMessages"]), {aws_names.QUEUE_NAME: queue["name"]}
            with request_scope(account, region):
                record_metric(aws_names.QUEUES, aws_names.VISIBLE_MESSAGES, waiting, "Count", of)


# --- Keys of log groups and of topics, as far as MiniStack lacks them. Nothing is encrypted ---
#
# Log groups: AssociateKmsKey and DisassociateKmsKey of CloudWatch Logs; MiniStack keeps and describes a group's key.
#
# Topics: CloudFormation's KmsMasterKeyId is kept, and a service that publishes is refused where the topic's or the
# key's policy does not let it in. The publisher needs kms:GenerateDataKey and kms:Decrypt (SNS developer guide,
# "Managing Amazon SNS encryption keys and costs"). EventBridge uses the key without its source (the same: conditions on
# aws:SourceAccount and aws:SourceArn are "not supported for EventBridge-to-encrypted topics"); a CloudWatch alarm uses
# it with it. The key's policy counts also where permissions are not enforced.

_KEY = "KmsMasterKeyId"
_PUBLISHING = ("kms:Decrypt", "kms:GenerateDataKey")
EVENTS = "events.amazonaws.com"


def publishing_refusal(topic: str, *, service: str, source: Mapping[str, str]) -> str | None:
    """Why a service may not publish to a topic; None where it may. ``source``: the keys of what it publishes for."""
    caller, by = service_principal(service), f"{service} publishes to {topic}"
    denied = refusal_of(caller, [Need(action="sns:Publish", resource=topic, context=dict(source))], by=by)
    if denied is not None:
        return denied.sentence
    found = sns.topic_by_arn_any_scope(topic)
    key = kms.resolve_key(found["attributes"].get(_KEY)) if found else None
    context = {} if service == EVENTS else dict(source)
    used = [Need(action=action, resource=key["Arn"], context=context) for action in _PUBLISHING] if key else []
    refused = [need for need in used if not decide(caller, need)[1].allowed]
    if not refused:
        return None
    refusal_of(caller, refused, by=by)
    actions = " and ".join(need.action for need in refused)
    return f"the policy of {refused[0].resource}, the topic's key, does not allow {service} {actions}"


def _set_topic_key(topic: str, new: Properties, _old: Properties) -> None:
    attributes = sns.topics()[topic]["attributes"]
    attributes.pop(_KEY, None)
    attributes.update({name: value for name, value in new.items() if name == _KEY})


def _set_log_group_key(request: dict[str, Any]) -> None:
    name = request.get("logGroupName")
    group = logs.log_groups().get(name)
    if group is None:
        sentence = f"The specified log group does not exist: {name}"
        raise RefusedError("ResourceNotFoundException", sentence, source="CloudWatch Logs API reference")
    group["kmsKeyId"] = request.get("kmsKeyId")  # DisassociateKmsKey names none
