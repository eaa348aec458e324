"""A custom resource between an endpoint and its release records: fails unless what was deployed responds as expected.

``Custom::VerifiedEndpoint`` is done when

* the live endpoint runs the configuration, variant and image that the template names: SageMaker can roll an update back
  by itself and report a success to CloudFormation;
* the models whose digest or platform changed, at most ``Models`` of them, have responded to the sample request of their
  manifest as the manifest expects, within its tolerance.

A failure here fails the deployment before any release record moves. The rollback of an update, which is an Update too
and which only the stack's status shows, and a Delete succeed at once.

A Lambda ends after 15 minutes, and loads may take longer. Shortly before its end the function passes its *work* in the
event to an asynchronous invocation of itself; ``Minutes`` after the first event it gives up. Every step may be
repeated: CloudFormation and Lambda both deliver an event more than once, nothing here changes anything, and of two
responses CloudFormation takes the first.

Warming more models than fit evicts those that were just warmed. So no further model is invoked after an unload: a 507,
with which the container reports full memory to SageMaker, or a data point of ModelUnloadingTime of a minute after the
start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shared.custom_resource import identity, respond


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point: verify as far as this run can, then hand the rest over, or respond to CloudFormation."""

    def act() -> Mapping[str, str] | None:
        if event["RequestType"] == "Delete":
            return {}
        from .verification import verify  # noqa: PLC0415 - its failure is reported to CloudFormation, too

        return verify(event, context)

    respond(event, context, act, physical_id=identity(event, "EndpointName"))
