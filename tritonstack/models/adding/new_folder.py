"""Writes a model folder below ``model_repos/``: whole or not at all, beside what is there; then records its sample."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError, refuse
from tritonstack.models.adding.additions import ANSWER, TOLERANCE, Addition
from tritonstack.models.adding.recording import Recorded, record_sample
from tritonstack.models.adding.seeded_request import body_text
from tritonstack.models.lint import Finding, Target, lint_folder
from tritonstack.models.lint.registry import shown
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import read_config
from tritonstack.models.programs import Report
from tritonstack.models.recipe import RECIPE
from tritonstack.models.source import CONFIG, archives_of, skipped_proof
from tritonstack.paths import write_text

SCHEMA = "schemas/recipe.schema.json"


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
    for name, count in Counter(addition.name for addition in additions).items():
        folder = repositories / name
        if count > 1:
            found, advice = f"{count} models that would be called {name}", "add each by itself with --name"
            problems.append(Problem(found=found, allowed="a name for each", advice=advice))
        elif folder.exists() or folder.is_symlink():
            found, allowed = "a folder of that name, which is never overwritten", "a new name"
            advice = (
                f"give another one (--name), change the files there (tritonstack build {name} --record-sample renews "
                "the response), or remove the folder first"
            )
            problems.append(Problem(file=shown(folder), found=found, allowed=allowed, advice=advice))
    refuse(problems)


def write_folder(addition: Addition, *, places: Places, target: Target | None, report: Report) -> Added:
    """Write a model folder, lint it, and record the response to its sample request.

    A folder whose model cannot be run yet stays, without the response; one whose making is interrupted does not. Raises
    :class:`InputError` where the folder exists.
    """
    refuse_existing([addition], places.repositories)
    folder = places.folder(addition.name)
    with partial_folder(places.repositories, name=f".{addition.name}") as partial:
        schema = f"../../{SCHEMA}" if (places.repositories.parent / SCHEMA).is_file() else ""
        _write(addition, partial / addition.name, schema=schema, report=report)
        (partial / addition.name).rename(folder)
    try:
        return _recorded(addition, folder, places=places, target=target, report=report)
    except BaseException:
        shutil.rmtree(folder)
        raise


def _recorded(addition: Addition, folder: Path, *, places: Places, target: Target | None, report: Report) -> Added:
    findings = _findings(folder, target)
    errors = _errors(findings if target is None else _findings(folder, Target()))
    recorded: Recorded | None = None
    failure: TritonstackError | None = InputError(errors) if errors else None
    remedy = f"mend the files there, then record it: tritonstack build {addition.name} --record-sample"
    if not errors and (lacking := skipped_proof(read_config(model.config).backend for model in addition.models)):
        failure = WorkFailedError(f"  found:   nothing here answers it: {lacking}")
        remedy = f"write {shown(folder / ANSWER)}, in KServe's JSON form, by what made the model"
    elif not errors:
        (source,) = archives_of(folder)
        try:
            recorded = record_sample(source, places=places, report=report)
        except TritonstackError as error:
            failure = error
        else:
            _set_tolerance(folder / RECIPE, recorded.largest)
            of_endpoint = _errors(findings)
            failure = InputError(of_endpoint) if of_endpoint else None
            remedy = f"name it in `models` of an endpoint that can, or mend {shown(folder)}"
    return Added(addition=addition, folder=folder, recorded=recorded, failure=failure, remedy=remedy, findings=findings)


def _findings(folder: Path, target: Target | None) -> tuple[Finding, ...]:
    """What the linter finds, but for the response, which is yet to be recorded."""
    found = lint_folder(folder, target=target)
    return tuple(each for each in found if not (each.rule == "recipe-file" and each.found.startswith("sample.answer:")))


def _errors(findings: Sequence[Finding]) -> list[Problem]:
    return [finding.problem() for finding in findings if finding.level == "error"]


def _write(addition: Addition, folder: Path, *, schema: str, report: Report) -> None:
    (folder / "sample").mkdir(parents=True)
    write_text(folder / RECIPE, addition.recipe(tolerance=TOLERANCE, schema=schema))
    request = body_text("inputs", addition.sample_request()).encode()
    (folder / addition.request_file).write_bytes(addition.sample_file[1] if addition.sample_file else request)
    files = dict(addition.client_files)
    for model in addition.models:
        write_text(folder / model.name / CONFIG, model.config)
        files |= {f"{model.name}/{name}": source for name, source in model.files.items()}
    for name, source in files.items():
        report(f"copying {source.name}")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / name)


def _set_tolerance(recipe: Path, largest: float) -> None:
    """Widen the tolerance, which is absolute, for a response with large values."""
    if largest <= 1:
        return
    step = 10.0 ** math.floor(math.log10(TOLERANCE * largest))
    wide = float(f"{math.ceil(TOLERANCE * largest / step) * step:.1g}")  # one digit, rounded up
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace(f"tolerance: {TOLERANCE!r}", f"tolerance: {wide!r}"), encoding="utf-8")
