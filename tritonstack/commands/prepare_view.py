"""What ``tritonstack prepare`` prints: lines while it works, a table or JSON at the end."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from tritonstack.engines.preparation import Failure, Place, PreparationPlan, Prepared, PrepareSummary

LOG_SECONDS = 15.0
"""How often at most an archive that is at the same thing adds a line."""


class ArchiveLines:
    """A line whenever an archive is at something new, and now and then while it is at it; from any thread."""

    def __init__(self, console: Console | None = None, *, log_seconds: float = LOG_SECONDS) -> None:
        """Lines go to standard error, so that a command's own output stays clean."""
        self._console = console or Console(stderr=True, highlight=False)
        self._log_seconds = log_seconds
        self._started = time.monotonic()
        self._said: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def say(self, archive: str, text: str) -> None:
        """An archive is at this; only numbers that change are nothing new."""
        kind, now = re.sub(r"[\d.,]+", "", text), time.monotonic()
        with self._lock:
            before, when = self._said.get(archive, ("", 0.0))
            if not text or (kind == before and now - when < self._log_seconds):
                return
            self._said[archive] = (kind, now)
            line = Text.assemble((f"{now - self._started:6.0f} s  ", "dim"), (archive, "bold"), f"  {text}")
            self._console.print(line, soft_wrap=True)


def planned_lines(plan: PreparationPlan) -> list[str]:
    """What would be done, a line for each archive and place."""
    lines = [f"{item.place.archive(item.name)}  {item.outcome}" for item in plan.there]
    lines += [f"{copy.place.archive(copy.name)}  copy from {copy.source.archive(copy.name)}" for copy in plan.copies]
    for build in plan.builds:
        how = f"build, engine on {build.builder.machine.name}" if build.builder else "build"
        lines += [f"{place.archive(build.name)}  {how}" for place in build.places]
    return [*sorted(lines), *map(str, plan.refused)]


def planned_document(plan: PreparationPlan) -> dict[str, Any]:
    """The same for programs."""
    rows = [_row(item.name.model, item.name.digest, item.place) | {"outcome": item.outcome} for item in plan.there]
    for copy in plan.copies:
        source = copy.source.archive(copy.name)
        rows.append(_row(copy.name.model, copy.name.digest, copy.place) | {"outcome": "copy", "from": source})
    for build in plan.builds:
        machine = build.builder.machine.name if build.builder else None
        rows += [
            _row(build.name.model, build.name.digest, place) | {"outcome": "build", "machine": machine}
            for place in build.places
        ]
    return {"archives": rows, "failed": _failed(plan.refused)}


def prepared_document(summary: PrepareSummary, failures: Sequence[Failure] = ()) -> dict[str, Any]:
    """What was done, for programs."""
    return {
        "bucket": summary.bucket,
        "archives": [_prepared(item) for item in summary.archives],
        "failed": _failed(failures),
    }


def _prepared(item: Prepared) -> dict[str, Any]:
    return {
        **_row(item.name.model, item.name.digest, item.place),
        "outcome": item.outcome,
        "seconds": round(item.seconds, 1),
        "from": item.source.archive(item.name) if item.source else None,
        "engines": [
            {"model": engine.model, "machine": engine.machine, "seconds": engine.seconds} for engine in item.engines
        ],
    }


def _row(model: str, digest: str, place: Place) -> dict[str, Any]:
    return {"endpoint": place.endpoint, "platform": str(place.platform), "model": model, "digest": digest}


def _failed(failures: Sequence[Failure]) -> list[dict[str, str]]:
    return [
        {"phase": one.phase, "model": one.name.model, "digest": one.name.digest, "reason": one.reason}
        for one in failures
    ]
