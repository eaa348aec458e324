"""Writes a model folder below ``model_repos/``, whole or not at all, and records responses to sample requests."""

from __future__ import annotations

import base64
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tritonstack.adding.additions import ANSWER, NO_CODE, TOLERANCE, Addition, TritonModel, runs_code
from tritonstack.adding.python_packages import lock_packages
from tritonstack.adding.seeded_request import COMPACT, body_text, write_body
from tritonstack.archives.programs import Report
from tritonstack.archives.proof import Answered
from tritonstack.archives.staging import answer_sample
from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError, collecting, refuse
from tritonstack.lint import Finding, ServingTarget, lint_folder
from tritonstack.lint.python.python_model import python_in_archive
from tritonstack.lint.registry import shown
from tritonstack.local_aws import LackingModuleError
from tritonstack.models.comparison import OutputValues, base64_outputs, json_outputs, tensor_difference
from tritonstack.models.contents import skipped_proof
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import EXECUTION_ENV_PATH, Node, read_config
from tritonstack.models.recipe import RECIPE
from tritonstack.models.sample import read_sample
from tritonstack.models.selection import sources_of
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.models.source_files import CONFIG
from tritonstack.paths import write_text
from tritonstack.untrusted.gzip_reading import SUFFIX

SCHEMA = "schemas/recipe.schema.json"


@dataclass(frozen=True, kw_only=True)
class Added:
    addition: Addition
    folder: Path
    recorded: Recorded | None  # None where no response could be recorded
    failure: TritonstackError | None = None  # why not, or why the endpoint cannot serve it
    remedy: str = ""  # what to do about it
    findings: tuple[Finding, ...] = ()  # of the linter
    locked: Mapping[str, str] = field(default_factory=dict)  # lock file of Python models → what was locked


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
                f"give another one (--name), or put this in its place as "
                f"its next version: tritonstack update {name} FILE_OR_FOLDER"
            )
            problems.append(Problem(file=shown(folder), found=found, allowed=allowed, advice=advice))
    refuse(problems)


def write_folder(
    addition: Addition,
    *,
    places: Places,
    target: ServingTarget | None,
    report: Report,
    announce: Report = lambda _text: None,
) -> Added:
    """Write a model folder, lint it, and record the response to its sample request.

    ``announce``: called with what code of the model is run for that, before it is. ``target``: packages of a Python
    model are locked for its release's Python.

    A folder whose model cannot be run yet stays, without the response; one whose making is interrupted does not. Raises
    :class:`InputError` where the folder exists.
    """
    refuse_existing([addition], places.repositories)
    refuse([problem for model in addition.models for problem in _of_another_python(model, target)])
    folder = places.folder(addition.name)
    with partial_folder(places.repositories, name=f".{addition.name}") as partial:
        schema = f"../../{SCHEMA}" if (places.repositories.parent / SCHEMA).is_file() else ""
        locked = _write(addition, partial / addition.name, schema=schema, python=release_python(target), report=report)
        (partial / addition.name).rename(folder)
    try:
        added = _recorded(addition, folder, places=places, target=target, report=report, announce=announce)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return replace(added, locked=locked)


OLDEST_PYTHON = "3.10"
"""Packages are locked for it, and hold for newer ones, where no endpoint has a release that serves the model."""


def release_python(target: ServingTarget | None) -> str:
    """The Python that packages of a model are locked for (``3.10``)."""
    return target.release.python if target is not None and target.release is not None else OLDEST_PYTHON


def _of_another_python(model: TritonModel, target: ServingTarget | None) -> Iterator[Problem]:
    """What is wrong with an execution environment that a Python model brings along: the release has another Python."""
    release = target.release if target is not None else None
    entry = read_config(model.config).node.entries("parameters").get(EXECUTION_ENV_PATH)
    path = entry.text("string_value") if isinstance(entry, Node) else ""
    file = model.files.get(path.rpartition("$$TRITON_MODEL_DIRECTORY/")[2])
    python = python_in_archive(file) if file is not None else None
    if release is None or python is None or python == release.python:
        return
    yield Problem(
        file=str(file),
        found=f"an environment for Python {python}",
        allowed=f"one for Python {release.python}, which Triton {release.version} of the endpoint has",
        advice=f"conda create -n env python={release.python} PACKAGES && conda-pack -n env -o {file}; or remove it and "
        f"the parameter {EXECUTION_ENV_PATH}, and list its packages in a requirements.txt beside the model, which "
        "tritonstack add packs",
    )


