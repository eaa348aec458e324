"""Custom resource that owns the log group of an endpoint's containers, whoever made it.

Create and Update make the group that the property ``LogGroupName`` names, or adopt the one that is there, and set
``RetentionInDays``, ``KmsKeyId`` and ``Tags`` (JSON), for which it has ``LogGroupArn``. Delete keeps it where
``Retain`` is ``true``, else deletes it. Each step may be repeated: CloudFormation and Lambda both deliver an event more
than once.

Lines that lay in an adopted group before keep the encryption that they had; the retention is for all of them.

Standard library and boto3 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..shared.custom_resource import respond

if TYPE_CHECKING:
    from collections.abc import Mapping


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point; the group's name is the physical id."""
    properties = event.get("ResourceProperties") or {}

    def act() -> Mapping[str, str]:
        from ..shared.clients import client  # noqa: PLC0415 - a failure of it is answered, too
        from .log_group import apply  # noqa: PLC0415

        print({"done": apply(client("logs"), event["RequestType"], properties, event.get("OldResourceProperties"))})
        return {}

    respond(event, context, act, physical_id=properties.get("LogGroupName", "unknown"))
