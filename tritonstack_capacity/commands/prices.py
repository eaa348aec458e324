"""``tritonstack capacity prices``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from botocore.exceptions import NoCredentialsError, PartialCredentialsError
from rich.console import Console
from rich.table import Table

from tritonstack.aws.read_only import NotKnownError, ReadOnlyCalls
from tritonstack.aws.session import AccountSession
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.price_file import PRICES_FILE, project_prices, read_price_file
from tritonstack.catalogue.prices import HostingPrice, Prices, carried_prices
from tritonstack.cli.conventions import echo, json_option, print_json, result_console
from tritonstack.cli.progress import Steps
from tritonstack.cli.root import SuggestingGroup
from tritonstack.config import EndpointSettings, Environment, load_environments
from tritonstack.errors import InputError, Problem, WorkFailedError, listing, nearest, refuse
from tritonstack.paths import find_project, project_folder, write_text
from tritonstack_capacity.commands import text_table
from tritonstack_capacity.price_list import API_REGION, Update, hosting_documents, price_file_text, updated

UNKNOWN = "not known"


def show_prices(regions: Sequence[str], environments: Sequence[Environment], *, project: Path | None) -> None:
    """Print the prices that the environments use, then all known prices of their regions."""
    console = result_console()
    own = project_prices(project)
    if environments:
        console.print(_taken(environments))
    for region in regions:
        known = _known_in(region, own)
        if not known:
            console.print(
                f"{region}: no price is known; `tritonstack capacity prices update --region {region}` asks AWS"
            )
            continue
        console.print(_known(region, known, own=own))
        for number, source in enumerate(_sources(known), 1):
            console.print(f"[{number}] {source}", soft_wrap=True)
        console.print()
    _unknown(console, environments)


def prices_document(
    regions: Sequence[str], environments: Sequence[Environment], *, project: Path | None
) -> dict[str, Any]:
    """Output of ``--json``: the endpoints' prices, and every known price of the regions."""
    own = project_prices(project)
    return {
        "endpoints": [
            {
                "environment": each.environment,
                "endpoint": endpoint.name,
                "region": each.region,
                "instance_type": kind,
                "price": None if (price := each.price(kind)) is None else asdict(price),
            }
            for each in environments
            for endpoint in each.endpoints
            for kind in _types(endpoint)
        ],
        "regions": {
            region: {name: asdict(price) for name, price in _known_in(region, own).items()} for region in regions
        },
    }


def show_update(found: Update, regions: Sequence[str], environments: Sequence[Environment], *, file: Path) -> None:
    """Print how many prices each region has, what of the lists is gone or not clear, and where the prices are."""
    console = result_console()
    for region in regions:
        prices = found.prices.regions[region]
        source = f"Price List {prices.version}, published {prices.published}"
        console.print(f"{region}: {len(prices.types)} prices; {source}", soft_wrap=True)
    for line in found.delisted:
        console.print(f"listed no longer, kept as it was: {line}", soft_wrap=True)
    for line in found.refused:
        echo(f"refused: {line}", err=True)
    _unknown(console, environments)
    console.print(f"{file}: look at its diff, and commit it", soft_wrap=True)


def _known(region: str, known: Mapping[str, HostingPrice], *, own: Prices) -> Table:
    numbers = {source: number for number, source in enumerate(_sources(known), 1)}
    rows = []
    for name, price in sorted(known.items(), key=lambda each: _by_size(each[0])):
        file = PRICES_FILE if (region, name) in own else "catalogue"
        rows.append((name, _usd(price), price.component, price.date or "no date", file, f"[{numbers[price.source]}]"))
    columns = ("instance type", "USD an hour", "component", "date", "from", "source")
    return text_table(columns, rows, title=f"known in {region}", left=(0, 2, 3, 4, 5))


def _types(endpoint: EndpointSettings) -> tuple[str, ...]:
    """Every instance type that an endpoint may run on, each once."""
    return tuple(dict.fromkeys(each.instance_type for each in endpoint.type_settings))


def _by_size(instance_type: str) -> tuple[str, int, str]:
    """Families by name, the types of one from small to large: ``xlarge``, ``2xlarge``, ``12xlarge``."""
    return instance_type.rpartition(".")[0], len(instance_type), instance_type


def _sources(prices: Mapping[str, HostingPrice]) -> list[str]:
    return sorted({price.source for price in prices.values()})


def _taken(environments: Iterable[Environment]) -> Table:
    rows = []
    for each in environments:
        for endpoint in each.endpoints:
            for kind in _types(endpoint):
                price = each.price(kind)
                name, who = f"{each.environment}/{endpoint.name}", "" if price is None else price.short
                rows.append((name, each.region, kind, _usd(price), who))
    columns = ("endpoint", "region", "instance type", "USD an hour", "who says so")
    return text_table(columns, rows, title="what the environments take", left=(0, 1, 2, 4))


