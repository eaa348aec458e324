"""A model's next version: new files in the place of the old ones, what users set kept, the response recorded anew."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tritonstack.adding.additions import (
    NO_CODE,
    TOLERANCE,
    runs_code,
)
from tritonstack.adding.new_folder import Recorded, record_sample
from tritonstack.archives.programs import Report
from tritonstack.disk import exchange, link_or_copy, partial_folder
from tritonstack.errors import InputError, Problem, WorkFailedError, listing, refuse
from tritonstack.lint import ServingTarget, lint_folder
from tritonstack.lint.registry import shown
from tritonstack.models.contents import skipped_proof
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import read_config
from tritonstack.models.recipe import RECIPE, Recipe, read_recipe
from tritonstack.models.source import ArchiveSource, archives_of
from tritonstack.models.source_files import CONFIG, files_below, model_directories
from tritonstack.updating.contract import CallerChange
from tritonstack.updating.given_files import read_given
from tritonstack.updating.model_copy import ModelCopy, UpdateOptions
from tritonstack.updating.placed_files import place_files, renew_stored_files


@dataclass(frozen=True, kw_only=True)
class FileChange:
    name: str  # in the model folder
    before: int | None  # bytes; None where there was none
    after: int | None  # None where there is none any more


@dataclass(frozen=True, kw_only=True)
class Updated:
    folder: Path
    files: tuple[FileChange, ...]  # that changed
    changes: Mapping[str, tuple[CallerChange, ...]]  # Triton model → what of it changed
    recorded: tuple[Recorded, ...]  # empty where nothing here can run it
    skipped: str = ""  # why the response could not be recorded; empty where it was
    notes: tuple[str, ...] = ()  # what else changed, or did not


def update_model(
    name: str,
    source: Path | None,
    options: UpdateOptions,
    *,
    places: Places,
    target: ServingTarget | None,
    report: Report,
    announce: Report = lambda _text: None,
    show: Callable[[Mapping[str, tuple[CallerChange, ...]]], None] = lambda _changes: None,
) -> Updated:
    """Put a file, folder or archive in the place of a model's, or take the files of its folder as they are now.

    ``name``: the model folder, or ``FOLDER/MODEL`` for one of its Triton models. ``announce``: called with what code of
    the model is run, before it is; ``show``: with what callers notice, before anything is refused for it. All is made
    in a copy of the folder, which takes its place at the end: an error or an interruption changes nothing.

    Raises :class:`InputError` where the new version needs other requests and ``accept_changes`` is not set, and for
    what :func:`read_source` refuses; :class:`WorkFailedError` where the model fails.
    """
    folder_name, _, member = name.partition("/")
    folder = places.folder(folder_name)
    recipe = read_recipe(folder)
    member = member or recipe.model or folder_name
    _refuse_made(folder, recipe, member, with_file=source is not None)
    with partial_folder(places.repositories, name=f".{folder_name}") as partial, _named(partial):
        _link_others(partial, places.repositories, but=folder_name)
        copy = partial / folder_name
        shutil.copytree(folder, copy, symlinks=True, copy_function=link_or_copy)
        work = ModelCopy(folder=copy, recipe=recipe, member=member, options=options)
        with read_given(work, source, places=places, report=report, announce=announce) as given:
            changes, notes = place_files(work, given, own=source is None, report=report, target=target)
        notes += renew_stored_files(work, shown(folder))
        show(changes)
        breaking = [each for each in changes.get(work.addressed, ()) if each.breaks]
        if breaking and not options.accept_changes:
            raise InputError([_breaks(breaking, name, source)])
        errors = [found.problem() for found in lint_folder(copy, target=target) if found.level == "error"]
        refuse([each for each in errors if not each.found.startswith("sample.answer:")])
        recorded, skipped = _recorded(work, replace(places, repositories=partial), report, announce)
        notes += [note for each in recorded for note in _on_tolerance(each, recipe)]
        files = tuple(_changed_files(folder, copy))
        exchange(copy, folder)  # never a moment without the folder: what a killed process left here is removed
    return Updated(folder=folder, files=files, changes=changes, recorded=recorded, skipped=skipped, notes=tuple(notes))


@contextmanager
def _named(partial: Path) -> Iterator[None]:
    """Let messages about files of the copy name those of the model's folder."""
    inside = f"{partial.name}/"

    def own(text: str) -> str:
        return text.replace(inside, "")

    try:
        yield
    except InputError as error:
        problems = [
            replace(each, file=own(each.file or "") or None, found=own(each.found), advice=own(each.advice))
            for each in error.problems
        ]
        raise InputError(problems) from error
    except WorkFailedError as error:
        if inside not in str(error):
            raise
        raise WorkFailedError(own(str(error))) from error


