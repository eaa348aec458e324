"""Writes a model folder below ``model_repos/``: whole or not at all, beside what is there; then records its sample."""

from __future__ import annotations

import dataclasses
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError
from tritonstack.models.adding.additions import TOLERANCE, Addition
from tritonstack.models.adding.recording import Recorded, record_sample
from tritonstack.models.adding.seeded_request import body_text
from tritonstack.models.lint import Finding, Target, lint_folder
from tritonstack.models.lint.registry import shown
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import read_config
from tritonstack.models.programs import Report
from tritonstack.models.recipe import RECIPE
from tritonstack.models.source import CONFIG, archives_of, skipped_proof

SCHEMA = "schemas/recipe.schema.json"
ANSWER = "sample/answer.json"


@dataclass(frozen=True, kw_only=True)
class Added:
    """A model folder that was written."""

    addition: Addition
    folder: Path
    recorded: Recorded | None  # None where no response could be recorded
    failure: TritonstackError | None = None  # why not, or why the endpoint cannot serve it
    remedy: str = ""  # what to do about it
    findings: tuple[Finding, ...] = ()  # of the linter


def refuse_existing(additions: Sequence[Addition], repositories: Path) -> None:
    """Raise :class:`InputError` for every folder that is there already, and for two of one name."""
    problems: list[Problem] = []
    names = [addition.name for addition in additions]
    for name in dict.fromkeys(names):
        folder = repositories / name
        if names.count(name) > 1:
            found, advice = f"{names.count(name)} models that would be called {name}", "add each by itself with --name"
            problems.append(Problem(found=found, allowed="a name for each", advice=advice))
        elif folder.exists() or folder.is_symlink():
            problems.append(
                Problem(
                    file=shown(folder),
                    found="a folder of that name, which is never overwritten",
                    allowed="a new name",
                    advice=f"give another one (--name), change the files there (tritonstack build {name} "
                    "--record-sample renews the response), or remove the folder first",
                )
            )
    if problems:
        raise InputError(problems)


def write_folder(addition: Addition, *, places: Places, target: Target | None, report: Report) -> Added:
    """Write a model folder, lint it, and record the response to its sample request.

    A folder whose model cannot be run yet is written too, without the response. Until everything is written nothing
    of it is there. Raises :class:`InputError` where the folder exists.
    """
    refuse_existing([addition], places.repositories)
    final = places.folder(addition.name)
    with partial_folder(places.repositories, name=f".{addition.name}") as partial:
        folder = partial / addition.name
        _write(addition, folder, schema=_schema(places.repositories), report=report)
        findings = [_placed(each, folder, final) for each in lint_folder(folder, target=target)]
        findings = [each for each in findings if not _awaits_answer(each)]
        of_endpoint = [finding.problem() for finding in findings if finding.level == "error"]
        errors = of_endpoint if target is None else _errors(folder, final)
        recorded: Recorded | None = None
        failure: TritonstackError | None = InputError(errors) if errors else None
        remedy = f"mend the files there, then record it: tritonstack build {addition.name} --record-sample"
        if not errors and (lacking := skipped_proof(read_config(model.config).backend for model in addition.models)):
            failure = WorkFailedError(f"  found:   nothing here answers it: {lacking}")
            remedy = f"write {shown(final / ANSWER)}, in KServe's JSON form, by what made the model"
        elif not errors:
            (source,) = archives_of(folder)
            inside = dataclasses.replace(places, repositories=partial)
            try:
                recorded = record_sample(source, places=inside, report=report)
            except TritonstackError as error:
                failure = _renamed(error, partial)
            else:
                _set_tolerance(folder / RECIPE, recorded.largest)
                recorded = dataclasses.replace(recorded, file=final / ANSWER)
                failure = InputError(of_endpoint) if of_endpoint else None
                remedy = f"name it in `models` of an endpoint that can, or mend {shown(final)}"
        folder.rename(final)
    return Added(
        addition=addition, folder=final, recorded=recorded, failure=failure, remedy=remedy, findings=tuple(findings)
    )


def _schema(repositories: Path) -> str:
    return f"../../{SCHEMA}" if (repositories.parent / SCHEMA).is_file() else ""


def _write(addition: Addition, folder: Path, *, schema: str, report: Report) -> None:
    (folder / "sample").mkdir(parents=True)
    (folder / RECIPE).write_text(addition.recipe(tolerance=TOLERANCE, schema=schema), encoding="utf-8")
    if addition.sample_file is None:
        request = body_text("inputs", addition.sample_request()).encode()
    else:
        request = addition.sample_file[1]
    (folder / addition.request_file).write_bytes(request)
    for name, source in addition.client_files.items():
        shutil.copyfile(source, folder / name)
    for model in addition.models:
        directory = folder / model.name
        directory.mkdir()
        (directory / CONFIG).write_text(model.config, encoding="utf-8")
        for name, source in model.files.items():
            report(f"copying {source.name}")
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, directory / name)


def _set_tolerance(recipe: Path, largest: float) -> None:
    """Widen the tolerance, which is absolute, for a response with large values."""
    if largest <= 1:
        return
    step = 10.0 ** math.floor(math.log10(TOLERANCE * largest))
    wide = float(f"{math.ceil(TOLERANCE * largest / step) * step:.1g}")  # one digit, rounded up
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace(f"tolerance: {TOLERANCE!r}", f"tolerance: {wide!r}"), encoding="utf-8")


def _errors(folder: Path, final: Path) -> list[Problem]:
    """What no endpoint can serve of the folder."""
    found = (_placed(each, folder, final) for each in lint_folder(folder, target=Target()))
    return [each.problem() for each in found if each.level == "error" and not _awaits_answer(each)]


def _awaits_answer(finding: Finding) -> bool:
    return finding.rule == "recipe-file" and finding.found.startswith("sample.answer:")


def _placed(finding: Finding, folder: Path, final: Path) -> Finding:
    """A finding about the folder at its final place."""
    if not finding.file.is_relative_to(folder):
        return finding
    return dataclasses.replace(finding, file=final / finding.file.relative_to(folder))


def _renamed(error: TritonstackError, partial: Path) -> TritonstackError:
    """An error about a file of the unfinished folder, by its final name."""
    wrong = f"{partial.name}/"
    if not isinstance(error, InputError):
        return type(error)(str(error).replace(wrong, ""))
    problems = [
        dataclasses.replace(each, file=each.file.replace(wrong, "") if each.file else None) for each in error.problems
    ]
    return InputError(problems)
