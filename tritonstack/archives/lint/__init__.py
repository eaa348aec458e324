"""The offline linter of model folders: what Triton or SageMaker would refuse, or serve otherwise than meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from tritonstack.archives.lint.config import check_config
from tritonstack.archives.lint.ensemble import check_ensembles
from tritonstack.archives.lint.finding import Finding
from tritonstack.archives.lint.layout import check_layout
from tritonstack.archives.lint.onnxruntime import check_onnxruntime
from tritonstack.archives.lint.recipe import check_recipe
from tritonstack.archives.lint.view import RepositoryView, view_folder, view_repository
from tritonstack.errors import InputError, Problem

__all__ = ["Finding", "lint_folder", "lint_repository", "refuse_errors"]


def lint_folder(folder: Path, *, backends: Collection[str] | None = None) -> tuple[Finding, ...]:
    """Every finding about a model folder, or about a model repository without a recipe, sorted by file and line.

    Files that an export makes need not exist. ``backends``: those of the release that shall serve it.
    Raises :class:`InputError` where the folder does not exist or a recipe is wrong.
    """
    if not folder.is_dir():
        raise InputError([Problem(file=str(folder), found="no such folder", allowed="a model folder")])
    return _sorted(_all(view_folder(folder), backends))


def lint_repository(folder: Path, *, addressed: str) -> tuple[Finding, ...]:
    """Every finding about a staged repository, in which everything has to be there."""
    return _sorted(_all(view_repository(folder, addressed=addressed), None))


def refuse_errors(folders: Sequence[Path], *, staged_for: str | None = None) -> None:
    """Raise :class:`InputError` with every error of all folders at once; warnings pass.

    ``staged_for``: the folders are staged repositories whose requests reach this model.
    """
    problems: list[Problem] = []
    for folder in folders:
        found = lint_folder(folder) if staged_for is None else lint_repository(folder, addressed=staged_for)
        problems += [finding.problem() for finding in found if finding.level == "error"]
    if problems:
        raise InputError(problems)


def _all(view: RepositoryView, backends: Collection[str] | None) -> Iterator[Finding]:
    yield from check_recipe(view)
    yield from check_layout(view)
    for model in view.models.values():
        yield from check_config(model, backends=backends)
    yield from check_ensembles(view)
    yield from check_onnxruntime(view)


def _sorted(findings: Iterator[Finding]) -> tuple[Finding, ...]:
    return tuple(
        sorted(set(findings), key=lambda finding: (str(finding.file), finding.line, finding.rule, finding.found))
    )
