"""Deletes stacks that left an environment's file, in an order that can be repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import naming
from tritonstack.aws.session import Session, code_of, credentials_ended
from tritonstack.deployed.left import Deployed, LeftStack
from tritonstack.deployed.stacks import DeployedStack, of_environment, stack_of
from tritonstack.errors import WorkFailedError

POLL_SECONDS = 5.0
BEGIN_SECONDS = 60.0
"""How long a stack may have its old status after CloudFormation took the request to delete it."""
SHOWN_REASONS = 5


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """Stacks to delete, and those that are kept, with reasons."""

    stacks: tuple[LeftStack, ...]  # in order
    kept: tuple[tuple[LeftStack, str], ...] = ()  # those that left and cannot be deleted now, with the reason


def deletion_of(deployed: Deployed, *, archives: bool) -> Deletion:
    """The leftover stacks that may be deleted now.

    Kept are stacks that are at work or protected, that a stack which stays reads parameters of, and artifacts while any
    other stack of the environment stays, or where their buckets go with all archives and ``archives`` is False.
    """
    kept: dict[str, str] = {}
    while True:
        going = [each for each in deployed.left if each.stack.id not in kept]
        gone = {each.stack.id for each in going}
        staying = [each for each in deployed.stacks if each.id not in gone]
        reasons = {each.stack.id: _why_kept(each, staying, archives=archives) for each in going}
        found = {name: reason for name, reason in reasons.items() if reason}
        if not found:
            kept_stacks = tuple((each, kept[each.stack.id]) for each in deployed.left if each.stack.id in kept)
            return Deletion(stacks=tuple(going), kept=kept_stacks)
        kept |= found


def _why_kept(left: LeftStack, staying: Sequence[DeployedStack], *, archives: bool) -> str:
    """Why a stack cannot be deleted while the others stay; empty where it can."""
    stack = left.stack
    if stack.in_progress and stack.status != "DELETE_IN_PROGRESS":
        return f"it is {stack.status}: a deployment is running; wait until it has ended"
    if stack.protected:
        return (
            "its termination protection is on: aws cloudformation update-termination-protection "
            f"--no-enable-termination-protection --region {left.region} --stack-name {stack.name}"
        )
    users = stack.used_by(staying)
    if users:
        return f"{', '.join(users)} reads its parameters as it is deployed: deploy that first, or delete it"
    return _why_archives_kept(left, staying, archives=archives) if stack.kind == naming.ARTIFACTS else ""


def _why_archives_kept(left: LeftStack, staying: Sequence[DeployedStack], *, archives: bool) -> str:
    """Why an artifacts stack cannot be deleted; empty where it can."""
    others = [each.name for each in of_environment(staying, left.stack.environment)]
    if others:
        return f"{', '.join(others)} is deployed, and may need the bucket and its key"
    if left.emptied and not archives:
        return f"it deletes {', '.join(left.emptied)} with every archive in it: --archives allows that"
    return ""


class Shown(Protocol):
    """One step with progress."""

    def say(self, text: str) -> None:
        """Show the step's progress."""
        ...


