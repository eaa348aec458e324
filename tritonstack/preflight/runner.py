"""All checks at once, each in a thread, none longer than the limit."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tritonstack.preflight.checks import (
    account,
    alarm_email,
    archive,
    bootstrap,
    bucket,
    codebuild_quota,
    endpoint_name,
    endpoint_quota,
    image,
    instance_type,
    key,
    left_network,
    log_group,
    permissions_boundary,
    prefix_list,
    processing_quota,
    rollback_alarm,
    security_group,
    stack,
    subnet,
    zone,
)
from tritonstack.preflight.result import Result
from tritonstack.preflight.subject import Check, Subject

LONGEST_SECONDS = 90.0
"""For all checks together; what has not answered by then is unknown."""

FIRST = account.CHECK
"""Without the right account every other answer would be about another one."""

CHECKS: tuple[Check, ...] = (
    bootstrap.CHECK,
    stack.CHECK,
    endpoint_name.CHECK,
    log_group.CHECK,
    instance_type.CHECK,
    endpoint_quota.CHECK,
    processing_quota.CHECK,
    codebuild_quota.CHECK,
    image.CHECK,
    archive.CHECK,
    key.CHECK,
    permissions_boundary.CHECK,
    subnet.CHECK,
    security_group.CHECK,
    zone.CHECK,
    left_network.CHECK,
    prefix_list.CHECK,
    bucket.CHECK,
    rollback_alarm.CHECK,
    alarm_email.CHECK,
)
"""The others, in the order in which they are shown."""

Said = Callable[[str], None]


@dataclass
class _Running:
    """A check that was started."""

    check: Check
    results: list[Result] = field(default_factory=list)
    ended: bool = False
    error: BaseException | None = None


def run_checks(
    subject: Subject,
    *,
    say: Said = lambda _text: None,
    checks: tuple[Check, ...] = CHECKS,
    seconds: float = LONGEST_SECONDS,
) -> tuple[Result, ...]:
    """The results of every check, in order; ``say`` is told how many have ended.

    A check that finds the wrong account is the only one: the others are unknown then. What a check does not find out
    in time is unknown, too; its thread is left to itself, and its next call ends it.
    """
    until = time.monotonic() + seconds
    first = tuple(_run((FIRST,), subject, say=lambda _text: None, until=until))
    if any(result.outcome == "fails" for result in first):
        return (*first, *(_not_looked(check) for check in checks))
    return (*first, *_run(checks, subject, say=say, until=until))


def _run(checks: tuple[Check, ...], subject: Subject, *, say: Said, until: float) -> Iterator[Result]:
    running = [_Running(check) for check in checks]
    ends: queue.SimpleQueue[_Running] = queue.SimpleQueue()
    for each in running:
        threading.Thread(target=_work, args=(each, subject, ends), name=each.check.name, daemon=True).start()
    for number in range(len(running)):
        waiting = ", ".join(each.check.name for each in running if not each.ended)
        say(f"{number} of {len(running)} checks; waiting for {waiting}")
        try:
            ended = ends.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            subject.calls.give_up()
            break
        ended.ended = True
        if ended.error is not None:
            raise ended.error
    for each in running:
        yield from list(each.results)
        if not each.ended:
            yield _too_slow(each.check)


def _work(running: _Running, subject: Subject, ends: queue.SimpleQueue[_Running]) -> None:
    try:
        for result in running.check.run(subject):
            running.results.append(result)
    except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
        running.error = error
    ends.put(running)


def _too_slow(check: Check) -> Result:
    return Result(
        check=check.name,
        subject=check.title,
        outcome="unknown",
        found="AWS did not answer in time",
        needed="an answer",
        advice="Check network, proxy and region; run it again.",
    )


def _not_looked(check: Check) -> Result:
    return Result(
        check=check.name,
        subject=check.title,
        outcome="unknown",
        found="not looked at: these credentials are of another account or region",
        needed="the environment's account and region",
        advice="Mend that first.",
    )