def _link_others(partial: Path, repositories: Path, *, but: str) -> None:
    """Link the other model folders next to the copy: their models may be used, and export scripts share files."""
    for path in repositories.iterdir():
        if path.name != but and not path.name.startswith(".") and path.is_dir():
            (partial / path.name).symlink_to(path.resolve(), target_is_directory=True)


def _refuse_made(folder: Path, recipe: Recipe, member: str, *, with_file: bool) -> None:
    """Refuse a model that the folder does not have, and files and responses that an export makes."""
    names = [path.name for path in model_directories(folder)]
    problems = []
    used = {name: used.folder for used in recipe.uses for name in used.models}
    if member in used:
        advice = f"tritonstack update {used[member]} FILE"
        found, allowed = f"{member}, which is taken from {used[member]}", f"a model of the folder: {listing(names)}"
        problems.append(Problem(file=shown(folder), found=found, allowed=allowed, advice=advice))
    elif member not in names:
        found, allowed = f"no Triton model {member}", f"{folder.name}/MODEL with one of {listing(names)}"
        problems.append(Problem(file=shown(folder), found=found, allowed=allowed))
    for name in sorted(recipe.produced - recipe.files.keys()):
        if name == recipe.sample.answer or (with_file and name.startswith(f"{member}/")):
            script = next(each.script for each in recipe.exports if name in each.produces)
            advice = f"change {shown(folder / script)}, then tritonstack build {folder.name}"
            found = f"{name}, which an export makes"
            problems.append(Problem(file=shown(folder / RECIPE), found=found, allowed="a file there", advice=advice))
            break
    refuse(problems)


def _breaks(changes: Sequence[CallerChange], name: str, source: Path | None) -> Problem:
    command = shlex.join(["tritonstack", "update", name, *([str(source)] if source else []), "--accept-changes"])
    texts = [f"{each.what}: {each.before or 'none'} → {each.after or 'none'}" for each in changes]
    return Problem(
        file=str(source) if source else name,
        found="; ".join(texts),
        allowed="a next version that takes the requests of today, and gives their outputs",
        advice=f"if callers change with it: {command}\n           else serve it beside this one: tritonstack add FILE "
        "--name NAME",
    )


def _recorded(work: ModelCopy, places: Places, report: Report, announce: Report) -> tuple[tuple[Recorded, ...], str]:
    """The responses to the sample requests, or why nothing here can give one."""
    sources: dict[str, ArchiveSource] = {}
    for source in archives_of(work.folder):
        sources.setdefault(source.recipe.sample.answer, source)
    backends = {path.name: read_config((path / CONFIG).read_text()).backend for path in model_directories(work.folder)}
    if lacking := skipped_proof(backends.values()):
        return (), lacking
    if programs := [name for name, backend in backends.items() if backend not in NO_CODE]:
        announce(runs_code(programs))
    return tuple(record_sample(each, places=places, report=report) for each in sources.values()), ""


def _on_tolerance(recorded: Recorded, recipe: Recipe) -> Iterator[str]:
    """Whether the tolerance, which stays, fits the values of the new response."""
    if recorded.largest > 1 and recipe.sample.tolerance < TOLERANCE * recorded.largest / 10:
        yield (
            f"{RECIPE} keeps sample.tolerance {recipe.sample.tolerance:g}: values up to {recorded.largest:,.4g} differ "
            f"by more on a GPU; {TOLERANCE * recorded.largest:.1g} suits them"
        )


def _changed_files(before: Path, after: Path) -> Iterator[FileChange]:
    """Files whose content differs; one that is still the same file on disk is not read."""
    old, new = dict(files_below(before)), dict(files_below(after))
    for name in sorted(old.keys() | new.keys()):
        one, other = old.get(name), new.get(name)
        if one is not None and other is not None and (one.samefile(other) or _same_content(one, other)):
            continue
        sizes = [None if path is None else path.stat().st_size for path in (one, other)]
        yield FileChange(name=name, before=sizes[0], after=sizes[1])


_BLOCK = 1 << 20


def _same_content(one: Path, other: Path) -> bool:
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as first, other.open("rb") as second:
        while block := first.read(_BLOCK):
            if block != second.read(_BLOCK):
                return False
    return True