def _recorded(
    addition: Addition, folder: Path, *, places: Places, target: ServingTarget | None, report: Report, announce: Report
) -> Added:
    findings = _findings(folder, target)
    errors = _errors(findings if target is None else _findings(folder, ServingTarget()))
    recorded: Recorded | None = None
    failure: TritonstackError | None = InputError(errors) if errors else None
    remedy = f"fix the files there, then record it: tritonstack update {addition.name}"
    if not errors and (lacking := skipped_proof(read_config(model.config).backend for model in addition.models)):
        refused = [f"\n{InputError(of_endpoint)}"] if (of_endpoint := _errors(findings)) else []
        proof = f"  found:   the proof is skipped, for no server here runs it: {lacking}"
        failure = WorkFailedError("".join([proof, *refused]))
        remedy = f"write {shown(folder / ANSWER)}, in KServe's JSON form, by what made the model"
        if addition.otherwise:
            remedy += f"; or serve it as ONNX, which is proved here:\n  {addition.otherwise}"
    elif not errors:
        (source,) = archives_of(folder)
        backends = {model.name: read_config(model.config).backend for model in addition.models}
        if programs := [name for name, backend in backends.items() if backend not in NO_CODE]:
            announce(runs_code(programs))
        try:
            recorded = record_sample(source, places=places, report=report)
        except TritonstackError as error:
            failure = error
            if isinstance(error, LackingModuleError):  # a build skips its proof for the same reason
                remedy = f"write {shown(folder / ANSWER)}, in KServe's JSON form, by what made the model"
        else:
            _set_tolerance(folder / RECIPE, recorded.largest)
            recorded = replace(recorded, file=_compact(recorded.file, folder / RECIPE))
            of_endpoint = _errors(findings)
            failure = InputError(of_endpoint) if of_endpoint else None
            remedy = f"name it in `models` of an endpoint that can, or fix {shown(folder)}"
    return Added(addition=addition, folder=folder, recorded=recorded, failure=failure, remedy=remedy, findings=findings)


def _findings(folder: Path, target: ServingTarget | None) -> tuple[Finding, ...]:
    """Lint findings, without those on the response, which is not recorded yet."""
    found = lint_folder(folder, target=target)
    return tuple(each for each in found if not (each.rule == "recipe-file" and each.found.startswith("sample.answer:")))


def _errors(findings: Sequence[Finding]) -> list[Problem]:
    return [finding.problem() for finding in findings if finding.level == "error"]


def _write(addition: Addition, folder: Path, *, schema: str, python: str, report: Report) -> dict[str, str]:
    """Write the folder's files. Returns lock file of Python models → what was locked."""
    locked: dict[str, str] = {}
    (folder / "sample").mkdir(parents=True)
    write_text(folder / RECIPE, addition.recipe(tolerance=TOLERANCE, schema=schema))
    if addition.sample_file is None:
        write_body(folder / addition.request_file, addition.request_text)
    else:
        (folder / addition.request_file).write_bytes(addition.sample_file[1])
    files = dict(addition.client_files)
    for model in addition.models:
        write_text(folder / model.name / CONFIG, model.config)
        files |= {f"{model.name}/{name}": source for name, source in model.files.items()}
    for name, source in files.items():
        report(f"copying {source.name}")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / name)
    for name, needed in addition.locks.items():
        report(f"locking packages: {needed.origin}")
        locked[name] = lock_packages(needed, python=python, target=folder / name)
    return locked


