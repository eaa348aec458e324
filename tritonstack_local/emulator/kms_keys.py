"""Keys of log groups and of topics, as far as MiniStack lacks them. Nothing is encrypted.

Log groups: AssociateKmsKey and DisassociateKmsKey of CloudWatch Logs; MiniStack keeps and describes a group's key.

Topics: CloudFormation's ``KmsMasterKeyId`` is kept, and a service that publishes is refused where the key's policy does
not let it in. The publisher needs kms:GenerateDataKey and kms:Decrypt (SNS developer guide, "Managing Amazon SNS
encryption keys and costs"). EventBridge calls without its source (the same: conditions on aws:SourceAccount and
aws:SourceArn are "not supported for EventBridge-to-encrypted topics"); a CloudWatch alarm calls with it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.iam_evaluator import EvalContext, evaluate_resource_policy
from ministack.core.responses import error_response_json, get_account_id, get_region, json_response
from ministack.services import cloudwatch_logs, eventbridge, kms, sns

from tritonstack_local.emulator.cloudformation.provisioning import Properties, complete

logger = logging.getLogger("tritonstack.emulator.keys")
Answer = tuple[int, dict[str, str], Any]
_ACTIONS = ("AssociateKmsKey", "DisassociateKmsKey")
_KEY = "KmsMasterKeyId"
_PUBLISHING = ("kms:Decrypt", "kms:GenerateDataKey")


def install() -> None:
    """Answer both actions of CloudWatch Logs, keep topics' keys, and have EventBridge refused by them."""
    cloudwatch_logs.handle_request = _with_log_group_keys(cloudwatch_logs.handle_request)
    complete("AWS::SNS::Topic", apply=_set_topic_key)
    eventbridge._dispatch_to_sns = _unless_refused(eventbridge._dispatch_to_sns)


def publishing_refusal(topic: str, *, service: str, source: Mapping[str, str]) -> str | None:
    """Why a service may not publish to a topic; None where it may, or where the key is none of the local KMS."""
    found = sns._topic_by_arn_any_scope(topic)
    key = kms._resolve_key(found["attributes"].get(_KEY)) if found else None
    if key is None:
        return None
    refused = [
        action
        for action in _PUBLISHING
        if evaluate_resource_policy(
            key["Policy"],
            EvalContext(
                principal_arn=f"service:{service}",
                principal_type="Service",
                principal_account=get_account_id(),
                action=action,
                resource_arn=key["Arn"],
                region=get_region(),
                service_context={name.lower(): value for name, value in source.items()},
            ),
            service=service,
        ).decision
        != "Allow"
    ]
    if not refused:
        return None
    return f"the policy of {key['Arn']}, the topic's key, does not allow {service} {' and '.join(refused)}"


def _unless_refused(publish: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    """EventBridge drops an event that it may not publish (and counts it in ``FailedInvocations``)."""

    def published(arn: str, payload: Any) -> None:
        refusal = publishing_refusal(arn, service="events.amazonaws.com", source={})
        if refusal is None:
            publish(arn, payload)
        else:
            logger.error("event not delivered to %s: %s", arn, refusal)

    return published


def _set_topic_key(topic: str, new: Properties, _old: Properties) -> None:
    attributes = sns._topics[topic]["attributes"]
    attributes.pop(_KEY, None)
    attributes.update({name: value for name, value in new.items() if name == _KEY})


def _with_log_group_keys(others: Callable[..., Any]) -> Callable[..., Any]:
    async def handle_request(method: str, path: str, headers: dict[str, str], body: bytes, query: Any) -> Answer:
        action = headers.get("x-amz-target", "").rpartition(".")[2]
        if action not in _ACTIONS:
            answer: Answer = await others(method, path, headers, body, query)
            return answer
        return _set_log_group_key(action, json.loads(body))

    return handle_request


def _set_log_group_key(action: str, request: dict[str, Any]) -> Answer:
    name = request.get("logGroupName")
    group = cloudwatch_logs._log_groups.get(name)
    if group is None:
        refused: Answer = error_response_json(
            "ResourceNotFoundException", f"The specified log group does not exist: {name}", 400
        )
        return refused
    group["kmsKeyId"] = request["kmsKeyId"] if action == "AssociateKmsKey" else None
    done: Answer = json_response({})
    return done
