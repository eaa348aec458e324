"""The published claims, tried on the local Triton: ``python -m benchmarks.measurements [SCENARIO …] [--write]``.

Each scenario serves one model in several ways, in a container of its own each, straight at SageMaker's front end, with
the load generator of `tritonstack bench`. The table goes to the terminal, the figures to ``.local/bench``;
``--write`` puts the table into ``docs/measurements.md``, between its two marks.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.results import RESULTS
from benchmarks.scenarios.served import RULE, TIMING, Measured, Variant, measure
from benchmarks.scenarios.variants import SCENARIOS, Scenario
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
            found: list[tuple[Variant, Measured]] = []
            try:
                for variant in scenario.variants(Path(folder)):
                    found.append((variant, measure(variant)))
                    print(f"{name}: {variant.name}: {_said(found[-1][1])}", flush=True)
            except TritonstackError as error:
                print(f"{name}: {error}", flush=True)
                failed = True
            lines += [*_table(scenario, found), ""]
            rows += [{"scenario": name, "variant": one.name, **dataclasses.asdict(got)} for one, got in found]
    text = "\n".join([_machine_line(stated), "", *lines])
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "measurements.json").write_text(json.dumps({"stated": stated, "rows": rows}, indent=2) + "\n")
    print(text)
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
    lines = [f"### {scenario.title}", "", f"Claim: {scenario.claim}", ""]
    if not found:
        return [*lines, "Could not be measured."]
    loaded = any(got.point is not None for _, got in found)
    head = ["configuration"]
    head += ["users", "answers/s", "± %", "times first", "p50 ms", "p95 ms", "mean batch"] if loaded else []
    head += ["unpack s", "load s", "first call ms", "cold start s"]
    lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    first = found[0][1].point
    for variant, got in found:
        cells = [variant.name]
        if loaded:
            cells += _load_cells(variant, got, base=None if first is None else first.all.per_minute)
        cells += [f"{got.unpack_seconds:.2f}", f"{got.load_seconds:.2f}", f"{got.first_call_seconds * 1000:.1f}"]
        lines.append(f"| {' | '.join([*cells, f'{got.cold_seconds:.2f}'])} |")
    return [*lines, "", scenario.remark]


def _load_cells(variant: Variant, got: Measured, *, base: float | None) -> list[str]:
    if got.point is None:
        return [""] * 7
    all_, share = got.point.all, got.point.agreement.per_minute.share
    return [
        str(variant.users),
        f"{all_.per_minute / 60:.1f}",
        "" if share is None else f"{share * 100:.0f}{'' if got.point.agreement.stable else ' (unstable)'}",
        "" if not base else f"{all_.per_minute / base:.2f}",
        f"{all_.percentiles_ms[50.0]:.1f}",
        f"{all_.percentiles_ms[95.0]:.1f}",
        "" if got.server is None else f"{got.server.mean_batch:.1f}",
    ]


def _said(got: Measured) -> str:
    rate = "" if got.point is None else f"{got.point.all.per_minute / 60:.1f}/s, "
    return f"{rate}cold start {got.cold_seconds:.2f} s"


if __name__ == "__main__":
    print(f"rounds of {TIMING.round:g} s, {RULE.least} to {RULE.most} of them")
    sys.exit(main(sys.argv[1:]))
