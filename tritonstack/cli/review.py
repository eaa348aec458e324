"""``tritonstack review``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import click

from tritonstack.cli.conventions import echo, environment_option, json_option, print_json, result_console
from tritonstack.cli.progress import ShownStep, Steps
from tritonstack.config.pipeline import PIPELINE_FILE
from tritonstack.disk import temporary_folder
from tritonstack.errors import InputError, Problem, listing, nearest
from tritonstack.paths import project_folder, write_text
from tritonstack.review.assembly import read_assembly, synthesise
from tritonstack.review.costs.cost_table import table_of
from tritonstack.review.costs.price_book import prices_of
from tritonstack.review.document import BaseEntry, SettingEntry
from tritonstack.review.fail_on import allowed_words, matches_of, parse_fail_on
from tritonstack.review.report import Known, document_of
from tritonstack.review.settings import changed_settings, effects_of, entry_of
from tritonstack.review.snapshot import (
    NOTHING,
    PIPELINE_CONTEXT,
    PIPELINE_FOLDER,
    Snapshots,
    added_by_pipeline,
    joined,
    without,
)
from tritonstack.review.stored import read_snapshots_at, snapshots_at
from tritonstack.review.views.markdown import WHOLE, markdown
from tritonstack.review.views.pages import page, show, show_costs
from tritonstack.review.views.wording import match_groups


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The two sides that a review compares."""

    before: Snapshots  # at the base
    after: Snapshots  # now
    notes: tuple[str, ...] = ()  # what of them cannot be compared


def base_of(named: str | Sequence[str], project: Path) -> tuple[BaseEntry, Snapshots]:
    """The base of the comparison, and its environments: the named one, or the first default that the clone has.

    Raises InputError where none of them can be compared with.
    """
    problems: list[Problem] = []
    for ref in [named] if isinstance(named, str) else named:
        try:
            commit, snapshots = read_snapshots_at(ref, repository=project)
        except InputError as error:
            problems += error.problems
        else:
            return BaseEntry(ref=ref, commit=commit, chosen=isinstance(named, str)), snapshots
    raise InputError(problems)


def sides_of(base: BaseEntry, environments: Snapshots, *, project: Path, assembly: Path | None) -> Sides:
    """Both sides, with what the project's pipeline adds to the environments.

    ``environments``: the base's snapshots, without the pipeline's. ``assembly``: a cloud assembly to take in place of
    synthesising. Raises InputError where the snapshots or the app's input are wrong, WorkFailedError where it failed.
    """
    added = snapshots_at(base.commit, repository=project, folder=PIPELINE_FOLDER) or NOTHING
    has_pipeline = (project / PIPELINE_FILE).is_file()
    before = joined(environments, added)
    if assembly is not None:
        found = read_assembly(assembly)
        part = added_by_pipeline(found)
        if added.environments and not part.environments and has_pipeline:
            note = f"{assembly} was synthesised without -c pipeline=true: what {PIPELINE_FILE} makes is not compared."
            return Sides(before=environments, after=found, notes=(note,))
        return Sides(before=before, after=joined(without(found, part), part))
    with ThreadPoolExecutor(max_workers=1) as beside:  # each waits for a process of its own
        pipeline = beside.submit(_pipeline, project, added) if has_pipeline else None
        after = synthesised(project)
        return Sides(before=before, after=joined(after, NOTHING if pipeline is None else pipeline.result()))


def synthesised(project: Path, *, validation: bool = True, pipeline: bool = False) -> Snapshots:
    """The project's environments as they are now; with ``pipeline`` those that it deploys, with what it adds to them.

    ``validation``: whether policy findings are looked for; if not, accepted ones are read all the same.
    """
    with temporary_folder("review") as folder:
        synthesise(project, folder, validation=validation, context=PIPELINE_CONTEXT if pipeline else None)
        return read_assembly(folder, accepted=not validation)


def _pipeline(project: Path, before: Snapshots) -> Snapshots:
    """The stacks that the pipeline adds.

    Validation takes most of a synthesis: where neither templates nor accepted findings changed, the findings are those
    before.
    """

    def compared(snapshots: Snapshots) -> dict[str, object]:
        return {
            name: (each.stacks, None if each.findings is None else [one for one in each.findings if one.accepted])
            for name, each in snapshots.environments.items()
        }

    found = added_by_pipeline(synthesised(project, validation=False, pipeline=True))
    if compared(found) == compared(before):
        return before
    return added_by_pipeline(synthesised(project, pipeline=True))


def settings_of(
    sides: Sides, known: Known, *, base: BaseEntry, project: Path, step: ShownStep | None = None
) -> dict[str, tuple[SettingEntry, ...]]:
    """The settings that change, by environment, and what each of them does.

    ``known``: what is known besides the templates. ``step``: what is shown; None where nothing is to be synthesised, so
    that no setting is tried.
    """
    # A pipeline's stacks are the same whatever an environment's settings are.
    own = without(sides.after, added_by_pipeline(sides.after)).environments
    found = {}
    for name in sides.after.environments:
        settings = changed_settings(name, base=base.commit, project=project)
        if settings and step is not None and name in own:
            step.say(f"{name}: what each of {len(settings)} changed settings does")
            found[name] = effects_of(settings, now=own[name], project=project, known=known)
        elif settings:
            found[name] = tuple(map(entry_of, settings))
    return found


