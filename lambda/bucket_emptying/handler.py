"""Custom resource that deletes a bucket with what is in it, because CloudFormation refuses to delete a full one.

Create and Update do nothing. Delete removes every version and every delete marker of the bucket that the property
``Bucket`` names, every upload that was never completed, and then the bucket itself. CloudFormation, whose turn comes
later, finds it gone, which is a deletion that has succeeded. Were it left to CloudFormation, an access log that arrives
between the two would fail the deletion, and deleting the stack again would find neither this resource nor its function;
S3 delivers logs for an hour after logging has ended (S3 API, PutBucketLogging).

A bucket without the tag of ``emptying.py`` stays: the template that takes the resource away takes the tag away first,
where the bucket is to be retained from then on.

A function ends after 15 minutes. Then CloudFormation reports a failed deletion, and deleting the stack again goes on
from where this stopped. Each step may be repeated; a bucket that is gone is no error.

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
        from .emptying import remove  # noqa: PLC0415

        print({"removed": remove(client("s3"), bucket)})
        return {}

    respond(event, context, act, physical_id=f"emptied:{bucket}")
