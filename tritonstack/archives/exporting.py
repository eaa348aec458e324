"""Runs the exports of a model folder, once for each digest of what they depend on; fetches weights from S3."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError, ProfileNotFound

from tritonstack.archives.programs import Report, Spent, run_script
from tritonstack.aws.session import Session, code_of
from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem, WorkFailedError, collecting, refuse
from tritonstack.models.digest import library_files, lock_digests, sha256_of, short_digest
from tritonstack.models.manifest import ModelEntry, SampleEntry
from tritonstack.models.model_config import read_config
from tritonstack.models.recipe import RECIPE, Export, StoredFile
from tritonstack.models.sample import Arrays, read_sample, request_arrays, sample_file, save_arrays
from tritonstack.models.source import ArchiveSource
from tritonstack.models.source_files import CONFIG
from tritonstack.naming import DIGEST_LENGTH
from tritonstack.untrusted.folder_files import unfit, unfit_problem
from tritonstack.untrusted.foreign_text import parse_json

_NOT_OF_AN_EXPORT = {
    "tolerance",
    "tf32",
    "version_compatible",
    "hardware_compatibility",
    "verbose",
    "measure_seconds",
}
"""Fields of `engine` that change nothing of the graph: with another value an earlier export is used."""


def script_options(source: ArchiveSource, export: Export) -> dict[str, Any]:
    """``--options`` of one export: the recipe's and the build's choices. The same for overlays that export alike.

    Raises :class:`InputError` where a recipe or a configuration is wrong.
    """
    recipe = source.recipe
    return {
        "size": source.size,
        "weights": source.weights,
        "seed": recipe.seed,
        "source": recipe.source.plain() if recipe.source else None,
        "graph": export.graph.model_dump(mode="json") if export.graph else None,
        "engine": recipe.engine.model_dump(mode="json", exclude=_NOT_OF_AN_EXPORT) if recipe.engine else None,
        "max_batch_size": max_batch_size(source),
        "largest_batch": recipe.proof.largest_batch,
        "tolerance": recipe.proof.tolerance,
        "options": export.options,
        "archive": source.folder.resolve().name,
    }


def max_batch_size(source: ArchiveSource) -> int:
    """The addressed model's, the overlay's fragments included; 0 where there is no such model."""
    configs = (model.config for model in source.own_models if model.name == source.model)
    return next((read_config(config).max_batch_size for config in configs), 0)


def export_digest(source: ArchiveSource) -> str:
    """The digest of what an archive's exports depend on: 16 hexadecimal digits.

    It covers the scripts' options, every file of the folder but configurations, fragments and the sample's answer,
    the sample request with its adapter, lock files and the library of the exporters. Overlays and copies whose exports
    are the same have the same digest, so that they share them.
    """
    recipe = source.recipe
    left_out = {*source.fragments, recipe.sample.answer}
    files = {
        name: sha256_of(path)
        for name, path in source.files().items()
        if name not in left_out and not name.endswith(f"/{CONFIG}")
    }
    steps = [
        {
            "environment": export.environment,
            "script": export.script,
            "produces": export.produces,
            "options": script_options(source, export),
        }
        for export in recipe.exports
    ]
    return short_digest(
        {
            "steps": steps,
            "sample": [recipe.sample.request, recipe.adapters.model_dump(mode="json", exclude_defaults=True)],
            "files": files,
            "locks": lock_digests(source),
            "library": {name: sha256_of(path) for name, path in library_files(source).items()},
        }
    )


CHUNK = 8 << 20
_NO_SETTINGS = (NoCredentialsError, PartialCredentialsError, ProfileNotFound)
_ABSENT = {"404", "NoSuchKey", "NotFound", "NoSuchBucket"}


def fetch_source(source: ArchiveSource, folder: Path, *, report: Report, session: Session | None = None) -> Path | None:
    """The object that a recipe's ``source`` names, as ``<folder>/<sha256>``; None where its exports take no object.

    What is there and has that digest is not downloaded again. ``session`` makes the client; without one the shell's
    own AWS settings do, for weights are an input of a build like the files of the folder, whatever it is built for.

    Raises :class:`InputError` where there is no such object, it has another digest, or there are no credentials;
    :class:`WorkFailedError` where AWS refuses or the download breaks off. Then nothing is kept.
    """
    part = source.recipe.source
    if part is None or part.s3 is None or part.sha256 is None or source.weights == "random":
        return None
    stored = StoredFile(s3=part.s3, sha256=part.sha256)
    return _fetched(stored, "source", folder, source=source, report=report, session=session)


def fetch_files(
    source: ArchiveSource, folder: Path, *, report: Report, session: Session | None = None
) -> dict[str, Path]:
    """The files of models that a recipe has in S3 (``files``): name in the model folder → file.

    One that lies in the model folder is taken where it has the hash; the others are downloaded into ``folder``, once.
    Raises as :func:`fetch_source`, and :class:`InputError` for a file of the model folder that has another hash: it is
    not known then which of the two is meant.
    """
    found: dict[str, Path] = {}
    problems: list[Problem] = []
    for name, stored in source.recipe.files.items():
        own, field = source.folder / name, f"files.{name}"
        if reason := unfit(own, source.folder):
            problems.append(unfit_problem(own, source.folder, reason))
        elif own.is_file():
            report(f"checking {name} of {source.name}")
            if (digest := sha256_of(own)) != stored.sha256:
                problems.append(_other_file(source, name, field=field, digest=digest, stored=stored))
            found[name] = own
        else:
            with collecting(problems):
                found[name] = _fetched(stored, field, folder, source=source, report=report, session=session)
    refuse(problems)
    return found


def _other_file(source: ArchiveSource, name: str, *, field: str, digest: str, stored: StoredFile) -> Problem:
    key = f"{stored.s3.rpartition('/')[0].removesuffix(f'/{stored.sha256[:DIGEST_LENGTH]}')}/{digest[:DIGEST_LENGTH]}"
    url = f"{key}/{Path(name).name}"
    return Problem(
        file=str(source.folder / RECIPE),
        field=field,
        found=f"SHA-256 {stored.sha256[:DIGEST_LENGTH]}…, and the file in the folder has {digest[:DIGEST_LENGTH]}…",
        allowed="one content: that of the folder's file, or no such file in the folder",
        advice=f"To take the folder's: aws s3 cp {source.folder / name} {url}, then in {RECIPE} "
        f'{{s3: {url}, sha256: "{digest}"}}. To take the object: rm {source.folder / name}',
    )


def _fetched(
    stored: StoredFile, field: str, folder: Path, *, source: ArchiveSource, report: Report, session: Session | None
) -> Path:
    """An object as ``<folder>/<sha256>``, downloaded unless it is there; ``field``: of the recipe, for messages."""
    kept = folder / stored.sha256
    if kept.is_file():
        report(f"checking the weights of {source.name}")
        if sha256_of(kept) == stored.sha256:
            return kept
    with partial_folder(folder, name=stored.sha256[:16]) as work:
        found = _download(stored.s3, work / "object", field, source=source, report=report, session=session)
        if found != stored.sha256:
            raise _wrong(source, f"{field}.sha256", f"{stored.s3} has the SHA-256 {found}", stored.sha256)
        (work / "object").replace(kept)
    return kept


def _download(
    url: str, file: Path, field: str, *, source: ArchiveSource, report: Report, session: Session | None
) -> str:
    """Stream an object into a file; its SHA-256."""
    bucket, _, key = url.removeprefix("s3://").partition("/")
    digest, done = hashlib.sha256(), 0
    import boto3  # noqa: PLC0415  only where weights come from S3

    try:
        client = (session or boto3.Session()).client("s3")
        answer = client.get_object(Bucket=bucket, Key=key)
        total = int(answer["ContentLength"])
        with file.open("wb") as stream:
            for chunk in answer["Body"].iter_chunks(CHUNK):  # botocore raises where it ends early
                digest.update(chunk)
                stream.write(chunk)
                done += len(chunk)
                report(f"weights of {source.name}: {100 * done // max(total, 1)} % of {total / 1e6:,.1f} MB")
    except _NO_SETTINGS as error:
        advice = "set AWS_PROFILE or AWS_ACCESS_KEY_ID (local AWS: tritonstack local env), or build with random weights"
        allowed = f"credentials that may read {url}"
        raise InputError([Problem(field="AWS settings", found=str(error), allowed=allowed, advice=advice)]) from error
    except (BotoCoreError, ClientError, ValueError) as error:
        if code_of(error) in _ABSENT:
            raise _wrong(source, f"{field}.s3", f"{url}: {code_of(error)}", "an object that is there") from error
        raise WorkFailedError(f"could not download {url}: {error}") from error
    return digest.hexdigest()


def _wrong(source: ArchiveSource, field: str, found: str, allowed: str) -> InputError:
    return InputError([Problem(file=str(source.folder / RECIPE), field=field, found=found, allowed=allowed)])


REPORT = "report.json"
FILES = "files"
SAMPLE = "sample.npz"
UNPACKED = "weights"

WriteSample = Callable[[Path], bool]
"""Writes the sample request's arrays into a file; False where the scripts have to make the sample themselves."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    files: Path  # the folder of their files
    figures: dict[str, float]  # what they measured
    tools: dict[str, str]  # name → version
    inputs: dict[str, str]  # file that they read → its SHA-256
    spent: tuple[Spent, ...] = ()  # what those took that were made now; empty where an earlier build made them


