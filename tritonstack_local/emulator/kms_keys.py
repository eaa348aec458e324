"""Keys of log groups and of topics, as far as MiniStack lacks them. Nothing is encrypted.

Log groups: AssociateKmsKey and DisassociateKmsKey of CloudWatch Logs; MiniStack keeps and describes a group's key.

Topics: CloudFormation's ``KmsMasterKeyId`` is kept, and a service that publishes is refused where the topic's or the
key's policy does not let it in. The publisher needs kms:GenerateDataKey and kms:Decrypt (SNS developer guide, "Managing
Amazon SNS encryption keys and costs"). EventBridge uses the key without its source (the same: conditions on
aws:SourceAccount and aws:SourceArn are "not supported for EventBridge-to-encrypted topics"); a CloudWatch alarm uses it
with it. The key's policy counts also where permissions are not enforced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import error_response_json, json_response
from ministack.services import cloudwatch_logs, kms, sns

from tritonstack_local.emulator.cloudformation.provisioning import Properties, complete
from tritonstack_local.emulator.iam.authorization import decide, service_principal
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import refusal_of

Answer = tuple[int, dict[str, str], Any]
_ACTIONS = ("AssociateKmsKey", "DisassociateKmsKey")
_KEY = "KmsMasterKeyId"
_PUBLISHING = ("kms:Decrypt", "kms:GenerateDataKey")
EVENTS = "events.amazonaws.com"


def install() -> None:
    """Answer both actions of CloudWatch Logs and keep topics' keys."""
    cloudwatch_logs.handle_request = _with_log_group_keys(cloudwatch_logs.handle_request)
    complete("AWS::SNS::Topic", apply=_set_topic_key)


def publishing_refusal(topic: str, *, service: str, source: Mapping[str, str]) -> str | None:
    """Why a service may not publish to a topic; None where it may. ``source``: the keys of what it publishes for."""
    caller, by = service_principal(service), f"{service} publishes to {topic}"
    denied = refusal_of(caller, [Need(action="sns:Publish", resource=topic, context=dict(source))], by=by)
    if denied is not None:
        return denied.sentence
    found = sns._topic_by_arn_any_scope(topic)
    key = kms._resolve_key(found["attributes"].get(_KEY)) if found else None
    context = {} if service == EVENTS else dict(source)
    used = [Need(action=action, resource=key["Arn"], context=context) for action in _PUBLISHING] if key else []
    refused = [need for need in used if not decide(caller, need)[1].allowed]
    if not refused:
        return None
    refusal_of(caller, refused, by=by)
    actions = " and ".join(need.action for need in refused)
    return f"the policy of {refused[0].resource}, the topic's key, does not allow {service} {actions}"


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
