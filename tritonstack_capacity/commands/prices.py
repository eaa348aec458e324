"""``tritonstack capacity prices``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from botocore.exceptions import NoCredentialsError, PartialCredentialsError

from tritonstack.catalogue import load_catalogue, partition
from tritonstack.catalogue.price_file import PriceFile, price_file_text, read_price_file, write_price_file
from tritonstack.catalogue.prices import PRICES_FILE
from tritonstack.commands.progress import Steps
from tritonstack.commands.session import AccountSession
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local_aws import require_local_aws
from tritonstack.paths import project_folder
from tritonstack.read_only_aws import NotKnownError, ReadOnlyCalls
from tritonstack.settings import Environment, load_environment, load_environments
from tritonstack_capacity.commands.prices_view import show_prices, show_update
from tritonstack_capacity.price_list.query import API_REGIONS, hosting_documents
from tritonstack_capacity.price_list.update import Update, updated
from tritonstack_capacity.price_list.uses import uses_of

region_option = click.option("--region", "regions", multiple=True, help="A region; may be given again.")
environment_option = click.option(
    "--environment", "-e", "environments", multiple=True, help="The region of an environment; may be given again."
)


@click.group("prices", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """What an instance of an endpoint costs an hour: shown (without a word more), or updated from AWS's Price List."""
    if context.invoked_subcommand is None:
        context.invoke(list_prices, regions=(), environments=())


@command.command("list")
@region_option
@environment_option
def list_prices(*, regions: Sequence[str], environments: Sequence[str]) -> None:
    """Show what is known, each price with its source and date, and what the environments' endpoints take.

    Without an option: every environment of the project. Reads only files.
    """
    chosen, loaded = _chosen(regions, environments)
    show_prices(chosen, uses_of(loaded), project=project_folder())


@command.command("update")
@region_option
@environment_option
@click.option(
    "--api-region",
    type=click.Choice(API_REGIONS),
    default=API_REGIONS[0],
    show_default=True,
    help="Where the Price List is asked; each has the prices of every region.",
)
@click.option("--local", is_flag=True, help="Ask the local AWS, whose prices are constructed.")
def update(*, regions: Sequence[str], environments: Sequence[str], api_region: str, local: bool) -> int:
    """Ask AWS's Price List for on-demand prices of endpoints' instances, and write them into the project's prices.json.

    Without an option: the regions of every environment of the project. What is in the file goes before the catalogue's
    prices, for every command, and is there to be reviewed and committed. Needs the permission pricing:GetProducts.
    Ends with 1 where a price of the list is not clear: what was known of it stays.
    """
    file = project_folder() / PRICES_FILE
    old = read_price_file(file) if file.exists() else None
    chosen, loaded = _chosen(regions, environments)
    _refuse_other_partitions(chosen)
    calls = ReadOnlyCalls(require_local_aws().session() if local else AccountSession(api_region))
    with Steps().step("AWS Price List") as step:
        answers = {}
        for region in chosen:
            try:
                answers[region] = hosting_documents(calls, region=region, api_region=api_region, say=step.say)
            except NotKnownError as error:
                raise _no_answer(error) from error
        step.end_with(f"{sum(map(len, answers.values()))} products of {', '.join(chosen)}")
    found = updated(old, answers, types=tuple(load_catalogue().instances))
    _refuse_constructed_over_real(old, found.prices)
    text = price_file_text(found.prices)
    changed = not file.exists() or file.read_text(encoding="utf-8") != text
    if changed:
        write_price_file(file, text)
    show_update(found, uses_of(loaded), file=file, changed=changed)
    return 1 if _unclear(found) else 0


def _chosen(regions: Sequence[str], environments: Sequence[str]) -> tuple[tuple[str, ...], tuple[Environment, ...]]:
    """The regions that are meant, and the environments in them: the named ones, else the project's."""
    known = load_catalogue().regions
    wrong = [
        Problem(field="--region", found=region, allowed=f"regions of SageMaker: {', '.join(known)}")
        for region in regions
        if region not in known
    ]
    if wrong:
        raise InputError(wrong)
    folder = project_folder() / "environments"
    loaded = _environments(folder, environments, needed=not regions)
    named = {each.region for each in loaded} if environments or not regions else set()
    chosen = tuple(sorted({*regions, *named}))
    return chosen, tuple(each for each in loaded if each.region in chosen)


def _environments(folder: Path, names: Sequence[str], *, needed: bool) -> tuple[Environment, ...]:
    """The named environments, else all; a project without any is wrong only where they are ``needed``."""
    if not names:
        return load_environments(folder) if needed or any(folder.glob("*.yaml")) else ()
    loaded: list[Environment] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        try:
            loaded.append(load_environment(folder / f"{name}.yaml"))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(loaded)


def _refuse_other_partitions(regions: Sequence[str]) -> None:
    wrong = [region for region in regions if partition(region) != "aws"]
    if wrong:
        raise InputError(
            [
                Problem(
                    field="--region",
                    found=f"{', '.join(wrong)}, of a partition with a Price List, credentials or a currency of its own",
                    allowed="regions of the partition aws",
                    advice="Set `prices:` in the environment's file.",
                )
            ]
        )


def _refuse_constructed_over_real(old: PriceFile | None, new: PriceFile) -> None:
    before = old.regions if old is not None else {}
    wrong = [
        name
        for name, found in new.regions.items()
        if found.constructed and name in before and not before[name].constructed
    ]
    if wrong:
        raise InputError(
            [
                Problem(
                    file=PRICES_FILE,
                    field=f"regions.{name}",
                    found="prices of AWS's, and the local AWS would put constructed ones in their place",
                    allowed="a file without them",
                    advice="Try it in another project folder (TRITONSTACK_PROJECT).",
                )
                for name in wrong
            ]
        )


def _no_answer(error: NotKnownError) -> InputError | WorkFailedError:
    if isinstance(error.__cause__, NoCredentialsError | PartialCredentialsError):
        problem = Problem(
            field="AWS settings",
            found=error.found,
            allowed="credentials that boto3 can use, of any account",
            advice="Choose them (AWS_PROFILE); they need the permission pricing:GetProducts.",
        )
        return InputError([problem])
    return WorkFailedError(f"{error.found}\n  do: {error.advice} Nothing is written.")


def _unclear(found: Update) -> bool:
    return bool(found.unreadable) or any(change.kind == "refused" for change in found.changes)
