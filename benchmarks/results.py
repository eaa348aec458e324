"""What a benchmark found: figures against the bounds they must keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from tritonstack_capacity.bench import bench
from tritonstack_capacity.bench.bench import versions


@dataclass(frozen=True)
class Figure:
    """What was measured, in words and in ``unit``, and the most (or least) that it must keep; None: no bound."""

    what: str
    value: float
    unit: str
    bound: float | None = None
    at_least: bool = field(default=False, kw_only=True)

    @property
    def verdict(self) -> str:
        """``PASS``, ``FAIL``, or nothing without a bound."""
        if self.bound is None:
            return ""
        return "PASS" if (self.value >= self.bound if self.at_least else self.value <= self.bound) else "FAIL"


def machine() -> dict[str, str]:
    """The machine that the figures are of, and the commit of the code."""
    known = versions()
    return {**bench.machine(), "python": known["python"], "commit": known["commit"]}


def tell(name: str, figures: Sequence[Figure], *, machine: Mapping[str, str]) -> int:
    """Print the figures. Returns 0 where every bound is kept, else 1."""
    table = Table("figure", "value", "bound", "", title=name, title_justify="left")
    for figure in figures:
        colour = {"PASS": "green", "FAIL": "red", "": ""}[figure.verdict]
        value = f"{figure.value:,.0f} {figure.unit}" if figure.value >= 1000 else f"{figure.value:.3g} {figure.unit}"
        bound = "" if figure.bound is None else f"{'≥' if figure.at_least else '≤'} {figure.bound:g} {figure.unit}"
        table.add_row(figure.what, value, bound, figure.verdict, style=colour)
    console = Console(highlight=False)
    console.print(table)
    console.print(", ".join(f"{key} {value}" for key, value in machine.items()), soft_wrap=True)
    return 1 if any(figure.verdict == "FAIL" for figure in figures) else 0