def export_source(
    source: ArchiveSource, *, work: Path, sources: Path, write_sample: WriteSample, report: Report
) -> Exported | None:
    """The files of an archive's exports, made now or by an earlier build; None where it has no exports.

    The exports run one after the other into one folder, which ``work`` keeps as ``<folder>.<digest>``: archives whose
    exports are the same share it, and one that is interrupted leaves nothing. ``sources`` keeps what had to be
    downloaded. Raises :class:`InputError` where that is not there, or another than named; :class:`WorkFailedError`
    where a script fails or does not make what the recipe promises.
    """
    if not source.recipe.exports:
        return None
    kept = exported_files(source, work).parent
    spent: list[Spent] = []
    if not kept.is_dir():
        weights = fetch_source(source, sources, report=report)
        with partial_folder(work, name=source.folder.resolve().name) as partial:
            (partial / FILES).mkdir()
            sample = partial / SAMPLE
            given = sample if write_sample(sample) else None
            reported: dict[str, dict[str, Any]] = {"figures": {}, "tools": {}, "inputs": {}}
            for export in source.recipe.exports:
                spent.append(_run(source, export, partial, sample=given, weights=weights, report=report))
                shutil.rmtree(partial / UNPACKED, ignore_errors=True)
                for name, part in _read_report(partial / REPORT).items():
                    reported[name] |= part
                (partial / REPORT).unlink()
            sample.unlink(missing_ok=True)
            (partial / REPORT).write_text(json.dumps(reported, indent=1, sort_keys=True) + "\n")
            try:
                partial.rename(kept)
            except OSError:  # another build was first: its export is as good
                if not kept.is_dir():
                    raise
    return Exported(files=kept / FILES, spent=tuple(spent), **_read_report(kept / REPORT))


