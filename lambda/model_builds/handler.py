"""Between a deployment and its builds: starts a build of what is missing, and signals when it has ended.

Two callers:

* CloudFormation, for a ``Custom::ModelBuilds`` in a serving stack. Its properties name the build set as an S3 object
  (``BuildSetBucket``, ``BuildSetKey``) and the URL of a wait condition's handle (``WaitHandle``). Archives of the set,
  and those that release records name, which are not in the bucket for the set's platform are *missing*. Where none is,
  the handle is signalled. Else one *order* for all of them starts one build, the response to CloudFormation is sent at
  once, and the wait condition waits. Where the build cannot be started, the custom resource fails.
* EventBridge, when a build of the project has ended. The *wait* that the build names has the handle to signal. A
  build that did not succeed may have been ended from outside (stopped, timed out, lost), and then could not end the
  engine jobs that it had started: they are stopped.

Variables: ``ARTIFACT_BUCKET``, ``PROJECT`` and ``RECORDS`` (prefix of the names of all release records); where there
are engines, also ``ENGINE_PROJECT`` and ``ENGINE_JOBS`` (prefix of the names of processing jobs).

Every step may be repeated: CloudFormation, EventBridge and Lambda all deliver an event more than once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shared.clients import Aws
from ..shared.custom_resource import identity, respond


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point of both callers. Lambda repeats an event that fails; CloudFormation always gets a response."""
    if "RequestType" in event:
        respond(event, context, lambda: _request(event), physical_id=identity(event, "Of"))
        return
    from .ended_build import build_ended  # noqa: PLC0415 - each caller needs its own half
    from .wait import Place  # noqa: PLC0415

    build_ended(event, aws=Aws(), place=Place.of_environment())


def _request(event: Mapping[str, Any]) -> Mapping[str, str]:
    if event["RequestType"] == "Delete":
        return {}
    from .order import requested  # noqa: PLC0415 - its failure is reported to CloudFormation, too
    from .wait import Place  # noqa: PLC0415

    return requested(event, aws=Aws(), place=Place.of_environment())
