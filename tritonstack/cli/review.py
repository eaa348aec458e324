"""``tritonstack review``."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from tritonstack.cli.progress import Steps
from tritonstack.config import load_environment
from tritonstack.errors import InputError, Problem
from tritonstack.models.inputs import resolved_models
from tritonstack.models.manifest import BuiltHere, CopyOfBucket, ManifestStore
from tritonstack.paths import LocalPaths, project_folder, write_text
from tritonstack.pipeline.snapshot import CONTEXT, FOLDER, SETTINGS, added_by_pipeline
from tritonstack.review.assembly import read_assembly, synthesise
from tritonstack.review.cost import prices_of
from tritonstack.review.cost_table import table_of
from tritonstack.review.document import ReviewDocument, cost_table_entry, document_of
from tritonstack.review.fail_on import allowed_words, matches_of, parse_fail_on
from tritonstack.review.report import Base, Known, report_of
from tritonstack.review.snapshot import NOTHING, Snapshots, joined, without
from tritonstack.review.stored import read_snapshots_at, snapshots_at
from tritonstack.review.views.annotations import annotations_of, commands_of
from tritonstack.review.views.markdown import WHOLE, markdown
from tritonstack.review.views.pages import show, show_costs
from tritonstack.review.views.wording import match_groups


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What is compared."""

    before: Snapshots  # at the base
    after: Snapshots  # now
    notes: tuple[str, ...] = ()  # what of them cannot be compared


def base_of(named: str | Sequence[str], project: Path) -> tuple[Base, Snapshots]:
    """What to compare with, and its environments: what was named, or the first of some defaults that the clone has.

    Raises:
        InputError: none of them can be compared with.
    """
    problems: list[Problem] = []
    for ref in [named] if isinstance(named, str) else named:
        try:
            commit, snapshots = read_snapshots_at(ref, repository=project)
        except InputError as error:
            problems += error.problems
        else:
            return Base(ref=ref, commit=commit, chosen=isinstance(named, str)), snapshots
    raise InputError(list(dict.fromkeys(problems)))


def sides_of(base: Base, environments: Snapshots, *, project: Path, assembly: Path | None) -> Sides:
    """Both sides, with what the project's pipeline adds to the environments.

    Args:
        base: what to compare with.
        environments: its snapshots, without the pipeline's.
        project: the project's folder.
        assembly: a cloud assembly to take in place of synthesising.

    Raises:
        InputError: the base's snapshots or the app's input are wrong.
        WorkFailedError: the app failed.
    """
    added = snapshots_at(base.commit, repository=project, folder=FOLDER) or NOTHING
    has_pipeline = (project / SETTINGS).is_file()
    before = joined(environments, added)
    if assembly is not None:
        found = read_assembly(assembly)
        part = added_by_pipeline(found)
        if added.environments and not part.environments and has_pipeline:
            note = f"{assembly} was synthesised without -c pipeline=true: what {SETTINGS} makes is not compared."
            return Sides(before=environments, after=found, notes=(note,))
        return Sides(before=before, after=joined(without(found, part), part))
    with ThreadPoolExecutor(max_workers=1) as beside:  # each waits for a process of its own
        pipeline = beside.submit(_pipeline, project, added) if has_pipeline else None
        after = synthesised(project)
        return Sides(before=before, after=joined(after, NOTHING if pipeline is None else pipeline.result()))


def synthesised(project: Path, *, validation: bool = True, pipeline: bool = False) -> Snapshots:
    """The project's environments as they are now.

    Args:
        project: the project's folder.
        validation: whether policy findings are looked for; if not, accepted ones are read all the same.
        pipeline: whether those that the pipeline deploys, with what it adds to them.
    """
    with tempfile.TemporaryDirectory(prefix="review-") as name:
        synthesise(project, Path(name), validation=validation, context=CONTEXT if pipeline else None)
        return read_assembly(Path(name), accepted=not validation)


def _pipeline(project: Path, before: Snapshots) -> Snapshots:
    """What the pipeline adds now.

    Validation takes most of a synthesis: where neither templates nor accepted findings changed, the findings are those
    before.
    """

    def compared(snapshots: Snapshots) -> dict[str, object]:
        return {
            name: (each.stacks, each.findings and each.findings.accepted)
            for name, each in snapshots.environments.items()
        }

    found = added_by_pipeline(synthesised(project, validation=False, pipeline=True))
    if compared(found) == compared(before):
        return before
    return added_by_pipeline(synthesised(project, pipeline=True))


DEFAULT_BASES = ("origin/main", "main")
EVERY = "*"
"""``--costs`` without a name."""
file_option = click.Path(dir_okay=False, path_type=Path)


