"""Triton's own counters of a local container, read between loads."""

from __future__ import annotations

from tritonstack.bench.container import LocalContainer
from tritonstack.bench.progress import Progress
from tritonstack.bench.triton_statistics import Counters, ServerFigures, between, read_counters
from tritonstack.errors import WorkFailedError


class ServerCounters:
    """Gives what was counted since it was asked last; nothing where nothing can be read."""

    def __init__(self, container: LocalContainer | None, *, progress: Progress) -> None:
        """Read them for the first time; ``container`` None: there is none, as in the cloud."""
        self._container = container
        self._progress = progress
        self._before = self._read()

    def since(self) -> tuple[ServerFigures, ...]:
        """What was counted meanwhile, the busiest model first."""
        before, self._before = self._before, self._read()
        return between(before, self._before)

    def _read(self) -> Counters:
        """None where the metrics are off, as SageMaker's script has them unless told; that is said once."""
        if self._container is None:
            return {}
        try:
            return read_counters(self._container.metrics())
        except WorkFailedError as error:
            self._container = None
            advice = "container: {allow_metrics: true} in the environment file"
            self._progress.note(f"without Triton's own figures: {error}\n  do: {advice}")
            return {}
