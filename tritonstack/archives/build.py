"""Model folders → archives and manifests under ``.local/archives``, each linted and built once for its digest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from tritonstack.archives.exporting import exported_files
from tritonstack.archives.outcome import ArchiveOutcome, counted
from tritonstack.archives.programs import Report, Spent, require_environment
from tritonstack.archives.staging import Proofs, Task, finish, stage_archive
from tritonstack.archives.wanted import WantedArchive, left_to_deployment, wanted_archives
from tritonstack.config import Environment
from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem, collecting, listing, nearest, refuse
from tritonstack.lint import Finding, ServingTarget, lint_folder, refuse_errors
from tritonstack.lint.instances import target_of_archive
from tritonstack.models.build_target import refuse_unservable
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import Manifest, Places
from tritonstack.models.selection import choice_of, sources_of
from tritonstack.models.source import ArchiveSource, BuildChoice
from tritonstack.naming import ArchiveName, Platform


def refuse_errors_of_environment(
    environment: Environment, *, models: Sequence[str] = (), places: Places | None = None
) -> None:
    """Raise :class:`InputError` with every error of what an environment serves, or of ``models`` alone; warnings pass.

    Each archive is held against the release and the instance type of its endpoints, as ``tritonstack lint
    --environment`` does. ``models``: archives, or folders, which stand for all their archives.
    """
    places, choice = places or Places.of_project(), choice_of(environment)
    found: dict[Finding, None] = {}
    for endpoint in (of_type for each in environment.endpoints for of_type in each.type_settings):
        for source in chain.from_iterable(sources_of(entry, places.repositories, choice) for entry in endpoint.models):
            if models and not {source.name, source.folder.name} & set(models):
                continue
            target = target_of_archive(source, endpoint, environment.environment, places, region=environment.region)
            found |= dict.fromkeys(lint_folder(source.folder, target=target, archives={source.name}))
    refuse_errors(found)


BUILT_AT_ONCE = 4
"""How many tiny models are exported and proven at once, where there are as many CPUs: PyTorch takes 1 GB for each."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """One archive; ``fresh`` if this build made it, and what its exports and its proof then took."""

    name: ArchiveName
    target: str | None
    manifest: Manifest
    fresh: bool
    spent: tuple[Spent, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BuildSummary:
    built: tuple[Built, ...]  # the archives
    left: tuple[str, ...] = ()  # the names of those that the deployment builds, since they need a TensorRT engine
    environment: str = ""  # the environment's name, or empty

    def __str__(self) -> str:
        fresh = [item for item in self.built if item.fresh]
        made = f"{len(fresh)} built, {sum(item.manifest.archive.bytes for item in fresh):,} bytes" if fresh else ""
        kept: list[ArchiveOutcome] = ["there already" for item in self.built if not item.fresh]
        skipped = [item.name.model for item in self.built if item.manifest.proof_skipped]
        parts = (
            made,
            counted(kept),
            f"proof skipped: {', '.join(skipped)}" if skipped else "",
            left_to_deployment(self.left, self.environment),
        )
        return "; ".join(part for part in parts if part)


def build_environment(
    environment: Environment,
    *,
    models: Sequence[str] = (),
    local: bool = True,
    places: Places | None = None,
    report: Report = lambda _text: None,
) -> BuildSummary:
    """Build every archive of an environment, or those named.

    What is built already is left alone. Every model folder is linted before the first is built. ``local``: for the
    local Triton, whatever the endpoints' platforms. Archives that need a TensorRT engine are left to the deployment
    where the environment's deployment builds them.

    Raises :class:`InputError` for what is wrong with folders or names, or cannot be built for its endpoint;
    :class:`WorkFailedError` where an export or a proof fails.
    """
    places = places or Places.of_project()
    served: dict[tuple[str, str | None], WantedArchive] = {}
    for wanted in wanted_archives(environment, places.repositories, local=local):
        served.setdefault((wanted.source.name, wanted.target), wanted)
    known = {name for name, _ in served}
    named = _named(models, known, places, choice_of(environment), environment=environment.environment)
    chosen = [served[key] for key in sorted(served, key=str) if not models or key[0] in named]
    left = {wanted.source.name for wanted in chosen if wanted.leaves_engine}
    tasks = [
        Task(source=wanted.source, name=wanted.name, platform=wanted.platform)
        for wanted in chosen
        if wanted.source.name not in left
    ]
    summary = _build_all(tasks, places=places, report=report)
    return replace(summary, left=tuple(sorted(left)), environment=environment.environment)


def build_models(
    models: Sequence[str],
    *,
    choice: BuildChoice | None = None,
    places: Places | None = None,
    report: Report = lambda _text: None,
) -> BuildSummary:
    """Build archives by their names, or those of whole folders, for the local Triton; see :func:`build_environment`."""
    places = places or Places.of_project()
    sources: dict[str, ArchiveSource] = {}
    problems: list[Problem] = []
    for name in models:
        with collecting(problems):
            sources |= {source.name: source for source in sources_of(name, places.repositories, choice)}
    refuse(problems)
    return build_sources(list(sources.values()), places=places, report=report)


def build_sources(
    sources: Sequence[ArchiveSource], *, places: Places, prove: bool = True, report: Report = lambda _text: None
) -> BuildSummary:
    """Build archives for the local Triton; see :func:`build_environment`.

    ``prove``: False where the sample is sent to an endpoint instead; then ``places`` are none that others publish from.
    """
    return _build_all([_task(source, None, prove=prove) for source in sources], places=places, report=report)


def _task(source: ArchiveSource, platform: Platform | None, *, prove: bool = True) -> Task:
    name = ArchiveName(model=source.name, digest=model_digest(source))
    return Task(source=source, name=name, platform=platform, prove=prove)


def _named(
    models: Iterable[str], known: set[str], places: Places, choice: BuildChoice, *, environment: str
) -> set[str]:
    """The archives that ``models`` mean, all of which the environment has to serve."""
    names: set[str] = set()
    problems: list[Problem] = []
    for model in models:
        try:
            found = {source.name for source in sources_of(model, places.repositories, choice)}
        except InputError:
            found = set()
        if not found or not found <= known:
            allowed = f"models of {environment}: {listing(sorted(known))}"
            problems.append(Problem(field="MODELS", found=model, allowed=allowed, advice=nearest(model, known)))
        names |= found
    refuse(problems)
    return names


def _build_all(tasks: Sequence[Task], *, places: Places, report: Report) -> BuildSummary:
    waiting = [task for task in tasks if places.built(task.name, task.target) is None]
    for platform in dict.fromkeys(task.platform for task in waiting):
        refuse_unservable((task.source for task in waiting if task.platform == platform), platform=platform)
    refuse_errors_of_folders(dict.fromkeys(task.source.folder for task in waiting))
    _refuse_missing_environments(waiting, places)
    proofs: Proofs = {}
    folders: dict[Path, list[Task]] = {}
    for task in tasks:  # what shares exports is built one after the other, so that each runs once
        folders.setdefault(next(iter(task.source.used), task.source).folder, []).append(task)

    def build(of_folder: Sequence[Task]) -> list[Built]:
        return [_build(task, places, report, proofs) for task in of_folder]

    if all(task.source.choice.size == "tiny" for task in tasks):
        with ThreadPoolExecutor(min(os.cpu_count() or 1, BUILT_AT_ONCE)) as pool:
            built = list(pool.map(build, folders.values()))
    else:  # a model of real size may need the machine's whole memory
        built = list(map(build, folders.values()))
    return BuildSummary(built=tuple(chain.from_iterable(built)))


def _refuse_missing_environments(tasks: Iterable[Task], places: Places) -> None:
    """Before the first export, rather than after minutes: every environment that is still to be made."""
    waiting = {part for task in tasks for part in (task.source, *task.source.used) if part.recipe.exports}
    missing = {part for part in waiting if not exported_files(part, places.exports).is_dir()}
    problems: list[Problem] = []
    for name in sorted({export.environment for part in missing for export in part.recipe.exports}):
        with collecting(problems):
            require_environment(name)
    refuse(problems)


def _build(task: Task, places: Places, report: Report, proofs: Proofs) -> Built:
    finished = places.built(task.name, task.target)
    if finished is not None:
        return Built(name=task.name, target=task.target, manifest=finished, fresh=False)
    with partial_folder(places.archives, name=f".{task.name.model}") as work:
        manifest, spent = build_archive(task, work, places, report, proofs)
    return Built(name=task.name, target=task.target, manifest=manifest, fresh=True, spent=spent)


def refuse_errors_of_folders(folders: Iterable[Path]) -> None:
    """Raise :class:`InputError` with every error that the linter finds in model folders, before any is built."""
    # Without a target's backends: an image of one's own may have others.
    refuse_errors(finding for folder in folders for finding in lint_folder(folder, target=ServingTarget()))


def build_archive(
    task: Task, work: Path, places: Places, report: Report, proofs: Proofs
) -> tuple[Manifest, tuple[Spent, ...]]:
    """Export, lint, prove and pack an archive that holds no engine to build, in the folder ``work``.

    Returns its manifest, and what its exports and its proof took. Raises as :func:`stage_archive`.
    """
    staged = stage_archive(task, work, places, report, proofs)
    return finish(staged, places=places, report=report), staged.spent
