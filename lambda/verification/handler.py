"""A custom resource between an endpoint and its release records: it fails unless what was deployed answers as expected.

``Custom::VerifiedEndpoint`` is done when

* the live endpoint runs the configuration, variant and image that the template names: SageMaker can roll an update back
  by itself, and CloudFormation then hears of a success;
* the models whose digest or platform changed, at most ``Models`` of them, have answered the sample request of their
  manifest as the manifest expects, within its tolerance.

A failure here fails the deployment before any release record moves. The undoing of an update, which is an Update too
and which only the stack's status tells, and a Delete are answered at once.

A Lambda ends after 15 minutes, and loads may take longer. Shortly before its end the function hands its *work*, which
travels in the event, to itself in an asynchronous call; ``Minutes`` after the first event it gives up. Every step may
be repeated: CloudFormation and Lambda both deliver an event more than once, nothing here changes anything, and of two
answers CloudFormation takes the first.

Warming more models than fit evicts those that were just warmed. So no further model is called once an unload was seen:
a 507, by which SageMaker learns that memory is full, or a figure of ModelUnloadingTime of a minute after the start.

Standard library and boto3 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..shared.custom_resource import identity, respond

if TYPE_CHECKING:
    from collections.abc import Mapping


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point: do what this run can, then hand the rest over, or answer CloudFormation."""

    def act() -> Mapping[str, str] | None:
        if event["RequestType"] == "Delete":
            return {}
        from .verification import verify  # noqa: PLC0415 - a failure of it is answered, too

        return verify(event, context)

    respond(event, context, act, physical_id=identity(event, "EndpointName"))
