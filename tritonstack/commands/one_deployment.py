"""Deployments to the local AWS one after the other: two at once would write the same templates and stacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tritonstack.commands.progress import Steps
from tritonstack.paths import LocalPaths
from tritonstack_local.record import exclusive

LOCK = "deployment.lock"
WAITING = "waiting for another deploy-local or destroy-local"


@contextmanager
def one_deployment(steps: Steps) -> Iterator[None]:
    """Hold the deployments' lock; while another command holds it, a step says that this one waits.

    Raises:
        InputError: nothing can be written to the state folder.
    """
    with ExitStack() as held:
        with ExitStack() as waiting:
            lock = exclusive(
                LocalPaths.from_environment(),
                name=LOCK,
                report=lambda _: waiting.enter_context(steps.step(WAITING)),
            )
            held.enter_context(lock)
        yield
