"""Three custom resources that keep an endpoint's registered scaling in step with the variant that is live.

The variant's name carries the instance type, so a change of type is a new variant. SageMaker refuses an update that
removes a variant which is registered with Application Auto Scaling; deregistering removes policies and scheduled
actions too; and CloudFormation sends a resource an event in a rollback only if the update had changed it. So these read
which variant is live, at every event. The native ScalableTarget and ScalingPolicy resources are between them:

* ``Custom::ScalingBefore``, before the endpoint's config: deregisters a live variant that the update removes, waits
  for an endpoint that is being changed, and returns the initial instance count.
* ``Custom::ScalingSettled``, before the endpoint too: its physical id carries the variant, so that a Delete of the id
  that is no longer in force comes last of all, when the endpoint no longer changes. A restored variant then also
  gets its earlier instance count: its config begins with another.
* ``Custom::ScalingAfter``, after the policies: registers what is wanted.

A is the old variant, B the new one; where an endpoint has two variants each is a set, and a variant that is in both
stays registered. "converge V": if V lacks its target, policies or scheduled actions they are put, and policies of ours
that are not V's are deleted.

================================  ====================  ==============  ================  ======================
What happens                      Before                native          After             Settled (Delete, last)
================================  ====================  ==============  ================  ======================
A created                         nothing is live       makes A         converge A        -
A again, other targets            target there? (else   replaces the    converge A (old   -
                                  it is registered)     policies        policies go)
A to B                            deregister A          makes B,        converge B        of A: converge B
                                                        deletes A (1)
… fails at the endpoint, A lives  deregister A; back:   untouched       untouched         of B: converge A (2)
                                  converge A
… fails later, B lives            deregister A; back:   makes B;        converge B;       of B: converge A (2)
                                  deregister B          deletes B (1)   back: converge A
… fails at a native resource      as one line above     as above        untouched         of B: converge A (2)
… cancelled: A or B lives         waits, then as above  untouched       untouched         of B: converge A (2)
other targets, then fails later   target there?         back in the     converge A;       -
                                                        books only (3)  back: converge A
SageMaker rolls back in silence   deregister A; back:   refused for B   untouched         of B: converge A (2)
                                  converge A
scaling removed                   nothing               deletes A       nothing           of A itself: nothing
scaling is new, and A to B        refused (4)           untouched       untouched         of B itself: nothing
stack deleted                     nothing               deletes A       nothing           of A itself: nothing
================================  ====================  ==============  ================  ======================

A rollback is an update to the earlier template, in the order of the dependencies. The reverse order would work as well:
Before or After deregisters B where it is live while A is wanted; unless a native resource failed.

1. Deleting a resource that is already gone is no failure, to CloudFormation or here.
2. The function's own variable ``SCALING`` holds the scaling wanted at that time: CloudFormation restores the one of
   the template in force before it sends any event.
3. A policy that was put again has a new ARN, and CloudFormation keeps the old one in its records. It never updates by
   it: a policy's name carries the hash of its targets, so that a change of them is a new policy; and a policy that is
   not found at its deletion counts as deleted.
4. A failure after the endpoint could not be undone: nothing would deregister B before the endpoint moves back to A.

An event that CloudFormation does not wait for, or not any more, changes nothing; where the rollback of its update
overtakes a slow run, the run sets the scaling in force by then (``shared/operation.py``). Every step may be repeated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ..shared.clients import Aws
from ..shared.custom_resource import identity, respond


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point."""

    def act() -> Mapping[str, Any]:
        if event["RequestType"] == "Delete" and event["ResourceType"] != "Custom::ScalingSettled":
            return {}
        from .deployment import act as deploy  # noqa: PLC0415 - its failure is reported to CloudFormation, too
        from .target import Wanted  # noqa: PLC0415

        return deploy(event, Aws(), in_force=Wanted.of(os.environ["SCALING"]))

    respond(event, context, act, physical_id=physical_id(event))


def physical_id(event: Mapping[str, Any]) -> str:
    """The id of Settled changes with the variant, and with nothing else; those of the others never change."""
    try:
        scaling = json.loads(event["ResourceProperties"]["Scaling"])
        endpoint = scaling["endpoint"]
        variant = "+".join(each["variant"] for each in (scaling, *scaling.get("beside", ())))
    except (KeyError, TypeError, ValueError):
        return identity(event, "")
    of = f"{endpoint}/{variant}" if event["ResourceType"] == "Custom::ScalingSettled" else endpoint
    return f"{event['ResourceType']}:{of}"
