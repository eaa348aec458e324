"""The mark of a test whose clean-up has begun, and the steps that find it.

A cancelled execution runs no further state, but the step that it had called runs on, and may make packages or a job
while the clean-up looks, or after it. So the clean-up writes a mark before it looks, and a step that makes something
asks for the mark before it and once more after it: one of the two sees what the other did.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .plan import exists, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .services import Clients, Place

CLOSED = "closed.json"


class ClosedError(RuntimeError):
    """Nothing more may be made for a test: its clean-up has begun."""


class MadeTooLateError(ClosedError):
    """The clean-up began while a step made something, which may have escaped it."""


def close(clients: Clients, place: Place, test: str, *, why: str) -> None:
    """Write the mark. ``why``: the test is cleaned up, in words."""
    write(clients, place, test, CLOSED, json.dumps({"id": test, "why": why}, indent=1))


@contextmanager
def making(clients: Clients, place: Place, test: str) -> Iterator[None]:
    """Something is made for a test within.

    Raises:
        ClosedError: the test was closed before; nothing was made.
        MadeTooLateError: it was closed meanwhile; what was made is the caller's to remove.
    """
    if exists(clients, place, test, CLOSED):
        raise ClosedError(f"load test {test} is cleaned up: nothing more is made for it")
    try:
        yield
    finally:  # what failed may have made a part of it
        if exists(clients, place, test, CLOSED):
            raise MadeTooLateError(f"load test {test} was cleaned up while a step of it made something")
