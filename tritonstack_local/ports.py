"""The two loopback ports of a local AWS."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from tritonstack.errors import InputError, Problem
from tritonstack_local.orphans import listener_on

LOOPBACK = "127.0.0.1"
FREE_ONES = (
    "tritonstack local up --port 0 --runtime-port 0 takes free ones; so do the variables TRITONSTACK_PORT=0 and "
    "TRITONSTACK_RUNTIME_PORT=0, for make demo too"
)


def choose_ports(*, emulator: int, runtime: int) -> tuple[int, int]:
    """The ports of the AWS APIs and of InvokeEndpoint; 0 takes a free one.

    Raises:
        InputError: a port is taken or not permitted, or both are the same; every such problem.
    """
    problems, chosen = [], []
    with ExitStack() as held:  # until both are chosen, so that they differ
        for option, port in (("--port", emulator), ("--runtime-port", runtime)):
            probe = held.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
                probe.listen()
            except OSError as error:
                same = "both are the same port" if port in chosen else None
                problems.append(
                    Problem(
                        field=f"{option} {port}",
                        found=same or _taken(port, error.strerror or str(error)),
                        allowed="a free port",
                        advice=FREE_ONES,
                    )
                )
            else:
                chosen.append(int(probe.getsockname()[1]))
    if problems:
        raise InputError(problems)
    return chosen[0], chosen[1]


def _taken(port: int, why: str) -> str:
    """Why a port cannot be had, and who has it where that can be seen."""
    holder = listener_on(port)
    return f"{why} on {LOOPBACK}" + (f": {holder}" if holder else "")
