"""Ports: free ones on demand, a message for each that cannot be had."""

from __future__ import annotations

import os
import socket

import pytest

from tritonstack.errors import InputError
from tritonstack_local.processes import choose_ports


def test_zero_takes_two_free_ports_that_differ() -> None:
    for _ in range(20):
        first, second = choose_ports(emulator=0, runtime=0)
        assert first != second
        assert min(first, second) > 0


def test_a_chosen_port_is_free_for_the_one_who_asked() -> None:
    first, second = choose_ports(emulator=0, runtime=0)
    assert choose_ports(emulator=first, runtime=second) == (first, second)


def test_every_taken_port_is_named_with_its_option() -> None:
    with socket.socket() as one, socket.socket() as other:
        for taken in (one, other):
            taken.bind(("127.0.0.1", 0))
            taken.listen()
        first, second = one.getsockname()[1], other.getsockname()[1]
        with pytest.raises(InputError) as raised:
            choose_ports(emulator=first, runtime=second)
        assert [problem.field for problem in raised.value.problems] == [f"--port {first}", f"--runtime-port {second}"]
        for problem in raised.value.problems:
            assert f"process {os.getpid()} (" in problem.found
            assert "TRITONSTACK_PORT=0" in problem.advice
            assert "TRITONSTACK_RUNTIME_PORT=0" in problem.advice
        assert all("in use" in problem.found for problem in raised.value.problems)
        with pytest.raises(InputError) as raised:
            choose_ports(emulator=0, runtime=second)
        assert [problem.field for problem in raised.value.problems] == [f"--runtime-port {second}"]


def test_a_port_that_listens_on_every_address_is_taken_too() -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))  # noqa: S104  (what another program does)
        taken.listen()
        with pytest.raises(InputError):
            choose_ports(emulator=taken.getsockname()[1], runtime=0)


def test_one_port_for_both_is_refused() -> None:
    free, _ = choose_ports(emulator=0, runtime=0)
    with pytest.raises(InputError, match="both are the same port"):
        choose_ports(emulator=free, runtime=free)
