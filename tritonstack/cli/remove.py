"""``tritonstack remove``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from tritonstack.aws.session import Session
from tritonstack.cli.conventions import LOCAL, confirm, echo, local_option
from tritonstack.cli.progress import Steps, ended_by_signals
from tritonstack.cli.session import require_account, session_of
from tritonstack.config.endpoint import EndpointSettings
from tritonstack.config.environment import Environment
from tritonstack.config.loader import load_environment
from tritonstack.config.model_entries import ModelRemoval, model_removal
from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem, TritonstackError, collecting, listing, nearest, refuse
from tritonstack.lint.registry import shown
from tritonstack.models.manifest import Places
from tritonstack.models.recipe import RECIPE, read_recipe
from tritonstack.models.selection import archive_names
from tritonstack.models.source import ArchiveSource, archives_of
from tritonstack.naming import NAME_PATTERN, release_parameter
from tritonstack.paths import project_folder, write_text
from tritonstack.releases.commits import UNCOMMITTED, UNKNOWN, commits_of
from tritonstack.releases.records import read_record
from tritonstack.releases.requests import requests_command, requests_of_the_last_day


@click.command("remove", epilog="example: tritonstack remove iris --yes")
@click.argument("model", metavar="MODEL")
@click.option("--yes", is_flag=True, help="Remove without the question.")
@click.option(
    "--with-endpoint",
    is_flag=True,
    help="Remove an endpoint that serves nothing else from its file, too.",
)
@local_option
def command(*, model: str, yes: bool, with_endpoint: bool, local: bool) -> None:
    """Remove a model's folder, and the model from every endpoint in environments/*.yaml, after a list and a question.

    The list says how many requests each endpoint that serves the model had in the last day, as CloudWatch counts them,
    and what stays for a rollback. Refused where another model uses the folder, or an endpoint would be left without a
    model. Nothing that is deployed changes: the next deployment of an environment takes the model from its endpoint.
    """
    places = Places.of_project()
    removal = _removal(model, places, with_endpoint=with_endpoint)
    for line in _list(removal):
        echo(line)
    brought = {removal.model: [each.name for each in removal.sources]}
    with Steps().step("look up who still calls it") as step:
        lines = [line for each in removal.files for line in _callers(each, brought, local=local)]
        step.end_with("" if lines else "no environment serves it")
    for line in (*lines, *_kept(removal, places)):
        echo(line)
    confirm(f"Remove {model}?", yes=yes, command=f"tritonstack remove {model} --yes")
    with ended_by_signals():
        _carry_out(removal, places)
    for line in _next(removal):
        echo(line)


@dataclass(frozen=True, kw_only=True)
class _Removal:
    model: str
    folder: Path | None  # None where it is gone already
    sources: tuple[ArchiveSource, ...]  # its archives, as far as its recipe can be read
    files: tuple[ModelRemoval, ...]  # environments' files that name it


def _removal(model: str, places: Places, *, with_endpoint: bool) -> _Removal:
    """What is to be removed. Raises InputError with everything that is in the way."""
    if not re.fullmatch(NAME_PATTERN, model):
        raise InputError([_unknown(model, places)])
    folder = places.folder(model)
    sources: tuple[ArchiveSource, ...] = ()
    is_there = folder.is_dir()
    with suppress(InputError):  # a folder whose recipe is wrong can be removed all the same
        sources = archives_of(folder) if is_there else ()
    names = {model, *(each.name for each in sources)}
    problems: list[Problem] = []
    files: list[ModelRemoval] = []
    for file in sorted((project_folder() / "environments").glob("*.yaml")):
        with collecting(problems):
            found = model_removal(file, names)
            files += [found] if found.removed else []
    if not is_there and not files:
        raise InputError([_unknown(model, places)])
    problems += _users(model, places)
    command = f"tritonstack remove {model} --with-endpoint"
    for each in files:
        environment = each.environment.environment
        advice = (
            f"to remove the endpoint from the file, too: {command}\n           deployed, it runs and is billed until "
            f"tritonstack leftovers -e {environment} --delete (tritonstack docs removing)"
        )
        refused = each.refused(emptied_too=with_endpoint, advice=advice)
        problems += refused
        if not refused and each.text is not None:
            with collecting(problems):
                load_environment(each.file, text=each.text)
    refuse(problems)
    return _Removal(model=model, folder=folder if is_there else None, sources=sources, files=tuple(files))


def _unknown(model: str, places: Places) -> Problem:
    names = [path.name for path in sorted(places.repositories.glob("*")) if (path / RECIPE).is_file()]
    found = f"{model}, which no model folder is called"
    advice = nearest(model, names)
    if model in archive_names(places.repositories):
        found += ": it is an archive of a folder with several"
        advice = f"remove it from overlays (or lower copies) in that folder's {RECIPE}, and from `models:`"
    return Problem(field="MODEL", found=found, allowed=f"a model folder: {listing(names)}", advice=advice)


def _users(model: str, places: Places) -> Iterator[Problem]:
    """Model folders that take models from this one."""
    for path in sorted(places.repositories.glob(f"*/{RECIPE}")):
        try:
            used = {name for each in read_recipe(path.parent).uses if each.folder == model for name in each.models}
        except InputError:
            continue  # the linter reports it
        if used:
            name = path.parent.name
            yield Problem(
                file=shown(path),
                field="uses",
                found=f"{', '.join(sorted(used))} of {model}",
                allowed="folders that are there",
                advice=f"change {name}, or remove it first: tritonstack remove {name}",
            )


def _list(removal: _Removal) -> Iterator[str]:
    """What goes."""
    if removal.folder is not None:
        yield f"remove {shown(removal.folder)}"
    for each in removal.files:
        for endpoint, models in each.removed.items():
            what = "the endpoint itself, which serves nothing else" if endpoint in each.emptied else ", ".join(models)
            yield f"{shown(each.file)}\n  endpoint {endpoint}: - {what}"


def _callers(removal: ModelRemoval, brought: Mapping[str, Sequence[str]], *, local: bool) -> Iterator[str]:
    """Requests of the last day, and releases, of each endpoint that serves the model; or how to look them up.

    ``brought``: folder → its archives, each with a release record of its own.
    """
    settings = removal.environment
    try:
        session: Session | None = session_of(settings, local=local)
        if session is not None and not (local or settings.environment == LOCAL):
            require_account(session, settings)
        why = ""
    except TritonstackError as error:
        session = None
        why = error.problems[0].found if isinstance(error, InputError) else str(error).partition("\n")[0]
    for name, models in removal.removed.items():
        endpoint = next(each for each in settings.endpoints if each.name == name)
        archives = [name for entry in models for name in brought.get(entry, (entry,))]
        yield from _of_endpoint(settings, endpoint, archives, entries=models, session=session, why=why)


def _of_endpoint(
    settings: Environment,
    endpoint: EndpointSettings,
    models: Sequence[str],
    *,
    entries: Sequence[str],
    session: Session | None,
    why: str,
) -> Iterator[str]:
    environment = settings.environment
    where, name = f"{environment}/{endpoint.name}", endpoint.sagemaker_name(environment)
    variants = [each.variant_name for each in endpoint.variant_settings]
    kept: list[str] = []
    try:
        if session is not None:
            count = requests_of_the_last_day(session, endpoint_name=name, variants=variants)
            for model in models:
                record = read_record(session, environment=environment, endpoint=endpoint.name, model=model)
                if record.digest is not None:
                    parameter = release_parameter(environment=environment, endpoint=endpoint.name, model=model)
                    earlier = len(record.digests) - 1
                    kept.append(
                        f"  stays: the archive of {record.digest} and of {earlier} earlier releases, until tritonstack "
                        f"prune -e {environment} --yes; the record {parameter}, until the next deployment"
                    )
    except TritonstackError as error:
        session, why = None, str(error).partition("\n")[0]
    if session is None:
        yield f"{where}: requests of the last day not looked up: {why}"
        if environment == LOCAL:
            yield "  do:      tritonstack local up, then the same command"
            return
        for variant in variants:
            yield f"  do:      {requests_command(endpoint_name=name, variant=variant, region=settings.region)}"
        return
    if not count:
        yield f"{where}: no request in the last day: nobody calls {', '.join(models)} there"
    else:
        others = [name for name in endpoint.models if name not in entries]
        share = (
            "" if not others else ": to this model and the others of the endpoint, which CloudWatch does not tell apart"
        )
        yield f"{where}: {count:,} requests in the last day{share}"
    yield from kept or [f"  {', '.join(models)} has no release record there: it is not deployed"]


def _kept(removal: _Removal, places: Places) -> Iterator[str]:
    """What brings the folder back."""
    if removal.folder is None:
        return
    commits = set(commits_of({each.name: each for each in removal.sources}, places.repositories).values())
    folder = shown(removal.folder)
    if commits and not commits & {UNKNOWN, UNCOMMITTED}:
        yield f"to bring it back: git checkout {min(commits)} -- {folder}; in the files as before; a deployment"
    else:
        yield f"{folder} holds what no commit has, as far as git shows: nothing brings that back"


def _carry_out(removal: _Removal, places: Places) -> None:
    """Change the files, then remove the folder; an error or an interruption leaves all as it was."""
    before = {each.file: each.file.read_bytes().decode() for each in removal.files}
    with partial_folder(places.repositories, name=f".{removal.model}") as partial:
        try:
            for each in removal.files:
                write_text(each.file, each.text or "")
            if removal.folder is not None:
                removal.folder.rename(partial / removal.model)
        except BaseException:
            for file, text in before.items():
                write_text(file, text)
            raise


def _next(removal: _Removal) -> Iterator[str]:
    """The commands that come next."""
    yield "Next:"
    changed = [shown(each.file) for each in removal.files] + ([shown(removal.folder)] if removal.folder else [])
    yield f"  git add -A {' '.join(changed)} && git commit -m 'without {removal.model}'"
    for each in removal.files:
        name = each.environment.environment
        yield "  tritonstack local deploy" if name == LOCAL else f"  npx cdk deploy '{name}/*'"
        if each.emptied:
            yield f"  tritonstack leftovers -e {name} --delete"
