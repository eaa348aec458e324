"""Loads by perf_analyzer, as points like those of the own client."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.analyser_way import AnalyserWay
from tritonstack_capacity.bench.budget import Budget
from tritonstack_capacity.bench.figures import SHARES, figures
from tritonstack_capacity.bench.load import Load, Rate, Users
from tritonstack_capacity.bench.measuring import Point
from tritonstack_capacity.bench.perf_analyzer import UNSTABLE, Analysed, arguments, find_program, read_export, run
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.bench.stability import agreement


class Analyser:
    """Measures loads on one model. Needs the program: see ``find_program``.

    Attributes:
        version: of perf_analyzer, once it has measured.
    """

    def __init__(self, settings: BenchSettings, way: AnalyserWay, *, budget: Budget) -> None:
        """``budget``: its calls are counted after each load, since perf_analyzer takes no such number."""
        self.version = ""
        self._settings = settings
        self._way = way
        self._budget = budget

    async def level(self, load: Load) -> Point | None:
        """One load; its rounds are perf_analyzer's last measurements. None where the budget is spent.

        Where its measurements never agree, three are taken as they come: the point then says that it is not stable.

        Raises:
            WorkFailedError: it measured nothing, or time is over.
        """
        if self._budget.spent:
            return None
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            data, export = Path(name) / "input.json", Path(name) / "export.json"
            data.write_text(self._way.data)
            last = await self._run(arguments(load, self._settings, data=data, export=export))
            if UNSTABLE in last:
                last = await self._run(arguments(load, self._settings, data=data, export=export, whatever_comes=True))
            if not export.is_file():
                raise WorkFailedError(f"perf_analyzer, {load.name}: {last}")
            found = read_export(export.read_text())
        self.version = found.version
        self._budget.count(len(found.samples))  # also where time ran out meanwhile: they were made
        return self._point(load, found)

    async def _run(self, options: list[str]) -> str:
        command = [*self._way.enter, str(find_program()), *self._way.options, *options]
        return await run(command, seconds=self._budget.seconds)

    def _point(self, load: Load, found: Analysed) -> Point:
        shares = tuple(sorted({*SHARES, self._settings.rule.percentile}))
        part = found.samples.part()
        rounds = [figures(part, begin=begin, end=end, shares=shares) for begin, end in itertools.pairwise(found.cuts)]
        return Point(
            load=load.name,
            users=load.count if isinstance(load, Users) else None,
            rate_per_second=load.per_second if isinstance(load, Rate) else None,
            rounds=tuple(rounds),
            all=figures(part, begin=found.cuts[0], end=found.cuts[-1], shares=shares),
            agreement=agreement(rounds, self._settings.rule),
            failures=dict(found.samples.failures),
        )
