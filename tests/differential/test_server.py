"""What the judge does where the server crashes over an unload: constructed containers, no Triton."""

from __future__ import annotations

import signal
from concurrent.futures import Future
from typing import cast

import pytest

from tests.differential.bases import CHAIN
from tests.differential.server import Answer, Server
from tests.differential.tables import Mutation
from tritonstack_local.container import TritonContainer

SOUND = Mutation("sound", CHAIN)


class Ended:
    """A container that has ended with an exit code."""

    def __init__(self, code: int) -> None:
        self.exited: Future[int] = Future()
        self.exited.set_result(code)
        self.alive = False


class CrashesOverUnload(Server):
    """Loads everything, and ends at the first unload."""

    def load_laid_out(self, lay_out: object, *, seconds: float = 1.0) -> tuple[Answer, str]:
        return Answer(accepted=True, told=""), "0" * 16

    def _call(self, method: str, path: str, body: object, *, of: str, seconds: float) -> tuple[int, str]:
        raise ConnectionResetError(f"{method} {path}")


def _server(code: int) -> Server:
    return CrashesOverUnload(cast(TritonContainer, Ended(code)))


def test_a_load_that_was_judged_stands_where_the_server_crashes_over_the_unload() -> None:
    server = _server(128 + signal.SIGSEGV)
    assert server.load(SOUND).accepted
    assert server.ended


def test_a_server_that_ends_otherwise_over_an_unload_is_told() -> None:
    with pytest.raises(ConnectionError, match="DELETE"):
        _server(128 + signal.SIGKILL).load(SOUND)
