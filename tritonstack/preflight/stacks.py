"""Checks of the environment's deployed stacks: states that a deployment fails at, and stacks that left the file."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.deployed.stacks import of_environment
from tritonstack.deployed.states import stuck_stacks
from tritonstack.preflight.subject import CheckedItem, PreflightResult, Subject


def check_stacks(subject: Subject) -> Iterator[PreflightResult]:
    """No stack of the environment is in a state that no update goes on from, or at work."""
    name = subject.environment.environment
    item = CheckedItem(check="stacks", subject=f"{name}-*", needed="stacks that can be updated")
    yield from item.look(_states, subject)


def _states(item: CheckedItem, subject: Subject) -> Iterator[PreflightResult]:
    settings = subject.environment
    found = subject.facts.deployed(settings, project=subject.project)
    own = of_environment(found.stacks, settings.environment)
    left = {each.stack.id for each in found.left}
    stuck = stuck_stacks(each for each in own if each.id not in left)
    for each in stuck:
        one = CheckedItem(check=item.check, subject=each.stack.name, needed=item.needed)
        yield one.fails(each.sentence, advice=f"{each.advice[:1].upper()}{each.advice[1:]}.")
    if not stuck:
        running = ", ".join(f"{each.name} is {each.status}" for each in own if each.in_progress)
        yield item.passes(running or f"{len(own)} stacks, none in a failed state")


def check_left_stacks(subject: Subject) -> Iterator[PreflightResult]:
    """Warn about deployed stacks that left the environment's file: no deployment removes them, and they are billed."""
    name = subject.environment.environment
    item = CheckedItem(
        check="left-stacks", subject=f"{name}-*", needed="nothing deployed that the environment's file does not have"
    )
    yield from item.look(_left, subject)


def _left(item: CheckedItem, subject: Subject) -> Iterator[PreflightResult]:
    settings = subject.environment
    left = subject.facts.deployed(settings, project=subject.project).left
    for each in left:
        one = CheckedItem(check=item.check, subject=each.stack.name, needed=item.needed)
        yield one.warns(each.sentence, advice=f"tritonstack leftovers -e {settings.environment} --delete")
    if not left:
        yield item.passes("none")
