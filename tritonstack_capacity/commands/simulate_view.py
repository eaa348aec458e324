"""What ``tritonstack capacity simulate`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tritonstack_capacity.simulation.answer import Answer
from tritonstack_capacity.simulation.figures import PERCENTILES, Latencies
from tritonstack_capacity.simulation.holding import Holding
from tritonstack_capacity.simulation.sources import Source
from tritonstack_capacity.simulation.words import about, holding_sentence, sentences

NONE = "-"
MOST_SOURCES = 40
"""Rows of the table of figures; a scenario of many groups has them all in its JSON."""


def simulate_view(found: Answer) -> RenderableType:
    """Tables of calls and latencies, the rest in sentences, and what it rests on."""
    parts: list[RenderableType] = [Text(about(found)), _calls(found), _latencies(found)]
    parts += [Text(line) for line in sentences(found)]
    parts += [Text(holding_sentence(found)), ""]
    if found.holding is not None:
        agrees = found.compared is None or found.compared.agrees
        parts.append(_memory(found.holding, agrees=agrees))
    parts += [_sources(found.sources), Text("assumed:"), *(Text(f"- {line}") for line in found.assumptions)]
    return Group(*parts)


def _calls(found: Answer) -> Table:
    calls = found.calls
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    view.add_column("met")
    view.add_column("calls", justify="right")
    view.add_column("share", justify="right")
    rows = (
        ("a loaded model (hit)", calls.hits),
        ("a load or unload under way", calls.waited),
        ("began a load from the disk", calls.from_disk),
        ("began a download and a load", calls.downloaded),
    )
    for name, count in rows:
        view.add_row(name, f"{count:,}", f"{100 * count / calls.calls:.2f} %" if calls.calls else NONE)
    return view


def _latencies(found: Answer) -> Table:
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    view.add_column("latency, ms")
    for name in ("mean", *(f"p{percent}" for percent in PERCENTILES), "greatest"):
        view.add_column(name, justify="right")
    view.add_row("all calls", *_cells(found.calls.everyone))
    view.add_row("calls of loaded models", *_cells(found.calls.warm))
    return view


def _cells(each: Latencies) -> list[str]:
    values = [each.mean, *(each.percentiles.get(percent) for percent in PERCENTILES), each.greatest]
    return [NONE if value is None else f"{value:,.1f}" for value in values]


def _memory(found: Holding, *, agrees: bool) -> Table:
    title = "hit ratio with other sizes of an instance (memory, disk, most models), by Che's approximation"
    if not agrees:
        title += ", which is off here"
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    view.add_column("size")
    for scale, _ in found.by_memory:
        view.add_column(f"x {scale:g}", justify="right")
    view.add_row("hit ratio", *(f"{100 * ratio:.2f} %" for _, ratio in found.by_memory))
    return view


def _sources(found: Sequence[Source]) -> Table:
    more = f" (the first {MOST_SOURCES} of {len(found)}; --json has all)" if len(found) > MOST_SOURCES else ""
    title = f"where figures come from{more}"
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for name in ("figure", "value", "from"):
        view.add_column(name)
    for each in found[:MOST_SOURCES]:
        view.add_row(each.figure, each.value, each.origin)
    return view
