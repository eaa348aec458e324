"""AssociateKmsKey and DisassociateKmsKey of CloudWatch Logs, which MiniStack lacks; it keeps a group's key already.

Nothing is encrypted: the key is kept, described, and given back.
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core.responses import error_response_json, json_response
from ministack.services import cloudwatch_logs

Answer = tuple[int, dict[str, str], Any]
_ACTIONS = ("AssociateKmsKey", "DisassociateKmsKey")


def install() -> None:
    """Answer both actions, and hand every other one to MiniStack."""
    others = cloudwatch_logs.handle_request

    async def handle_request(method: str, path: str, headers: dict[str, str], body: bytes, query: Any) -> Answer:
        action = headers.get("x-amz-target", "").rpartition(".")[2]
        if action not in _ACTIONS:
            answer: Answer = await others(method, path, headers, body, query)
            return answer
        return _set_key(action, json.loads(body))

    cloudwatch_logs.handle_request = handle_request


def _set_key(action: str, request: dict[str, Any]) -> Answer:
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
