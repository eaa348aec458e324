"""``tritonstack clean``: removes what commands made on this machine, after a list with sizes and a question."""

from __future__ import annotations

from typing import cast

import click
from rich.filesize import decimal

from tritonstack.cli.conventions import confirm, echo, json_option, print_json
from tritonstack.cli.progress import Steps
from tritonstack.errors import InputError, Problem
from tritonstack.local_files import (
    KINDS,
    Kind,
    MadeFiles,
    made_files,
    refuse_while_running,
    remove,
    require_project,
    size_lines,
)
from tritonstack.paths import setup_command


@click.command("clean", epilog="example: tritonstack clean --dry-run")
@click.argument("kinds", nargs=-1, type=click.Choice(sorted(KINDS)), metavar="[KIND]...")
@click.option("--yes", is_flag=True, help="Remove without the question.")
@click.option("--dry-run", is_flag=True, help="List alone; remove nothing.")
@json_option("Print JSON: what was removed, or with --dry-run would be.")
def command(*, kinds: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove what commands made on this machine, after a list with sizes and a question.

    KIND: environments (.envs, node_modules), builds (archives, exports, fetched weights, templates), state (of the
    local AWS, with its logs), caches (of tests and checks), temporary (shared memory of servers that have ended, empty
    /tmp/python_env_* of Triton's Python backend). Without KIND: all.

    model_repos/, environments/*.yaml and every other file that git tracks stay. Nothing is removed while the local AWS
    or another process of the environments runs.
    """
    if yes and dry_run:
        raise InputError([Problem(field="--yes, --dry-run", found="both", allowed="one of them")])
    require_project()
    chosen = cast("tuple[Kind, ...]", kinds) or KINDS
    with Steps().step("measure what was made here") as step:
        made, tracked = made_files(chosen)
        step.end_with(decimal(sum(each.bytes for each in made)))
    for path in tracked:
        echo(f"stays: {path}, in which git tracks files", err=True)
    if not as_json:
        for line in size_lines(made) if made else ("nothing to remove",):
            echo(line)
    if made and not dry_run:
        refuse_while_running()
        confirm("Remove all of this?", yes=yes, command=" ".join(("tritonstack clean", *kinds, "--yes")))
        refuse_while_running()  # the question may have waited for long
        _remove(made)
    if as_json:
        print_json({"removed": not dry_run, "files": [_entry(each) for each in made]})


def _remove(made: list[MadeFiles]) -> None:
    environments = any(each.kind == "environments" for each in made)
    with Steps().step("remove") as step:
        for each in made:
            step.say(each.what)
            remove(each)
        step.end_with(decimal(sum(each.bytes for each in made)))
    if environments:
        echo(f"To make the environments again: {setup_command()}", err=True)


def _entry(made: MadeFiles) -> dict[str, object]:
    return {"kind": made.kind, "what": made.what, "paths": [str(path) for path in made.paths], "bytes": made.bytes}
