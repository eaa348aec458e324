"""``tritonstack lint`` and ``explain``: findings in model folders, and the pages of their rules."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tritonstack.cli.conventions import echo, environment_option, json_option, print_json, visible_json
from tritonstack.config.yaml_loader import read_yaml
from tritonstack.errors import InputError, Problem, alike, listing
from tritonstack.lint import Finding, ServingTarget, lint_endpoint, lint_folder, lint_release
from tritonstack.lint.checks import view_source
from tritonstack.lint.instances import target_of_archive
from tritonstack.lint.registry import CATEGORIES, Rule, annotation, base_page, report_of, rule, rule_ids, rules, shown
from tritonstack.lint.view import known_backends, view_folder
from tritonstack.models.manifest import Places
from tritonstack.models.recipe import RECIPE
from tritonstack.models.selection import choice_of, sources_of
from tritonstack.paths import environment_file, is_project, project_folder


@dataclass(frozen=True)
class Served:
    """A model folder and what serves it."""

    folder: Path  # the model folder
    target: ServingTarget  # what serves it
    archives: frozenset[str] | None = None  # which of its overlays are served, or None for all
    # the file and the line that name the target's release; None where an option does
    settings: tuple[Path, int] | None = None


@click.command("lint", epilog="example: tritonstack lint model_repos/iris --release 25.09")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@json_option("Print JSON, as schemas/lint-report.schema.json.")
@click.option("--annotations", is_flag=True, help="Print workflow commands of GitHub Actions instead of text.")
@click.option("--release", help='Check for this Triton release ("24.09"): backends, Python, TensorRT.')
@click.option("--instance-type", help="Check for this instance type (ml.g4dn.xlarge): GPUs, memory, disk.")
@environment_option("Check for every endpoint of this environment that serves the folder.", default=None)
def lint_command(
    *,
    folders: tuple[Path, ...],
    as_json: bool,
    annotations: bool,
    release: str | None,
    instance_type: str | None,
    environment: str | None,
) -> None:
    """Check FOLDERS offline: model folders, folders of them, or Triton repositories; without any, all of model_repos/.

    `tritonstack explain RULE` explains a rule. Exit code 1 where a finding is an error.
    """
    if as_json and annotations:
        raise click.UsageError("--json or --annotations, not both")
    if environment and (release or instance_type):
        allowed = "an environment, or a release and an instance type: its endpoints have theirs"
        raise InputError([Problem(field="--environment", found="with --release or --instance-type", allowed=allowed)])
    together: list[Finding] = []
    if environment:
        whole = any(_of_whole_project(folder) for folder in folders)
        served, together = _served_by(environment, () if whole else _model_folders(folders))
    else:
        target = ServingTarget.of_names(release=release, instance_type=instance_type)
        every = _model_folders(folders or [project_folder()])
        served = [Served(folder, target) for folder in every]
        if not every:
            echo(f"no model folder in {shown(_models_of(project_folder()))}: tritonstack add FILE makes one", err=True)
    chosen = list(dict.fromkeys(each.folder for each in served))
    findings = list(dict.fromkeys([*_findings(served), *together]))
    if as_json:
        echo(visible_json(report_of(chosen, findings).model_dump_json(indent=2)))
    for finding in () if as_json else findings:
        echo(annotation(finding) if annotations else str(finding))
    counts = Counter(finding.level for finding in findings)
    notes = f", notes: {counts['note']}" if counts["note"] else ""
    echo(f"folders: {len(chosen)}, errors: {counts['error']}, warnings: {counts['warning']}{notes}", err=True)
    if counts["error"]:
        sys.exit(1)


def _models_of(folder: Path) -> Path:
    """Of a project's folder the one of its model folders; any other folder is itself."""
    return folder / "model_repos" if is_project(folder.resolve()) else folder


def _of_whole_project(folder: Path) -> bool:
    """Whether a folder is a project, or its ``model_repos/``."""
    whole = folder.resolve()
    return is_project(whole) or (whole.name == "model_repos" and is_project(whole.parent))


def _model_folders(folders: Sequence[Path]) -> tuple[Path, ...]:
    """The model folders that the folders are or hold; one without any is itself, as a Triton repository has none."""
    found: list[Path] = []
    for folder in folders:
        inside = sorted(path.parent for path in _models_of(folder).glob(f"*/{RECIPE}"))
        holds = bool(inside) or _of_whole_project(folder)
        itself = folder if folder.name not in ("", "..") else folder.resolve()  # findings compare the folder's name
        found += inside if holds and not (folder / RECIPE).is_file() else [itself]
    return tuple(dict.fromkeys(found))


