"""Triton's own counters of a local container, read between loads."""

from __future__ import annotations

from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.container import LocalContainer
from tritonstack_capacity.bench.progress import Progress
from tritonstack_capacity.bench.triton_statistics import Counters, ServerFigures, between, read_counters

ADVICE = "container: {allow_metrics: true} in the environment file"
"""Where they never could be read."""


class ServerCounters:
    """Gives what was counted since it was asked last; nothing where nothing can be read."""

    def __init__(self, container: LocalContainer | None, *, progress: Progress) -> None:
        """Read them for the first time; ``container`` None: there is none, as in the cloud."""
        self._container = container
        self._progress = progress
        self._before: Counters | None = None
        self._before = self._read()

    def since(self) -> tuple[ServerFigures, ...]:
        """What was counted meanwhile, the busiest model first."""
        before, after = self._before or {}, self._read()
        self._before = after
        return between(before, after)

    def _read(self) -> Counters:
        """None where the metrics are off, as SageMaker's script has them unless told; that is said once."""
        if self._container is None:
            return {}
        try:
            return read_counters(self._container.metrics())
        except WorkFailedError as error:
            self._container = None
            never = "" if self._before is not None else f"\n  do: {ADVICE}"
            self._progress.note(f"without Triton's own figures: {error}{never}")
            return {}