def _set_tolerance(recipe: Path, largest: float) -> None:
    """Widen the tolerance, which is absolute, for a response with large values."""
    if largest <= 1:
        return
    step = 10.0 ** math.floor(math.log10(TOLERANCE * largest))
    wide = float(f"{math.ceil(TOLERANCE * largest / step) * step:.1g}")  # one digit, rounded up
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace(f"tolerance: {TOLERANCE!r}", f"tolerance: {wide!r}"), encoding="utf-8")


def _compact(answer: Path, recipe: Path) -> Path:
    """Store a large response compressed, under a name that the recipe states. Returns its file."""
    if answer.stat().st_size <= COMPACT:
        return answer
    compressed = answer.with_name(f"{answer.name}{SUFFIX}")
    write_body(compressed, answer.read_text(encoding="utf-8"))
    text = recipe.read_text(encoding="utf-8")
    write_text(recipe, text.replace(ANSWER, f"{ANSWER}{SUFFIX}"))
    answer.unlink()
    return compressed


RANDOM = "two runs of one request differ, as those of random operators do"
_DIGITS = {"FP16": 5, "FP32": 9}
"""Significant digits that name a value of the type exactly; FP64 has all that Python prints."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    file: Path
    outputs: tuple[str, ...]  # those in the file
    no_text: tuple[str, ...]  # those that JSON cannot hold: BYTES that are no text
    differ: tuple[str, ...]  # those left out because two runs gave other values
    largest: float  # the largest absolute value of a floating-point output
    ran: tuple[str, ...]  # what answered: ``ONNX Runtime on the CPU, outside Triton``
    earlier: Mapping[str, OutputValues] = field(default_factory=dict)  # the response that the file held; empty for none
    values: Mapping[str, OutputValues] = field(default_factory=dict)  # the one that it holds now

    def __str__(self) -> str:
        ran = [line.partition(": ")[2] or line for line in self.ran]
        # Where its instances run is no news of who answered.
        named = dict.fromkeys(each for each in ran if not each.startswith("instances on the CPU"))
        by = "; ".join(named) or "the local Triton"
        left = f"; without {', '.join(self.no_text)}, whose bytes are no text" if self.no_text else ""
        left += f"; without {', '.join(self.differ)}: {RANDOM}" if self.differ else ""
        return f"{', '.join(self.outputs)}, by {by}{left}"


def response_changes(recorded: Recorded) -> Iterator[str]:
    """Lines on each output of a recorded response: as before, or its largest difference from the earlier response."""
    for name in dict.fromkeys([*recorded.earlier, *recorded.values]):
        before, now = recorded.earlier.get(name), recorded.values.get(name)
        if before is None or now is None:
            yield f"{name}: {'new' if now is not None else 'gone'}"
            continue
        _, difference = tensor_difference(name, before, now, tolerance=0.0)
        if difference is None:
            yield f"{name}: as before"
        elif difference.reason:
            yield f"{name}: {difference.reason}"
        else:
            old, new = difference.values
            largest = "" if difference.largest is None else f"largest difference {difference.largest:.3g}; "
            count = f"{difference.differing:,} of {difference.total:,} values differ"
            yield f"{difference.place}: {old} → {new}; {largest}{count}"


def record_samples(names: Sequence[str], *, choice: BuildChoice, places: Places, report: Report) -> list[Recorded]:
    """Record the responses of model folders, or of the folders of single archives, each once.

    Variants of a folder share its sample: the first of those that are named answers. Raises :class:`InputError` with
    every name that means nothing or has a response that an export makes, :class:`WorkFailedError` where a model fails.
    """
    problems: list[Problem] = []
    sources: dict[tuple[Path, str], ArchiveSource] = {}
    for name in names:
        found: tuple[ArchiveSource, ...] = ()
        with collecting(problems):
            found = sources_of(name, places.repositories, choice)
        for source in found:
            answer = source.recipe.sample.answer
            sources.setdefault((source.folder, answer), source)
            if any(answer in export.produces for export in source.recipe.exports):
                problems.append(
                    Problem(
                        file=str(source.folder / RECIPE),
                        field="sample.answer",
                        found=f"{answer}, which an export makes: the source framework answers",
                        allowed="a file of the folder",
                        advice=f"build {source.name} without --record-sample, or take it out of exports[].produces",
                    )
                )
    refuse(problems)
    return [record_sample(source, places=places, report=report) for source in sources.values()]


def record_sample(source: ArchiveSource, *, places: Places, report: Report) -> Recorded:
    """Run a folder's sample request as a build's proof does, and write the result as the expected response.

    Raises :class:`InputError` for what is wrong with the folder, :class:`WorkFailedError` where the model fails, or
    answers nothing that can be compared; then the file stays as it was. The request is answered twice: outputs with
    other values the second time are left out, for no build could compare them.
    """
    # Two servers, and not two requests to one, which would save a start: what a program draws once when it is loaded
    # (weights without a seed, the order of a set) differs between servers alone, and a model that keeps state would
    # differ within one. The proof of a build, and each new instance, is a server's first request, as both of these are.
    answered, again = (_answered(source, places=places, report=report) for _ in range(2))
    differ = _differing(answered.outputs, again.outputs)
    kept: list[dict[str, Any]] = []
    no_text: list[str] = []
    for tensor in answered.outputs:
        if tensor["name"] in differ:
            continue
        try:
            kept.append({key: tensor[key] for key in ("name", "datatype", "shape")} | {"data": _data(tensor)})
        except UnicodeDecodeError:
            no_text.append(tensor["name"])
    numbers = {each["name"]: each["data"] for each in kept if each["datatype"].startswith("FP")}
    if wrong := [name for name, values in numbers.items() if any(map(math.isnan, values))]:
        advice = "Write a request that suits the model, then record again."
        raise WorkFailedError(
            f"{source.name}: {', '.join(wrong)} of the response holds NaN, which is no response to expect.\n{advice}"
        )
    if not kept and differ:
        raise WorkFailedError(
            f"{source.name}: {RANDOM}: {', '.join(differ)}; no response can be expected.\n"
            "Take the randomness out of the model, give it a fixed seed, or give it an output that is always the same."
        )
    if not kept:
        raise WorkFailedError(f"{source.name}: its response holds no output that JSON can state: {', '.join(no_text)}")
    file = source.folder / source.recipe.sample.answer
    earlier: Mapping[str, OutputValues] = {}
    with suppress(InputError):  # there is none yet, or none that can be read
        earlier = json_outputs(read_sample(source.folder, source.recipe).answer["outputs"])
    write_body(file, body_text("outputs", kept))
    finite = [abs(value) for values in numbers.values() for value in values if math.isfinite(value)]
    return Recorded(
        file=file,
        outputs=tuple(each["name"] for each in kept),
        no_text=tuple(no_text),
        differ=differ,
        largest=max(finite, default=0.0),
        ran=answered.stand_ins,
        earlier=earlier,
        values=json_outputs(kept),
    )


def _answered(source: ArchiveSource, *, places: Places, report: Report) -> Answered:
    with partial_folder(places.archives, name=f".{source.name}.sample") as work:
        return answer_sample(source, work=work, places=places, report=report)


def _differing(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Outputs of which two responses to one request differ by more than the tolerance that a recording gives."""
    once, again = base64_outputs(first), base64_outputs(second)
    return tuple(name for name, output in once.items() if not _same(name, output, again[name]))


def _same(name: str, one: OutputValues, other: OutputValues) -> bool:
    floating = one.values if one.datatype.startswith(("FP", "BF")) else ()
    tolerance = TOLERANCE * max(1, *(abs(value) for value in floating if math.isfinite(value)), 0)
    return tensor_difference(name, one, other, tolerance=tolerance, equal_nan=True)[1] is None


def _data(tensor: Mapping[str, Any]) -> list[Any]:
    if tensor["datatype"] == "BYTES":
        return [base64.b64decode(item).decode() for item in tensor["data"]]
    digits = _DIGITS.get(tensor["datatype"])
    return [float(f"{value:.{digits}g}") for value in tensor["data"]] if digits else list(tensor["data"])
