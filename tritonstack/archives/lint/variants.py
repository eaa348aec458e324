"""The overlays of a model folder, linted as the archives that they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from tritonstack.archives.folder import CONFIG
from tritonstack.archives.lint.checks import findings
from tritonstack.archives.lint.finding import Finding
from tritonstack.archives.lint.target import Target
from tritonstack.archives.lint.view import RepositoryView, produced_below, view_folder, view_model
from tritonstack.archives.model_config import read_config
from tritonstack.archives.recipe import RECIPE
from tritonstack.archives.source import ArchiveSource, archives_of
from tritonstack.errors import InputError, Problem


def folder_findings(folder: Path, target: Target) -> Iterator[Finding]:
    """Every finding about a model folder: as it is written, and as each overlay makes it.

    What an overlay adds names its last fragment: its merged configuration has lines that no file has.
    Raises :class:`InputError` where the recipe is wrong.
    """
    base = view_folder(folder, target)
    if base.recipe is None or not base.recipe.overlays:
        yield from findings(base)
        return
    known: set[tuple[object, ...]] = set()
    for source in archives_of(folder):
        try:
            view = view_source(source, base)
        except InputError as error:
            yield from (_unmerged(problem, folder) for problem in error.problems)
            continue
        for finding in findings(view):
            placed = _placed(finding, source)
            key = (placed.file, placed.rule, placed.found, placed.allowed)
            if key not in known:
                known.add(key)
                yield placed


def view_source(source: ArchiveSource, base: RepositoryView) -> RepositoryView:
    """An archive as its overlay makes it; ``base``: the folder as it is written."""
    models = dict(base.models)
    for model in source.own_models():
        written = view_model(model.directory, produced_below(source.recipe, model.directory.name))
        gone = source.produced - {name for export in source.recipe.exports for name in export.produces}
        files = {name for name in written.files if f"{model.directory.name}/{name}" not in gone}
        models[model.name] = dataclasses.replace(
            written, text=model.config, config=read_config(model.config), files=frozenset(files)
        )
    return dataclasses.replace(base, recipe=source.recipe, addressed=source.model, models=models)


def _unmerged(problem: Problem, folder: Path) -> Finding:
    """A fragment that is missing, or no text format: then its file is said with the line."""
    if problem.field:
        found = f"{problem.field}: {problem.found}"
        return Finding(file=folder / RECIPE, rule="recipe-file", found=found, allowed=problem.allowed)
    file, _, line = str(problem.file).rpartition(":")
    return Finding(file=Path(file), line=int(line), rule="config", found=problem.found, allowed=problem.allowed)


def _placed(finding: Finding, source: ArchiveSource) -> Finding:
    """The finding at the overlay's last fragment, where it is about the merged configuration."""
    merged = source.folder / source.directory / CONFIG
    if not source.fragments or finding.file != merged:
        return finding
    return dataclasses.replace(finding, file=source.folder / source.fragments[-1], line=0, column=0)
