"""What lies between a deployment and its builds: it starts what is missing, and signals when a build has ended.

Two callers:

* CloudFormation, for a ``Custom::ModelBuilds`` in a serving stack. Its properties name the build set as an S3 object
  (``BuildSetBucket``, ``BuildSetKey``) and the URL of a wait condition's handle (``WaitHandle``). Archives of the set,
  and those that release records name, which are not in the bucket for the set's platform are *missing*. Where nothing
  is, the handle is signalled. Where something is, one *order* for all of it goes to one build, CloudFormation is
  answered at once, and the wait condition waits. Where the build cannot be started, the custom resource fails.
* EventBridge, when a build of the project has ended. The *wait* that the build names says which handle to signal. A
  build that did not succeed may have been ended from outside (stopped, timed out, lost), and then could not end the
  engine jobs that it had started: they are stopped.

The variables ``ARTIFACT_BUCKET``, ``PROJECT`` and ``RECORDS`` (what the names of all release records begin with) say
where; ``ENGINE_PROJECT`` and ``ENGINE_JOBS`` (what the names of processing jobs begin with) too, where there are
engines. Every step may be repeated: CloudFormation, EventBridge and Lambda all deliver an event more than once.

Standard library and boto3 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..shared.custom_resource import identity, respond

if TYPE_CHECKING:
    from collections.abc import Mapping


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point of both callers. An event that fails is Lambda's to repeat; CloudFormation is always answered."""
    if "RequestType" in event:
        respond(event, context, lambda: _request(event), physical_id=identity(event, "Of"))
        return
    from .ended_build import build_ended  # noqa: PLC0415 - each caller needs its own half
    from .services import Clients, Place  # noqa: PLC0415

    build_ended(event, clients=Clients.of_session(), place=Place.of_environment())


def _request(event: Mapping[str, Any]) -> Mapping[str, str]:
    if event["RequestType"] == "Delete":
        return {}  # nobody waits for a build
    from .order import requested  # noqa: PLC0415 - a failure of it is answered, too
    from .services import Clients, Place  # noqa: PLC0415

    return requested(event, clients=Clients.of_session(), place=Place.of_environment())
