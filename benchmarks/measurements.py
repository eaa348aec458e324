"""The published claims, tried on the local Triton: ``python -m benchmarks.measurements [SCENARIO …] [--write]``.

Each scenario serves one model in several ways, in a container of its own each, straight at SageMaker's front end, with
the load generator of `tritonstack bench`. The ways take turns. Tables go to the terminal, figures to ``.local/bench``;
``--write`` puts the table into ``docs/measurements.md``, between its two marks.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.results import RESULTS
from benchmarks.scenarios.served import CONFIDENCE, Load, Measured, Variant, measure
from benchmarks.scenarios.variants import SCENARIOS, Scenario
from tritonstack.bench.confidence import mean_interval
from tritonstack.bench.machine import machine, versions
from tritonstack.errors import TritonstackError
from tritonstack.local.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "measurements.md"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
QUIET = 0.5
"""Load before, above which figures are marked: something else ran on this machine."""


def main(arguments: Sequence[str]) -> int:
    """Run the named scenarios, or all. Returns the exit code."""
    names = [name for name in arguments if name != "--write"]
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        print(f"no scenario is called {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
        return 2
    stated = {**machine(), **versions(), "measured": datetime.now(UTC).isoformat(timespec="minutes")}
    lines: list[str] = []
    rows = []
    failed = False
    with tempfile.TemporaryDirectory(prefix="measurements-") as folder:
        for name in names or SCENARIOS:
            scenario = SCENARIOS[name]
            try:
                variants = list(scenario.variants(Path(folder)))
                found = list(zip(variants, measure(variants), strict=True))
            except TritonstackError as error:
                print(f"{name}: {error}", flush=True)
                failed = True
                continue
            table = [*_table(scenario, found), ""]
            print("\n".join(table), flush=True)
            lines += table
            rows += [{"scenario": name, "variant": one.name, **dataclasses.asdict(got)} for one, got in found]
    text = "\n".join([_machine_line(stated), "", *lines])
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "measurements.json").write_text(json.dumps({"stated": stated, "rows": rows}, indent=2) + "\n")
    if "--write" in arguments and not failed:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
    return 1 if failed else 0


def _machine_line(stated: dict[str, str]) -> str:
    busy = float(stated["load_before"]) > QUIET
    beside = (
        f" **Taken beside other load** ({stated['load_before']} before): compare within a table only." if busy else ""
    )
    return (
        f"{stated['processor']}, {stated['cores']} cores, {stated['memory']}, {stated['system']}, no GPU; "
        f"{stated['measured']}, commit {stated['commit']}.{beside}"
    )


def _table(scenario: Scenario, found: Sequence[tuple[Variant, Measured]]) -> list[str]:
    first = found[0][1].load
    head = ["configuration"]
    head += [] if first is None else ["users", "answers/s", "± %", "times first", "p50 ms", "p95 ms", "mean batch"]
    head += ["unpack s", "load s", "first call ms", "cold start s"]
    lines = [f"### {scenario.title}", "", f"Claim: {scenario.claim}", ""]
    lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for variant, got in found:
        cells = [variant.name]
        if first is not None and got.load is not None:
            cells += _load_cells(variant, got.load, first)
        parts = (got.median(lambda one: one.unpack), got.median(lambda one: one.load))
        cells += [f"{value:.2f}" for value in parts]
        cells += [f"{got.median(lambda one: one.first_call) * 1000:.1f}", f"{got.median(lambda one: one.whole):.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _load_cells(variant: Variant, got: Load, first: Load) -> list[str]:
    """The ratio is the median of the turns' own ratios, with the least and the most of them."""
    share = mean_interval(got.rates, confidence=CONFIDENCE).share
    ratios = [own / others for own, others in zip(got.rates, first.rates, strict=True)]
    spread = "" if got is first else f" ({min(ratios):.2f} to {max(ratios):.2f})"
    return [
        str(variant.users),
        f"{statistics.median(got.rates):.1f}",
        "" if share is None else f"{share * 100:.0f}",
        f"{statistics.median(ratios):.2f}{spread}",
        f"{got.p50_ms:.1f}",
        f"{got.p95_ms:.1f}",
        "" if got.mean_batch is None else f"{got.mean_batch:.1f}",
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
