"""``tritonstack leftovers``: stacks that left an environment's file and are still deployed; and their deletion."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click
from botocore.config import Config

from tritonstack.aws.read_only import NotKnownError, ReadOnlyCalls
from tritonstack.aws.session import ConfiguredSession, Session
from tritonstack.cli.conventions import LOCAL, ask, echo, environment_option, json_option, local_option, print_json
from tritonstack.cli.progress import Steps, ended_by_signals
from tritonstack.cli.session import calling_session, require_account, session_of
from tritonstack.config import Environment, load_environment
from tritonstack.deployed.deletion import POLL_SECONDS, Deleter, Deletion, deletion_of, goes_on
from tritonstack.deployed.left import (
    Deployed,
    LeftEntry,
    LeftStack,
    deployed_and_left,
    deployed_without_file,
    lines_of,
    unknown_prices,
)
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local_aws import LOCAL_POLL_SECONDS, is_local
from tritonstack.paths import environment_file, project_folder


@click.command("leftovers", epilog="example: tritonstack leftovers -e prod --delete")
@environment_option()
@click.option("--delete", is_flag=True, help="Delete them, after the list of deletions and a question.")
@click.option("--yes", is_flag=True, help="With --delete: delete without the question.")
@click.option("--archives", is_flag=True, help="With --delete: also delete a bucket with all archives in it.")
@click.option(
    "--region", metavar="REGION", help="Look in this region, which the environment's file named before. [default: its]"
)
@click.option(
    "--removed", is_flag=True, help="The environment's file was removed: everything that is deployed of it left."
)
@json_option()
@local_option
def command(
    *,
    environment: str,
    delete: bool,
    yes: bool,
    archives: bool,
    region: str | None,
    removed: bool,
    as_json: bool,
    local: bool,
) -> int:
    """List the stacks that are deployed of ENVIRONMENT and that its file no longer has, with what they cost an hour.

    No deployment removes such a stack, and `cdk destroy` does not find it. With --delete they are deleted: what watches
    endpoints, then endpoints, then builds and network. A stack that another one still uses stays.
    """
    _refuse_options(delete=delete, yes=yes, archives=archives)
    settings = _settings(environment, removed=removed)
    session = _session(settings, environment, region=region, local=local)
    if settings is not None and delete:
        require_account(session, settings)
    with Steps().step(f"compare what is deployed with environments/{environment}.yaml") as step:
        deployed = _deployed(ReadOnlyCalls(session), settings, environment, region=region)
        step.end_with(f"{len(deployed.left)} stacks left")
    if not delete:
        if as_json:
            print_json({"environment": environment, "left": entries(deployed)})
        else:
            _show(deployed, command=leftovers_command(environment, local=local, region=region, removed=removed))
        return 0
    deletion = deletion_of(deployed, archives=archives)
    for line in deletion_lines(deletion):
        echo(line, err=as_json)
    if deletion.stacks:
        _ask(deletion, yes=yes)
        carry_out(deletion.stacks, session, steps=Steps())
    if as_json:
        kept = [{"stack": each.stack.name, "why": reason} for each, reason in deletion.kept]
        print_json({"environment": environment, "deleted": [each.stack.name for each in deletion.stacks], "kept": kept})
    return 1 if deletion.kept else 0


def leftovers_command(
    environment: str, *, local: bool = False, region: str | None = None, removed: bool = False
) -> str:
    """The command that lists what left, in full."""
    options = "".join(
        (
            f" --region {region}" if region else "",
            " --removed" if removed else "",
            " --local" if local and environment != LOCAL else "",
        )
    )
    return f"tritonstack leftovers -e {environment}{options}"


def entries(deployed: Deployed) -> list[dict[str, object]]:
    """Stacks that left the environment's file, as JSON."""
    return [LeftEntry.of(each).model_dump(mode="json") for each in deployed.left]


def note_left(settings: Environment, session: Session, *, local: bool) -> tuple[LeftEntry, ...] | None:
    """Print on standard error what left the environment's file; for commands that are of something else.

    Returns what left; None where AWS does not respond, which is printed and is no failure.
    """
    try:
        deployed = deployed_and_left(ReadOnlyCalls(session), settings, project=project_folder())
    except NotKnownError as error:
        echo(f"stacks that left environments/{settings.environment}.yaml could not be listed: {error.found}", err=True)
        return None
    for line in lines_of(deployed, command=leftovers_command(settings.environment, local=local)):
        echo(line, err=True)
    return tuple(map(LeftEntry.of, deployed.left))