def exported_files(source: ArchiveSource, work: Path) -> Path:
    """Where the files of an archive's finished exports lie, or would."""
    return work / f"{source.folder.resolve().name}.{export_digest(source)}" / FILES


def _run(
    source: ArchiveSource, export: Export, partial: Path, *, sample: Path | None, weights: Path | None, report: Report
) -> Spent:
    options = script_options(source, export)
    if weights is not None:  # not of the script's options proper: where files lie is in no digest
        options["source"] |= {"file": str(weights.resolve()), "folder": str((partial / UNPACKED).resolve())}
    arguments = [
        str((source.folder / export.script).resolve()),
        *("--target", str((partial / FILES).resolve())),
        *("--options", json.dumps(options)),
        *("--report", str((partial / REPORT).resolve())),
        *(("--sample", str(sample.resolve())) if sample else ()),
    ]
    what = f"export of {source.folder.resolve().name}"
    spent = run_script(
        environment=export.environment,
        arguments=arguments,
        folder=partial,
        what=what,
        report=report,
        python_path=source.folder.parent,
        downloads=True,
    )
    missing = [name for name in export.produces if not (partial / FILES / name).is_file()]
    if missing:
        raise WorkFailedError(f"{what}: {source.folder / export.script} did not write {', '.join(missing)}")
    return spent


def _read_report(path: Path) -> dict[str, dict[str, Any]]:
    """``{"figures": {name: number}, "tools": {name: version}, "inputs": {file: SHA-256}}``; inputs may be left out."""
    try:
        content = parse_json(path.read_text())
        figures = {str(name): float(value) for name, value in content["figures"].items()}
        tools = {str(name): str(value) for name, value in content["tools"].items()}
        inputs = {str(name): str(value) for name, value in content.get("inputs", {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise WorkFailedError(f"the export's report is not as agreed, figures and tools: {error!r}") from error
    return {"figures": figures, "tools": tools, "inputs": inputs}


def client_files(source: ArchiveSource, exported: Path | None) -> dict[str, Path]:
    """Name → file, for everything that clients need. Raises :class:`InputError` where the folder lacks one."""
    recipe = source.recipe
    files = {name: sample_file(source.folder, recipe, name, exported) for name in recipe.client_files}
    problems = []
    for name, path in files.items():
        root = source.folder if path.is_relative_to(source.folder) else exported or source.folder
        if found := unfit(path, root) or ("" if path.is_file() else "no such file"):
            problems.append(
                Problem(
                    file=str(source.folder / RECIPE),
                    field="client_files",
                    found=f"{name}: {found}",
                    allowed="files of the folder, or that an export makes",
                )
            )
    refuse(problems)
    return files


def sample_arrays(
    source: ArchiveSource, sample: SampleEntry, *, model: ModelEntry, files: Mapping[str, Path]
) -> Arrays:
    """The sample request as the model takes it. Raises :class:`InputError` where it is not what the model takes."""
    recipe = source.recipe
    file = str(source.folder / recipe.sample.request)
    return request_arrays(sample, adapters=recipe.adapters, model=model, files=files, file=file)


def sample_writer(source: ArchiveSource, model: ModelEntry) -> WriteSample:
    """Writer of the sample request for an archive's export scripts; it returns False where an export makes a part."""
    recipe = source.recipe
    made = {name for export in recipe.exports for name in export.produces}
    needed = {name for adapter in recipe.adapters.present.values() for name in adapter.files}

    def write(path: Path) -> bool:
        if recipe.sample.request in made or made & needed:
            return False
        files = {name: source.folder / name for name in needed}
        reasons = {path: unfit(path, source.folder) for path in files.values()}
        refuse([unfit_problem(path, source.folder, reason) for path, reason in reasons.items() if reason])
        sample = read_sample(source.folder, recipe, with_answer=False)
        return save_arrays(sample_arrays(source, sample, model=model, files=files), path)

    return write
