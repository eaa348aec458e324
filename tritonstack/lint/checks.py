"""Every check of the linter, and the folders and repositories that they are run on. A new check is one line here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from tritonstack.errors import InputError, Problem, refuse
from tritonstack.lint.backends.backend import check_backend, check_formats
from tritonstack.lint.backends.fil import check_fil
from tritonstack.lint.backends.fil_file import check_forest
from tritonstack.lint.backends.libraries import check_libraries
from tritonstack.lint.backends.onnx import check_graph, check_operators
from tritonstack.lint.backends.onnxruntime import check_onnxruntime
from tritonstack.lint.backends.tensorrt import check_engine, check_tensorrt_fields
from tritonstack.lint.batching import check_batch_tensors, check_batching, check_queues
from tritonstack.lint.config import check_metrics, check_name, check_newer_fields, check_parameters, check_syntax
from tritonstack.lint.content import check_content
from tritonstack.lint.ensemble import check_ensembles, check_requests
from tritonstack.lint.instances import check_instances, check_python_on_instance, check_response_cache, check_size
from tritonstack.lint.layout import check_files, check_inside, check_layout, check_recipe, check_versions
from tritonstack.lint.python.fetches import check_fetches
from tritonstack.lint.python.python_model import check_calls, check_execution, check_program
from tritonstack.lint.python.warmup_calls import check_warmup_calls
from tritonstack.lint.registry import Finding
from tritonstack.lint.sequences import check_sequences
from tritonstack.lint.tensors import check_tensors
from tritonstack.lint.view import (
    RepositoryView,
    ServingTarget,
    known_backends,
    produced_below,
    view_folder,
    view_repository,
)
from tritonstack.lint.warmup import check_warmup
from tritonstack.models.model_config import read_config
from tritonstack.models.model_view import ModelView, view_model
from tritonstack.models.pbtxt import Field, PbtxtError, parse
from tritonstack.models.recipe import RECIPE
from tritonstack.models.source import ArchiveSource, archives_of
from tritonstack.models.source_files import CONFIG
from tritonstack.untrusted.folder_files import text_inside

ARCHIVE_CHECKS: tuple[Callable[[RepositoryView], Iterator[Finding]], ...] = (
    check_recipe,
    check_layout,
    check_inside,
    check_files,
    check_ensembles,
    check_requests,
    check_calls,
    check_onnxruntime,
    check_size,
)
"""Checks of an archive as a whole."""

MODEL_CHECKS: tuple[Callable[[RepositoryView, ModelView], Iterator[Finding]], ...] = (
    check_syntax,
    check_newer_fields,
    check_metrics,
    check_name,
    check_versions,
    check_content,
    check_backend,
    check_libraries,
    check_tensors,
    check_tensorrt_fields,
    check_batch_tensors,
    check_batching,
    check_queues,
    check_sequences,
    check_instances,
    check_warmup,
    check_warmup_calls,
    check_execution,
    check_program,
    check_fetches,
    check_graph,
    check_operators,
    check_formats,
    check_engine,
    check_python_on_instance,
    check_parameters,
    check_fil,
    check_forest,
    check_response_cache,
)
"""Checks of one model of an archive."""


def lint_folder(
    folder: Path, *, target: ServingTarget | None = None, archives: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Every finding about a model folder, or about a model repository without a recipe, sorted by file and line.

    Files that an export makes need not exist; a folder with overlays is linted as each of them, or as those of
    ``archives`` alone. ``target``: where it is to be served; without it every backend of the catalogue's releases is
    allowed. Raises :class:`InputError` where the folder does not exist or a recipe is wrong.
    """
    if not folder.is_dir():
        raise InputError([Problem(file=str(folder), found="no such folder", allowed="a model folder")])
    return _sorted(_folder_findings(folder, target or ServingTarget(backends=known_backends()), archives))


def lint_repository(
    folder: Path, *, addressed: str, absent: Collection[str] = (), target: ServingTarget | None = None
) -> tuple[Finding, ...]:
    """Every finding about a staged repository, in which everything has to be there.

    ``absent``: files of models that need not be (``<model>/<file>``), such as an environment that has a stand-in.
    ``target``: where it is to be served.
    """
    return _sorted(
        _findings(view_repository(folder, addressed=addressed, target=target or ServingTarget(), absent=absent))
    )


def refuse_errors(found: Iterable[Finding]) -> None:
    """Raise :class:`InputError` with every error among findings; warnings pass."""
    refuse([finding.problem() for finding in found if finding.level == "error"])


def _sorted(found: Iterator[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(set(found), key=lambda each: (str(each.file), each.line, each.column, each.rule, each.found)))


def _findings(view: RepositoryView) -> Iterator[Finding]:
    """Every finding about an archive, unsorted."""
    for check in ARCHIVE_CHECKS:
        yield from check(view)
    for model in view.models.values():
        for model_check in MODEL_CHECKS:
            yield from model_check(view, model)


def _folder_findings(folder: Path, target: ServingTarget, archives: Collection[str] | None) -> Iterator[Finding]:
    """Every finding about a model folder: as each overlay makes it, or as it is written where it has none.

    Copies differ in their names only. Raises :class:`InputError` where the recipe is wrong.
    """
    base = view_folder(folder, target)
    if base.recipe is None or not base.recipe.overlays:
        yield from _findings(base)
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
        for placed in (_placed(finding, source, view) for finding in _findings(view)):
            key = (placed.file, placed.rule, placed.found, placed.allowed)
            if key not in known:
                known.add(key)
                yield placed


def view_source(source: ArchiveSource, base: RepositoryView) -> RepositoryView:
    """An archive as its overlay makes it; ``base``: the folder as it is written."""
    models = dict(base.models)
    for model in source.own_models:
        written = view_model(model.directory, produced_below(source.recipe, model.directory.name))
        made = {name for export in source.recipe.exports for name in export.produces}
        gone = source.produced - made - source.recipe.files.keys()
        files = {name for name in written.files if f"{model.directory.name}/{name}" not in gone}
        models[model.name] = dataclasses.replace(
            written, text=model.config, config=read_config(model.config), files=frozenset(files)
        )
    return dataclasses.replace(base, recipe=source.recipe, addressed=source.model, models=models)


def _unmerged(problem: Problem, folder: Path) -> Finding:
    """A fragment that is missing, or no text format: then its file is named with the line."""
    if problem.field:
        found = f"{problem.field}: {problem.found}"
        return Finding(file=folder / RECIPE, rule="recipe-file", found=found, allowed=problem.allowed)
    file, _, line = str(problem.file).rpartition(":")
    return Finding(file=Path(file), line=int(line), rule="config", found=problem.found, allowed=problem.allowed)


def _placed(finding: Finding, source: ArchiveSource, view: RepositoryView) -> Finding:
    """A finding about the merged configuration, at the field of the file that sets it: the last fragment wins."""
    merged = source.folder / source.directory / CONFIG
    if not source.fragments or finding.file != merged:
        return finding
    fragments = [source.folder / name for name in reversed(source.fragments)]
    before = [field.name for field in _fields(view.models[source.model].text) if field.line <= finding.line]
    for file in [*fragments, merged] if before else ():
        fields = _fields(text_inside(file, source.folder))
        if lines := [field.line for field in fields if field.name == before[-1]]:
            line = lines[min(before.count(before[-1]), len(lines)) - 1]
            return dataclasses.replace(finding, file=file, line=line, column=0)
    return dataclasses.replace(finding, file=fragments[0], line=0, column=0)


def _fields(text: str) -> tuple[Field, ...]:
    try:
        return parse(text).fields
    except PbtxtError:
        return ()
