"""The overlays of a model folder, linted as the archives that they are; what is found names the line that says it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from tritonstack.errors import InputError, Problem
from tritonstack.models.folder import CONFIG
from tritonstack.models.lint.checks import findings
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.target import Target
from tritonstack.models.lint.view import RepositoryView, produced_below, view_folder, view_model
from tritonstack.models.model_config import read_config
from tritonstack.models.pbtxt import Field, PbtxtError, parse
from tritonstack.models.recipe import RECIPE
from tritonstack.models.source import ArchiveSource, archives_of


def folder_findings(folder: Path, target: Target, archives: Collection[str] | None = None) -> Iterator[Finding]:
    """Every finding about a model folder: as each overlay makes it, or as it is written where it has none.

    ``archives``: the names of the overlays' archives that count; None for all. Copies differ in their names only.
    Raises :class:`InputError` where the recipe is wrong.
    """
    base = view_folder(folder, target)
    if base.recipe is None or not base.recipe.overlays:
        yield from findings(base)
        return
    known: set[tuple[object, ...]] = set()
    for source in archives_of(folder):
        if archives is not None and source.name not in archives:
            continue
        try:
            view = view_source(source, base)
        except InputError as error:
            yield from (_unmerged(problem, folder) for problem in error.problems)
            continue
        for finding in findings(view):
            placed = _placed(finding, source, view)
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


def _placed(finding: Finding, source: ArchiveSource, view: RepositoryView) -> Finding:
    """A finding about the merged configuration at the file that says it: the last fragment wins, as in the merge."""
    merged = source.folder / source.directory / CONFIG
    if not source.fragments or finding.file != merged:
        return finding
    fragments = [source.folder / name for name in reversed(source.fragments)]
    model = view.models[source.model]
    before = [field for field in _fields(model.text) if field.line <= finding.line]
    if not before:
        return dataclasses.replace(finding, file=fragments[0], line=0, column=0)
    name = before[-1].name
    return _at_field(finding, name, sum(field.name == name for field in before) - 1, [*fragments, merged])


def _at_field(finding: Finding, name: str, index: int, files: Sequence[Path]) -> Finding:
    """The finding at a field of the first file that has it: its ``index``-th occurrence."""
    for file in files:
        same = [field for field in _fields(file.read_text(encoding="utf-8", errors="replace")) if field.name == name]
        if same:
            return dataclasses.replace(finding, file=file, line=same[min(index, len(same) - 1)].line, column=0)
    return dataclasses.replace(finding, file=files[0], line=0, column=0)


def _fields(text: str) -> tuple[Field, ...]:
    try:
        return parse(text).fields
    except PbtxtError:
        return ()