def deletion_lines(deletion: Deletion) -> Iterable[str]:
    """Lines on a deletion: its stacks in order, and those that are kept."""
    for number, each in enumerate(deletion.stacks, start=1):
        yield f"{number}. delete {each.sentence}"
        for bucket in each.emptied:
            yield f"     DELETES the bucket {bucket} with every archive in it"
        for resource in each.retained:
            yield f"     stays in the account: {resource}"
    for each, reason in deletion.kept:
        yield f"-  stays for now: {each.sentence}\n     {reason}"
    if not deletion.stacks:
        yield "nothing to delete" + (" now" if deletion.kept else "")


def carry_out(stacks: Iterable[LeftStack], session: Session, *, steps: Steps) -> None:
    """Delete stacks in their order, with progress; after Ctrl-C the deletions that go on are printed.

    Raises WorkFailedError: one was not deleted.
    """
    poll = LOCAL_POLL_SECONDS if is_local(session.client("cloudformation")) else POLL_SECONDS
    deleter = Deleter(session, step=steps.step, poll_seconds=poll)
    with ended_by_signals():
        try:
            deleter.delete([each.stack for each in stacks])
        except KeyboardInterrupt:
            echo(goes_on(deleter.running, what="deletes"), err=True)
            raise


def _refuse_options(*, delete: bool, yes: bool, archives: bool) -> None:
    alone = [name for name, given in (("--yes", yes), ("--archives", archives)) if given and not delete]
    if alone:
        raise InputError([Problem(field=", ".join(alone), found="without --delete", allowed="with --delete")])


def _settings(environment: str, *, removed: bool) -> Environment | None:
    """The environment's settings; None where its file was removed. Raises InputError where that is not so."""
    file = environment_file(environment)
    if not removed and not file.is_file():
        problem = Problem(
            file=str(file),
            found="no such file",
            allowed="an environment's file, which what is deployed is compared with",
            advice=f"--removed, if the file was removed: then everything that is deployed of {environment} left",
        )
        raise InputError([problem])
    if removed and file.is_file():
        found = "the file is there"
        advice = "Remove it first, or leave --removed out."
        raise InputError([Problem(field="--removed", found=f"{file}: {found}", allowed="no such file", advice=advice)])
    return None if removed else load_environment(file)


def _session(settings: Environment | None, environment: str, *, region: str | None, local: bool) -> Session:
    session = calling_session(environment, local=local) if settings is None else session_of(settings, local=local)
    if region is None or is_local(session.client("cloudformation")):
        return session
    return ConfiguredSession(session, Config(region_name=region))


def _deployed(calls: ReadOnlyCalls, settings: Environment | None, environment: str, *, region: str | None) -> Deployed:
    """The deployed stacks. Raises WorkFailedError where AWS refuses, or does not respond."""
    project = project_folder()
    file = f"environments/{environment}.yaml"
    try:
        if settings is not None and region in (None, settings.region):
            return deployed_and_left(calls, settings, project=project)
        place = region or calls.client("cloudformation").meta.region_name
        why = f"there is no {file}" if settings is None else f"{file} deploys to {settings.region}"
        return deployed_without_file(calls, environment, region=place, why=why, project=project)
    except NotKnownError as error:
        raise WorkFailedError(f"{error.found}. {error.advice}") from error


def _show(deployed: Deployed, *, command: str) -> None:
    if not deployed.left:
        echo(f"nothing of {deployed.environment} is deployed that its file does not have")
        return
    for line in list_lines(deployed):
        echo(line)
    echo(f"  do:      {command} --delete")


def list_lines(deployed: Deployed) -> Iterable[str]:
    """Lines on the stacks that left, in the order of deletion, with the sum of their costs."""
    for each in deployed.left:
        yield f"{each.sentence}; {each.stack.status}"
        for resource in each.retained:
            yield f"     a deletion leaves in the account: {resource}"
    yield f"together: {deployed.cost.text}"
    for name in unknown_prices(deployed.left):
        yield f"     unknown: {name}"


def _ask(deletion: Deletion, *, yes: bool) -> None:
    """Ask for confirmation. Raises InputError without a terminal, and DeclinedError after a no."""
    if yes:
        return
    if not _at_a_terminal():
        problem = Problem(
            field="--delete",
            found="a question, and standard input is no terminal",
            allowed="a terminal, or --yes",
            advice="Read the list above; --yes carries it out without the question.",
        )
        raise InputError([problem])
    names = ", ".join(each.stack.name for each in deletion.stacks)
    echo("An older checkout lacks what a newer one deployed: be sure that this one is the newest.", err=True)
    ask(f"Delete {names}?")


def _at_a_terminal() -> bool:
    return sys.stdin.isatty()