def _findings(served: Sequence[Served]) -> Iterator[Finding]:
    needed: dict[str, set[str]] = {}  # name of a target → the backends of all that it serves
    for each in (one for one in served if one.folder.is_dir()):
        with contextlib.suppress(InputError):  # a finding of the folder
            models = view_folder(each.folder, each.target).models.values()
            needed.setdefault(each.target.name, set()).update(model.backend for model in models if model.is_readable)
    for each in served:
        # An option concerns all folders alike: then there is one finding, at the folder that they are in.
        file, line = each.settings or (each.folder if len(served) == 1 else each.folder.parent, 0)
        backends = needed.get(each.target.name, set()) & known_backends()
        yield from lint_release(each.target, needed=backends, file=file, line=line)
        yield from lint_folder(each.folder, target=each.target, archives=each.archives)


def _served_by(environment: str, folders: tuple[Path, ...]) -> tuple[list[Served], list[Finding]]:
    """The folders that an environment's endpoints serve, or those of ``folders`` alone, each with its endpoint.

    Then what is found of an endpoint's archives together; nothing where ``folders`` may be a part of them.
    """
    from tritonstack.config import load_environment  # noqa: PLC0415  a folder alone needs no settings

    path = environment_file(environment)
    settings, document = load_environment(path), read_yaml(path)
    places = Places.of_project()
    repositories, choice = project_folder() / "model_repos", choice_of(settings)
    served: list[Served] = []
    together: list[Finding] = []
    for number, endpoint in (
        (number, each) for number, of in enumerate(settings.endpoints) for each in of.type_settings
    ):
        sources = [source for model in endpoint.models for source in sources_of(model, repositories, choice)]
        targeted = [
            (source, target_of_archive(source, endpoint, environment, places, region=settings.region))
            for source in sources
        ]
        place = (path, document.line(("endpoints", number, "release")) or 0)
        served += [Served(source.folder, target, frozenset({source.name}), place) for source, target in targeted]
        with contextlib.suppress(InputError):  # of an overlay: a finding of its folder
            views = {source.name: view_source(source, view_folder(source.folder, of)) for source, of in targeted}
            line = document.line(("endpoints", number)) or 0
            target = ServingTarget.of_endpoint(endpoint, environment, region=settings.region)
            together += lint_endpoint(views, target=target, file=path, line=line)
    if not folders:
        return served, together
    wanted = {folder.resolve(): folder for folder in folders}
    known = {each.folder.resolve() for each in served}
    unserved = sorted(str(folder) for path, folder in wanted.items() if path not in known)
    if unserved:
        allowed = f"folders that {environment} serves: {listing(sorted(path.name for path in known))}"
        raise InputError([Problem(field="--environment", found=", ".join(unserved), allowed=allowed)])
    return [
        dataclasses.replace(each, folder=wanted[each.folder.resolve()])
        for each in served
        if each.folder.resolve() in wanted
    ], []


@click.command("explain", epilog="example: tritonstack explain max-batch-size")
@click.argument("rule_id", metavar="RULE", required=False)
@json_option()
def explain_command(*, rule_id: str | None, as_json: bool) -> None:
    """Explain a RULE of `tritonstack lint`: reason, source, a bad and a good example. Without RULE, list all rules."""
    if rule_id is None:
        _list_rules(as_json=as_json)
    elif rule_id not in rule_ids():
        near = alike(rule_id, rule_ids(), most=5)
        near += [each for each in rule_ids() if rule_id in each and each not in near]
        allowed = ", ".join(near) or "a rule of the list that `tritonstack explain` prints"
        raise InputError([Problem(field="RULE", found=rule_id, allowed=allowed)])
    elif as_json:
        print_json(_rule_document(rule(rule_id)) | {"page": page(rule(rule_id))})
    else:
        _print_page(page(rule(rule_id)))


def page(explained: Rule) -> str:
    """A rule's page as Markdown, its base repository included."""
    parts = [
        f"# {explained.id} ({explained.level}, {explained.category})",
        f"**{explained.title}**",
        f"_{explained.category}: {CATEGORIES[explained.category]}_",
        explained.page,
    ]
    if explained.endpoint:
        fields = ", ".join(f"{name}: {value}" for name, value in explained.endpoint.items())
        parts.append(f"Both are checked for an endpoint with {fields}.")
    if explained.base:
        parts += ["## What both change", base_page(explained.base)]
    if explained.sources:
        parts += ["## Source", "\n".join(f"- {source}" for source in explained.sources)]
    return "\n\n".join(parts) + "\n"


def _rule_document(each: Rule) -> dict[str, Any]:
    return {"id": each.id, "level": each.level, "category": each.category, "title": each.title, "sources": each.sources}


def _list_rules(*, as_json: bool) -> None:
    if as_json:
        print_json([_rule_document(each) for each in rules()])
        return
    width = max(len(each) for each in rule_ids())
    category = ""
    for each in rules():
        if each.category != category:
            category = each.category
            echo(f"\n{category}: {CATEGORIES[each.category]}")
        echo(f"  {each.id:<{width}}  {each.level:<7}  {each.title}")


def _print_page(text: str) -> None:
    """Drawn in a terminal, as it is anywhere else."""
    from rich.console import Console  # noqa: PLC0415  as above
    from rich.markdown import Markdown  # noqa: PLC0415

    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        echo(text, nl=False)
