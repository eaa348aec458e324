"""The offline linter of model folders: what Triton or SageMaker would refuse, or serve otherwise than meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from tritonstack.errors import InputError, Problem
from tritonstack.models.lint.checks import findings
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.release import lint_release
from tritonstack.models.lint.target import Target, known_backends
from tritonstack.models.lint.variants import folder_findings
from tritonstack.models.lint.view import view_repository

__all__ = ["Finding", "Target", "lint_folder", "lint_release", "lint_repository", "refuse_errors"]


def lint_folder(
    folder: Path,
    *,
    target: Target | None = None,
    backends: Collection[str] | None = None,
    archives: Collection[str] | None = None,
) -> tuple[Finding, ...]:
    """Every finding about a model folder, or about a model repository without a recipe, sorted by file and line.

    Files that an export makes need not exist; a folder with overlays is linted as each of them. ``target``: where it
    shall be served; without it every backend of the catalogue's releases is taken, or ``backends`` alone.
    ``archives``: of a folder's overlays, those alone.
    Raises :class:`InputError` where the folder does not exist or a recipe is wrong.
    """
    if not folder.is_dir():
        raise InputError([Problem(file=str(folder), found="no such folder", allowed="a model folder")])
    known = frozenset(backends) if backends is not None else known_backends()
    return _sorted(folder_findings(folder, target or Target(backends=known), archives))


def lint_repository(
    folder: Path, *, addressed: str, absent: Collection[str] = (), target: Target | None = None
) -> tuple[Finding, ...]:
    """Every finding about a staged repository, in which everything has to be there.

    ``absent``: files of the addressed model that need not be, such as an environment that the local one stands in for.
    ``target``: where it shall be served.
    """
    return _sorted(findings(view_repository(folder, addressed=addressed, target=target or Target(), absent=absent)))


def refuse_errors(
    folders: Sequence[Path],
    *,
    staged_for: str | None = None,
    absent: Collection[str] = (),
    target: Target | None = None,
) -> None:
    """Raise :class:`InputError` with every error of all folders at once; warnings pass.

    ``staged_for``: the folders are staged repositories whose requests reach this model, and ``absent`` names its files
    that need not be there. ``target``: where they shall be served; without it backends are not checked, for an image of
    one's own may have others.
    """
    problems: list[Problem] = []
    for folder in folders:
        if staged_for is None:
            found = lint_folder(folder, target=target or Target())
        else:
            found = lint_repository(folder, addressed=staged_for, absent=absent, target=target)
        problems += [finding.problem() for finding in found if finding.level == "error"]
    if problems:
        raise InputError(problems)


def _sorted(found: Iterator[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(set(found), key=lambda each: (str(each.file), each.line, each.column, each.rule, each.found)))
