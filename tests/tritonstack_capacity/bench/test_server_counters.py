"""Triton's own counters between loads, and what is said where they cannot be read."""

from __future__ import annotations

import socket

from tests.tritonstack_capacity.bench.world import Told
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.container import ADVICE, LocalContainer, ServerCounters

TEXT = """nv_inference_request_success{{model="m",version="1"}} {requests}
nv_inference_request_duration_us{{model="m",version="1"}} {us}
"""


class Container(LocalContainer):
    """Gives the texts that a test names, then none."""

    texts: list[str]

    def metrics(self) -> str:
        if not self.texts:
            raise WorkFailedError("port 8002 does not answer")
        return self.texts.pop(0)


def container(*texts: str) -> Container:
    made = Container(open_socket=socket.socket, enter=(), port=8080, metrics_port=8002, server_version=None)
    object.__setattr__(made, "texts", list(texts))
    return made


def test_each_load_has_what_was_counted_since_the_one_before() -> None:
    texts = [TEXT.format(requests=requests, us=us) for requests, us in ((10, 1000), (30, 41_000), (40, 51_000))]
    counters = ServerCounters(container(*texts), progress=Told())

    assert [(one.requests, one.request_ms) for one in counters.since()] == [(20, 2.0)]
    assert [(one.requests, one.request_ms) for one in counters.since()] == [(10, 1.0)]


def test_where_they_never_can_be_read_the_way_to_have_them_is_told_once() -> None:
    told = Told()
    counters = ServerCounters(container(), progress=told)

    assert [counters.since(), counters.since()] == [(), ()]
    assert told.notes == [f"without Triton's own figures: port 8002 does not answer\n  do: {ADVICE}"]


def test_a_server_that_is_gone_meanwhile_is_no_setting() -> None:
    told = Told()
    counters = ServerCounters(container(TEXT.format(requests=1, us=1)), progress=told)

    assert counters.since() == ()
    assert told.notes == ["without Triton's own figures: port 8002 does not answer"]


def test_in_the_cloud_there_are_none() -> None:
    told = Told()

    assert ServerCounters(None, progress=told).since() == ()
    assert not told.notes