@click.command("review")
@click.option("--base", help=f"Branch, tag or commit to compare with; default: {', then '.join(DEFAULT_BASES)}.")
@click.option("--json", "as_json", type=file_option, help="Write the report as JSON, as schemas/review.schema.json.")
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
@click.option("--verbose", is_flag=True, help="Print every entry; by default long lists are truncated.")
@click.option("--annotations", is_flag=True, help="Print workflow commands of GitHub Actions instead of a table.")
@click.option("--fail-on", help=f"Exit code 1 where one of these occurs: {allowed_words()}.")
@click.option(
    "--manifests",
    multiple=True,
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Copy of a bucket's manifests/, for archive sizes and engine build times. May be repeated.",
)
@click.option(
    "--costs",
    metavar="[ENVIRONMENT]",
    is_flag=False,
    flag_value=EVERY,
    help="Print the cost of an environment, or of every one, without a comparison.",
)
@click.option(
    "--no-synth",
    "assembly",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Compare this cloud assembly (cdk.out) instead of synthesising.",
)
def command(
    *,
    base: str | None,
    as_json: Path | None,
    as_markdown: Path | None,
    as_html: Path | None,
    whole: str,
    verbose: bool,
    annotations: bool,
    fail_on: str | None,
    manifests: tuple[Path, ...],
    costs: str | None,
    assembly: Path | None,
) -> int:
    """Report what a deployment of this change does in every environment, before it is merged.

    The synthesised templates are compared with the snapshots committed where this branch left its base, without AWS
    credentials or network. Exit code 1 where --fail-on matches.
    """
    words = () if fail_on is None else parse_fail_on(fail_on)
    project = project_folder()
    if costs is not None:
        given = {"--base": base, "--json": as_json, "--markdown": as_markdown, "--html": as_html, "--fail-on": fail_on}
        if beside := ", ".join(name for name, value in given.items() if value is not None):
            advice = "Leave --costs out: every report of a change has the table."
            raise InputError([Problem(field="--costs", found=beside, allowed="--no-synth alone", advice=advice)])
        _show_costs(costs, project, assembly)
        return 0
    with Steps().step("review") as step:
        compared, committed = base_of(base or DEFAULT_BASES, project)
        step.say("synthesising" if assembly is None else f"reading {assembly}")
        sides = sides_of(compared, committed, project=project, assembly=assembly)
        copies = [CopyOfBucket(folder=each, name=each.name) for each in manifests]
        stores: tuple[ManifestStore, ...] = (*copies, BuiltHere(folder=LocalPaths.from_environment().archives))
        known = Known.of_project(project, base=compared.commit, stores=stores)
        report = report_of(sides.before, sides.after, base=compared, known=known, notes=sides.notes)
        step.end_with(f"compared with {compared.ref} ({compared.commit[:12]})")
    matches = matches_of(report, words)
    document = document_of(report, matches)
    if as_json is not None:
        write_text(as_json, document.text())
    if as_markdown is not None:
        write_text(as_markdown, markdown(document, whole=whole))
    if as_html is not None:
        from tritonstack.review.views.pages import page  # noqa: PLC0415 - Jinja is loaded for a page alone

        write_text(as_html, page(document))
    if annotations:
        for line in commands_of(annotations_of(document, project=project, folders=_folders(document, project))):
            click.echo(line)
    else:
        show(document, Console(highlight=False), verbose=verbose)
    for word in match_groups(document):
        head = f"--fail-on {word.policy}: {word.environment}:"
        for sentence in (*word.first, *(word.rest if verbose else ())):
            click.echo(f"{head} {sentence}", err=True)
        if word.rest and not verbose:
            click.echo(f"{head} … {len(word.rest)} more", err=True)
    return 1 if matches else 0


def _show_costs(name: str, project: Path, assembly: Path | None) -> None:
    """Print the cost table of an environment, or of every one."""
    with Steps().step("costs") as step:
        step.say("synthesising" if assembly is None else f"reading {assembly}")
        environments = (
            synthesised(project, validation=False).environments
            if assembly is None
            else read_assembly(assembly).environments
        )
        if name not in {EVERY, *environments}:
            allowed, advice = ", ".join(environments), "Name one of them, or none."
            raise InputError([Problem(field="--costs", found=name, allowed=allowed, advice=advice)])
        step.end_with(f"{len(environments)} environments" if name == EVERY else name)
    for each in environments.values() if name == EVERY else (environments[name],):
        table = table_of(each, book=prices_of(each.name, base=None, project=project).after)
        show_costs(each.name, cost_table_entry(table, table), Console(highlight=False))


def _folders(document: ReviewDocument, project: Path) -> dict[str, str]:
    """Model → its folder, of the models that change."""
    found: dict[str, str] = {}
    for environment in document.environments:
        file = project / "environments" / f"{environment.name}.yaml"
        if environment.models and file.is_file():
            for sources in resolved_models(load_environment(file), project / "model_repos", file=file).values():
                found |= {each.name: each.folder.name for each in sources}
    return found