class Deleter:
    """Deletes stacks and waits for them. What was begun goes on without it; the same command again follows it."""

    def __init__(
        self,
        session: Session,
        *,
        step: Callable[[str], AbstractContextManager[Shown]],
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """``session``: of the stacks' region. ``step``: shows a step by its name while the block runs."""
        self._cloudformation = session.client("cloudformation")
        self._step = step
        self._poll_seconds = poll_seconds
        self.running: list[str] = []  # names of the stacks whose deletion goes on

    def delete(self, stacks: Sequence[DeployedStack]) -> None:
        """Delete stacks in their order: those of a kind at once, the next kind when these are gone.

        Raises:
            WorkFailedError: one was not deleted, with CloudFormation's reasons; no further kind is begun then.
        """
        done: list[str] = []
        groups = [list(group) for _, group in groupby(stacks, key=lambda each: each.kind)]
        for number, group in enumerate(groups):
            failed: list[str] = []
            begun = [each for each in group if self._begin(each, failed)]
            self.running = [each.name for each in begun]
            for each in begun:
                try:
                    with self._step(f"delete {each.name}") as step:
                        self._wait(each, step)
                    done.append(each.name)
                except WorkFailedError as error:
                    if credentials_ended(error):
                        raise
                    failed.append(str(error))
                self.running.remove(each.name)
            if failed:
                later = [each.name for rest in groups[number + 1 :] for each in rest]
                raise WorkFailedError("\n".join(_summary(failed, done=done, later=later)))

    def _begin(self, stack: DeployedStack, failed: list[str]) -> bool:
        """Whether the deletion of a stack has begun; if not, why is added to ``failed``."""
        try:
            now = self._read(stack)
            if now is None or now.status in ("DELETE_COMPLETE", "DELETE_IN_PROGRESS"):
                return True
            if now.in_progress:
                failed.append(f"{stack.name}: it is {now.status} by now; wait until that has ended")
                return False
            self._cloudformation.delete_stack(StackName=stack.id)
        except (ClientError, BotoCoreError) as error:
            failed.append(f"{stack.name}: {error}")
            if credentials_ended(error):
                raise WorkFailedError(failed[-1]) from error
            return False
        return True

    def _wait(self, stack: DeployedStack, step: Shown) -> None:
        """Until a stack is gone. Raises WorkFailedError: its deletion failed."""
        until = time.monotonic() + BEGIN_SECONDS
        while True:
            try:
                now = self._read(stack)
                if now is None or now.status == "DELETE_COMPLETE":
                    return
                step.say(next(self._events(stack), now.status))
                if now.status == "DELETE_FAILED":
                    raise WorkFailedError("\n".join(self._failure(stack, now)))
            except (ClientError, BotoCoreError) as error:
                raise WorkFailedError(
                    f"{stack.name}: its deletion goes on, and could not be followed: {error}"
                ) from error
            if now.status == "DELETE_IN_PROGRESS":
                until = time.monotonic() + BEGIN_SECONDS
            elif time.monotonic() > until:
                raise WorkFailedError(f"{stack.name}: it is {now.status}, and its deletion did not begin")
            time.sleep(self._poll_seconds)

    def until_idle(self, stack: DeployedStack, step: Shown) -> str:
        """Wait until CloudFormation is no longer at work on a stack. Returns its status, DELETE_COMPLETE if it is gone.

        Raises WorkFailedError: it cannot be read.
        """
        while True:
            try:
                now = self._read(stack)
            except (ClientError, BotoCoreError) as error:
                raise WorkFailedError(f"{stack.name} could not be read: {error}") from error
            if now is None or not now.in_progress:
                return "DELETE_COMPLETE" if now is None else now.status
            step.say(next(self._events(stack), now.status))
            time.sleep(self._poll_seconds)

    def _read(self, stack: DeployedStack) -> DeployedStack | None:
        """A stack as it is now; None where CloudFormation no longer has it."""
        try:
            return stack_of(self._cloudformation.describe_stacks(StackName=stack.id)["Stacks"][0])
        except ClientError as error:
            if code_of(error) == "ValidationError" and "does not exist" in str(error):
                return None
            raise

    def _events(self, stack: DeployedStack) -> Iterator[str]:
        """The latest events of a stack, the newest first; none where the caller may not read them."""
        for row in self._rows(stack):
            yield f"{row['ResourceStatus']} {row['LogicalResourceId']} ({row['ResourceType']})"

    def _failure(self, stack: DeployedStack, now: DeployedStack) -> Iterator[str]:
        """Which resources kept a stack from being deleted, and what to do."""
        yield f"{stack.name}: {now.reason or now.status}"
        reasons: dict[str, str] = {}
        for row in self._rows(stack):
            if row["LogicalResourceId"] == stack.name and row["ResourceStatus"] == "DELETE_IN_PROGRESS":
                break  # events of earlier operations follow
            if row["ResourceStatus"] == "DELETE_FAILED" and row["LogicalResourceId"] != stack.name:
                what = f"{row['ResourceType']} {row.get('PhysicalResourceId') or row['LogicalResourceId']}"
                reasons.setdefault(what, row.get("ResourceStatusReason", "no reason given"))
        for what, reason in list(reasons.items())[:SHOWN_REASONS]:
            yield f"  {what}: {reason}"

    def _rows(self, stack: DeployedStack) -> list[Any]:
        """One page of events, the newest first."""
        try:
            return list(self._cloudformation.describe_stack_events(StackName=stack.id)["StackEvents"])
        except (ClientError, BotoCoreError):
            return []


def _summary(failed: Iterable[str], *, done: Sequence[str], later: Sequence[str]) -> Iterator[str]:
    """Summary of a deletion: deleted, failed and not started stacks."""
    yield from failed
    if done:
        yield f"  deleted: {', '.join(done)}"
    if later:
        yield f"  not begun: {', '.join(later)}"
    yield "  do:      fix that, then run the same command again: it goes on from here"


def goes_on(running: Iterable[str], *, what: str) -> str:
    """Message on what continues after Ctrl-C; empty where nothing runs. ``what``: "deletes", "updates"."""
    names = ", ".join(running)
    return f"CloudFormation {what} {names} to the end, without this command; run it again to follow" if names else ""
