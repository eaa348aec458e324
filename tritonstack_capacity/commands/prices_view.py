"""What ``tritonstack capacity prices`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.catalogue.prices import PRICES_FILE, HostingPrice, Prices, carried_prices, project_prices
from tritonstack_capacity.price_list.update import Change, Kind, Update
from tritonstack_capacity.price_list.uses import Use

WIDTH = 120
UNKNOWN = "not known"
KINDS: tuple[Kind, ...] = ("changed", "new", "not listed", "refused", "unchanged")


def show_prices(regions: Sequence[str], uses: Sequence[Use], *, project: Path) -> None:
    """Print what the environments take, then all that is known of their regions."""
    console = _console()
    own, carried = project_prices(project), carried_prices()
    if uses:
        console.print(_taken(uses))
    for region in regions:
        known = {**_of(region, carried), **_of(region, own)}
        if not known:
            console.print(
                f"{region}: no price is known; `tritonstack capacity prices update --region {region}` asks AWS"
            )
            continue
        console.print(_known(region, known, own=own))
        for number, source in enumerate(_sources(known), 1):
            console.print(f"[{number}] {source}", soft_wrap=True)
        console.print()
    _unknown(console, uses)


def show_update(found: Update, uses: Sequence[Use], *, file: Path, changed: bool) -> None:
    """Print what is another price now, what the list lacks, what of it is not clear, and where the prices are.

    ``uses``: of the environments, after the update.
    """
    console = _console()
    shown = sorted(
        (change for change in found.changes if change.kind != "unchanged"),
        key=lambda change: (change.region, _by_size(change.instance_type)),
    )
    if shown:
        table = _table("", ("region", "instance type", "USD an hour", "of", "now", ""))
        for change in shown:
            table.add_row(*map(Text, _cells(change)))
        console.print(table)
    for region, prices in sorted(found.prices.regions.items()):
        kinds = Counter(change.kind for change in found.changes if change.region == region)
        counts = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
        if counts:
            console.print(f"{region}: {counts}; Price List {prices.version}, published {prices.published}")
    refused = [f"{change.region} {change.instance_type}: {change.why}" for change in found.changes if change.why]
    for line in (*refused, *found.unreadable):
        click.echo(f"refused: {line}", err=True)
    if any(found.prices.regions[change.region].constructed for change in found.changes):
        click.echo("The local AWS answered: its prices are constructed, and show nothing of AWS's.")
    _unknown(console, uses)
    console.print(f"{file}: {'written; look at its diff, and commit it' if changed else 'unchanged'}", soft_wrap=True)


def _cells(change: Change) -> tuple[str, ...]:
    before, after = change.before, change.after
    stays = "kept as it was" if after is not None else UNKNOWN
    words: dict[Kind, str] = {
        "changed": _percent(before, after),
        "new": "new",
        "unchanged": "",
        "not listed": f"not listed, {stays}",
        "refused": f"refused, {stays}",
    }
    return (change.region, change.instance_type, _usd(before), _of_what(before), _usd(after), words[change.kind])


def _of_what(price: HostingPrice | None) -> str:
    """The date of a price, and its component where that is not hosting."""
    if price is None:
        return ""
    component = "" if price.component == "hosting" else f", component {price.component}"
    return f"{price.date or price.kind}{component}"


def _percent(before: HostingPrice | None, after: HostingPrice | None) -> str:
    if before is None or after is None:
        return ""
    old, new = (Decimal(str(each.usd_per_hour)) for each in (before, after))
    return f"{(new - old) / old * 100:+.2f} %"


def _known(region: str, known: Mapping[str, HostingPrice], *, own: Prices) -> Table:
    numbers = {source: number for number, source in enumerate(_sources(known), 1)}
    table = _table(f"known in {region}", ("instance type", "USD an hour", "component", "date", "from", "source"))
    for name, price in sorted(known.items(), key=lambda each: _by_size(each[0])):
        file = PRICES_FILE if (region, name) in own else "catalogue"
        row = (name, _usd(price), price.component, price.date or "no date", file, f"[{numbers[price.source]}]")
        table.add_row(*map(Text, row))
    return table


def _by_size(instance_type: str) -> tuple[str, int, str]:
    """Families by name, the types of one from small to large: ``xlarge``, ``2xlarge``, ``12xlarge``."""
    return instance_type.rpartition(".")[0], len(instance_type), instance_type


def _sources(prices: Mapping[str, HostingPrice]) -> list[str]:
    return sorted({price.source for price in prices.values()})


def _taken(uses: Iterable[Use]) -> Table:
    table = _table("what the environments take", ("endpoint", "region", "instance type", "USD an hour", "who says so"))
    for use in uses:
        who = "" if use.price is None else use.price.short
        table.add_row(
            *map(Text, (f"{use.environment}/{use.endpoint}", use.region, use.instance_type, _usd(use.price), who))
        )
    return table


def _unknown(console: Console, uses: Sequence[Use]) -> None:
    who: dict[tuple[str, str], list[str]] = {}
    for use in uses:
        if use.price is None:
            who.setdefault((use.instance_type, use.region), []).append(f"{use.environment}/{use.endpoint}")
    for (name, region), endpoints in sorted(who.items()):
        update = f"tritonstack capacity prices update --region {region}"
        console.print(
            f"{UNKNOWN}: {name} in {region}, of {', '.join(endpoints)}: `{update}`, "
            f"or `prices: {{{name}: …}}` in the environment's file",
            soft_wrap=True,
        )


def _of(region: str, prices: Prices) -> dict[str, HostingPrice]:
    return {name: price for (where, name), price in prices.items() if where == region}


def _usd(price: HostingPrice | None) -> str:
    return UNKNOWN if price is None else f"{Decimal(str(price.usd_per_hour)).normalize():f}"


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left")
    for column in columns:
        amount = column.startswith("USD") or column == "now"
        table.add_column(column, overflow="fold", justify="right" if amount else "left")
    return table


def _console() -> Console:
    console = Console(highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else Console(width=WIDTH, highlight=False, markup=False, emoji=False)