def _unknown(console: Console, environments: Sequence[Environment]) -> None:
    who: dict[tuple[str, str], list[str]] = {}
    for each in environments:
        for endpoint in each.endpoints:
            for kind in _types(endpoint):
                if each.price(kind) is None:
                    who.setdefault((kind, each.region), []).append(f"{each.environment}/{endpoint.name}")
    for (name, region), endpoints in sorted(who.items()):
        update = f"tritonstack capacity prices update --region {region}"
        console.print(
            f"{UNKNOWN}: {name} in {region}, of {', '.join(endpoints)}: `{update}`, "
            f"or `prices: {{{name}: …}}` in the environment's file",
            soft_wrap=True,
        )


def _known_in(region: str, own: Prices) -> dict[str, HostingPrice]:
    """Instance type → price; the project's own go before the catalogue's."""
    return {name: price for (where, name), price in {**carried_prices(), **own}.items() if where == region}


def _usd(price: HostingPrice | None) -> str:
    return UNKNOWN if price is None else f"{Decimal(str(price.usd_per_hour)).normalize():f}"


region_option = click.option(
    "--region", "regions", multiple=True, help="AWS region. May be repeated.  [default: the environments']"
)


@click.group(
    "prices",
    epilog="example: tritonstack capacity prices list --region us-east-1",
    cls=SuggestingGroup,
    invoke_without_command=True,
)
@json_option()
@click.pass_context
def command(context: click.Context, /, *, as_json: bool) -> None:
    """Show what an instance of an endpoint costs an hour, or update it from AWS's Price List. Without COMMAND, list."""
    if context.invoked_subcommand is None:
        context.invoke(list_prices, regions=(), as_json=as_json)


@command.command("list", epilog="example: tritonstack capacity prices list --region us-east-1")
@region_option
@json_option()
def list_prices(*, regions: Sequence[str], as_json: bool) -> None:
    """Show known prices with source and date, and those that the environments' endpoints use.

    Reads only files.
    """
    chosen, loaded = _chosen(regions)
    if as_json:
        print_json(prices_document(chosen, loaded, project=find_project()))
    else:
        show_prices(chosen, loaded, project=find_project())


@command.command("update", epilog="example: tritonstack capacity prices update --region eu-west-1")
@region_option
def update(*, regions: Sequence[str]) -> int:
    """Update the project's prices.json from AWS's Price List: on-demand prices of endpoints' instances.

    Every command prefers the file's prices to the catalogue's. Review the file and commit it.
    Needs the permission pricing:GetProducts.
    Ends with 1 where a price of the list is not clear: its earlier value stays.
    """
    file = project_folder() / PRICES_FILE
    old = read_price_file(file) if file.exists() else None
    chosen, loaded = _chosen(regions)
    calls = ReadOnlyCalls(AccountSession(API_REGION))
    with Steps().step("AWS Price List") as step:
        answers = {}
        for region in chosen:
            step.say(region)
            try:
                answers[region] = hosting_documents(calls, region=region)
            except NotKnownError as error:
                raise _no_answer(error) from error
        step.end_with(f"{sum(map(len, answers.values()))} products of {', '.join(chosen)}")
    found = updated(old, answers, types=tuple(load_catalogue().instances))
    text = price_file_text(found.prices)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        write_text(file, text)
    show_update(found, chosen, loaded, file=file)
    return 1 if found.refused else 0


def _chosen(regions: Sequence[str]) -> tuple[tuple[str, ...], tuple[Environment, ...]]:
    """The regions that are meant, and the project's environments in them.

    Raises InputError: no region is named, and the working folder is in no project.
    """
    known = load_catalogue().regions
    wrong = [
        Problem(
            field="--region",
            found=region,
            allowed=f"regions of SageMaker: {listing(known)}",
            advice=nearest(region, known),
        )
        for region in regions
        if region not in known
    ]
    refuse(wrong)
    project = find_project() if regions else project_folder()
    folder = project / "environments" if project else None
    loaded = load_environments(folder) if folder and (not regions or any(folder.glob("*.yaml"))) else ()
    chosen = tuple(sorted({*regions} or {each.region for each in loaded}))
    return chosen, tuple(each for each in loaded if each.region in chosen)


def _no_answer(error: NotKnownError) -> InputError | WorkFailedError:
    if isinstance(error.__cause__, NoCredentialsError | PartialCredentialsError):
        allowed = "credentials that boto3 can use, of any account"
        advice = "Choose them (AWS_PROFILE); they need the permission pricing:GetProducts."
        return InputError([Problem(field="AWS settings", found=error.found, allowed=allowed, advice=advice)])
    return WorkFailedError(f"{error.found}\n  do: {error.advice} Nothing is written.")
