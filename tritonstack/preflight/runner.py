"""Runs all checks at once, each in a thread, within a time limit."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tritonstack.preflight.account import check_account, check_bootstrap, check_image, check_key
from tritonstack.preflight.capacity_reservation import check_capacity_reservation
from tritonstack.preflight.deployed import check_endpoint_name, check_key_change, check_left_stacks, check_stacks
from tritonstack.preflight.ec2 import check_left_network, check_subnet
from tritonstack.preflight.quotas import check_codebuild_quota, check_endpoint_quota, check_processing_quota
from tritonstack.preflight.role import check_role
from tritonstack.preflight.subject import CheckedItem, PreflightResult, Subject

LONGEST_SECONDS = 90.0
"""For all checks together; a check that has not ended by then is unknown."""


@dataclass(frozen=True)
class Check:
    """A check: its name, which results carry; what it looks at; and its results, none where there is nothing to see."""

    name: str
    title: str
    run: Callable[[Subject], Iterator[PreflightResult]]


ACCOUNT = Check("account", "account and region", check_account)
"""Runs first: without the right account every other result would be about another one."""
CHECKS: tuple[Check, ...] = (
    Check("bootstrap", "CDK bootstrap", check_bootstrap),
    Check("endpoint-quota", "quotas of endpoint instances", check_endpoint_quota),
    Check("capacity-reservation", "capacity reservations of endpoints", check_capacity_reservation),
    Check("processing-quota", "quotas of processing jobs that build engines", check_processing_quota),
    Check("codebuild-quota", "quotas of builds in CodeBuild", check_codebuild_quota),
    Check("endpoint-name", "names of endpoints", check_endpoint_name),
    Check("image", "images in ECR", check_image),
    Check("key", "KMS keys of your own", check_key),
    Check("key-change", "a change of the artifacts' key", check_key_change),
    Check("role", "execution roles of your own", check_role),
    Check("subnet", "imported subnets", check_subnet),
    Check("left-network", "the network that is left", check_left_network),
    Check("stacks", "states of the environment's stacks", check_stacks),
    Check("left-stacks", "stacks that the environment's file no longer has", check_left_stacks),
)
"""The others, in the order in which they are shown."""

Say = Callable[[str], None]


def run_checks(
    subject: Subject,
    *,
    say: Say = lambda _text: None,
    checks: tuple[Check, ...] = CHECKS,
    seconds: float = LONGEST_SECONDS,
) -> tuple[PreflightResult, ...]:
    """The results of every check, in order. ``say`` reports how many have ended.

    Where the account is the wrong one, the other checks do not run and are unknown. A check that does not end in time
    is unknown, too; its thread ends at its next request.
    """
    until = time.monotonic() + seconds
    first = tuple(_run((ACCOUNT,), subject, say=lambda _text: None, until=until))
    if any(result.outcome == "fails" for result in first):
        found = "not looked at: these credentials are of another account or region"
        return (
            *first,
            *(_unknown(check, found, "the environment's account and region", "Fix that first.") for check in checks),
        )
    return (*first, *_run(checks, subject, say=say, until=until))


def _run(checks: tuple[Check, ...], subject: Subject, *, say: Say, until: float) -> Iterator[PreflightResult]:
    results: dict[Check, list[PreflightResult]] = {check: [] for check in checks}
    ends: queue.SimpleQueue[tuple[Check, BaseException | None]] = queue.SimpleQueue()

    def work(check: Check) -> None:
        failure = None
        try:
            for result in check.run(subject):
                results[check].append(result)
        except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
            failure = error
        ends.put((check, failure))

    for check in checks:
        threading.Thread(target=work, args=(check,), name=check.name, daemon=True).start()
    waiting = list(checks)
    while waiting:
        names = ", ".join(check.name for check in waiting)
        say(f"{len(checks) - len(waiting)} of {len(checks)} checks; waiting for {names}")
        try:
            ended, error = ends.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            subject.calls.give_up()
            break
        if error is not None:
            raise error
        waiting.remove(ended)
    for check in checks:
        yield from list(results[check])
        if check in waiting:
            advice = "Check network, proxy and region; run it again."
            yield _unknown(check, "AWS did not respond in time", "an answer", advice)


def _unknown(check: Check, found: str, needed: str, advice: str) -> PreflightResult:
    return CheckedItem(check=check.name, subject=check.title, needed=needed).unknown(found, advice=advice)
