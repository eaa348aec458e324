"""A model on an instance: loading, loaded, or on its way out, with the calls that wait for it."""

from __future__ import annotations

from collections import deque
from enum import Enum

from tritonstack_capacity.simulation.model_table import ModelKind


class State(Enum):
    """Where it is in its life. RETIRING: it takes no new calls, so that it becomes idle."""

    LOADING = "loading"
    LOADED = "loaded"
    RETIRING = "retiring"
    UNLOADING = "unloading"


class HeldModel:
    """One model of one instance.

    Attributes:
        model, kind: which one.
        queue: calls that wait for an execution (numbers in the trace).
        late: calls that came while it was on its way out; they make it load again.
        running: executions under way, at most ``kind.copies``.
        in_flight: calls in ``queue`` and under way.
        backlog: those of them that came before it was loaded; counted from the end of the load on.
        in_line: whether it waits for its turn on the GPU.
        timed: whether the end of its batching delay is planned.
    """

    __slots__ = (
        "backlog",
        "in_flight",
        "in_line",
        "kind",
        "late",
        "model",
        "queue",
        "running",
        "state",
        "timed",
    )

    def __init__(self, model: int, kind: ModelKind) -> None:
        """It is about to be loaded."""
        self.model = model
        self.kind = kind
        self.state = State.LOADING
        self.queue: deque[int] = deque()
        self.late: list[int] = []
        self.running = 0
        self.in_flight = 0
        self.backlog = 0
        self.in_line = False
        self.timed = False
