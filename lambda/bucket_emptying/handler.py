"""Custom resource that empties a bucket when its stack is deleted, because CloudFormation refuses to delete a full one.

Create and Update do nothing. Delete removes every version and every delete marker of the bucket that the property
``Bucket`` names, and every upload that was never completed. Each step may be repeated; a bucket that is gone is empty.

A function ends after 15 minutes. Then CloudFormation reports a failed deletion, and deleting the stack again goes on
from where this stopped.

Standard library and boto3 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..shared.custom_resource import respond

if TYPE_CHECKING:
    from collections.abc import Mapping


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point; the physical id follows from the bucket's name."""
    bucket = (event.get("ResourceProperties") or {}).get("Bucket", "unknown")

    def act() -> Mapping[str, str]:
        if event["RequestType"] != "Delete":
            return {}
        from ..shared.clients import client  # noqa: PLC0415 - a failure of it is answered, too
        from .emptying import empty  # noqa: PLC0415

        print({"removed": empty(client("s3"), bucket)})
        return {}

    respond(event, context, act, physical_id=f"emptied:{bucket}")