DEFAULT_BASES = ("origin/main", "main")
file_option = click.Path(dir_okay=False, path_type=Path)


@click.command("review", epilog="example: tritonstack review --base main --fail-on replacement")
@click.option("--base", help=f"Branch, tag or commit to compare with; default: {', then '.join(DEFAULT_BASES)}.")
@json_option("Print the report as JSON, as schemas/review.schema.json, instead of a table.")
@click.option("--output", type=file_option, help="Write that JSON to this file.")
@click.option(
    "--markdown", "as_markdown", type=file_option, help="Write the report as Markdown, for a comment of a pull request."
)
@click.option("--html", "as_html", type=file_option, help="Write the report as one self-contained HTML page.")
@click.option(
    "--whole",
    default=WHOLE,
    show_default=True,
    help="Where the whole report is, for the sentence that ends truncated Markdown.",
)
@click.option("--fail-on", help=f"Exit code 1 where one of these occurs: {allowed_words()}.")
@click.option("--costs", is_flag=True, help="Print what every environment costs, without a comparison.")
@environment_option("With --costs: this environment alone.", default=None)
@click.option(
    "--no-synth",
    "assembly",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Compare this cloud assembly (cdk.out) instead of synthesising.",
)
def command(
    *,
    base: str | None,
    as_json: bool,
    output: Path | None,
    as_markdown: Path | None,
    as_html: Path | None,
    whole: str,
    fail_on: str | None,
    costs: bool,
    environment: str | None,
    assembly: Path | None,
) -> int:
    """Report what a deployment of this change does in every environment, before it is merged.

    The synthesised templates are compared with the snapshots committed where this branch left its base, without AWS
    credentials or network. Exit code 1 where --fail-on matches.
    """
    words = () if fail_on is None else parse_fail_on(fail_on)
    project = project_folder()
    given = {"--base": base, "--output": output, "--markdown": as_markdown, "--html": as_html, "--fail-on": fail_on}
    _refuse_together(given, costs=costs, environment=environment)
    if costs:
        _show_costs(environment, project, assembly, as_json=as_json)
        return 0
    with Steps().step("review") as step:
        compared, committed = base_of(base or DEFAULT_BASES, project)
        step.say("synthesising" if assembly is None else f"reading {assembly}")
        sides = sides_of(compared, committed, project=project, assembly=assembly)
        known = Known.of_project(project, base=compared.commit)
        tried = step if assembly is None else None
        known = replace(known, settings=settings_of(sides, known, base=compared, project=project, step=tried))
        document = document_of(sides.before, sides.after, base=compared, known=known, notes=sides.notes)
        step.end_with(f"compared with {compared.ref} ({compared.commit[:12]})")
    document = document.model_copy(update={"matches": matches_of(document, words)})
    if output is not None:
        write_text(output, document.text())
    if as_markdown is not None:
        write_text(as_markdown, markdown(document, whole=whole))
    if as_html is not None:
        write_text(as_html, page(document))
    if as_json:
        click.echo(document.text(), nl=False)
    else:
        show(document, result_console())
    for word in match_groups(document):
        head = f"--fail-on {word.policy}: {word.environment}:"
        for sentence in word.first:
            echo(f"{head} {sentence}", err=True)
        if word.rest:
            echo(f"{head} … {len(word.rest)} more", err=True)
    return 1 if document.matches else 0


def _refuse_together(given: Mapping[str, object], *, costs: bool, environment: str | None) -> None:
    """Raise InputError for options that have no effect with or without ``--costs``."""
    if environment is not None and not costs:
        allowed, advice = "with --costs", "A report of a change is about every environment."
        raise InputError([Problem(field="--environment", found=environment, allowed=allowed, advice=advice)])
    beside = ", ".join(name for name, value in given.items() if value is not None)
    if costs and beside:
        allowed, advice = "--environment and --no-synth alone", "Every report of a change has the table."
        raise InputError([Problem(field="--costs", found=beside, allowed=allowed, advice=advice)])


def _show_costs(name: str | None, project: Path, assembly: Path | None, *, as_json: bool) -> None:
    """Print the cost table of an environment, or of every one."""
    with Steps().step("costs") as step:
        step.say("synthesising" if assembly is None else f"reading {assembly}")
        environments = (
            synthesised(project, validation=False).environments
            if assembly is None
            else read_assembly(assembly).environments
        )
        if name is not None and name not in environments:
            advice = nearest(name, environments) or "Name one of them, or none."
            problem = Problem(field="--environment", found=name, allowed=listing(environments), advice=advice)
            raise InputError([problem])
        step.end_with(f"{len(environments)} environments" if name is None else name)
    chosen = environments.values() if name is None else (environments[name],)
    entries = {
        each.name: table_of(each, book=prices_of(each.name, base=None, project=project).after) for each in chosen
    }
    if as_json:
        print_json({each: entry.model_dump(mode="json") for each, entry in entries.items()})
        return
    console = result_console()
    for each, entry in entries.items():
        show_costs(each, entry, console)
