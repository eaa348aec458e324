"""The two loopback ports of a local AWS."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from tritonstack.errors import InputError, Problem

LOOPBACK = "127.0.0.1"


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
                        found=same or f"{error.strerror} on {LOOPBACK}",
                        allowed="a free port",
                        advice="tritonstack up --port 0 --runtime-port 0 takes free ones",
                    )
                )
            else:
                chosen.append(int(probe.getsockname()[1]))
    if problems:
        raise InputError(problems)
    return chosen[0], chosen[1]
