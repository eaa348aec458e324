"""Builds one archive from its source: export, stage, lint, prove, pack. A failure leaves no files behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonstack.archives.execution_environment import (
    LocalEnvironment,
    PackedEnvironment,
    kept_environment,
    local_environment,
)
from tritonstack.archives.exporting import (
    Exported,
    client_files,
    export_source,
    fetch_files,
    sample_arrays,
    sample_writer,
)
from tritonstack.archives.packing import PackResult, pack_reporting
from tritonstack.archives.programs import Report, Spent
from tritonstack.archives.proof import Answered, Proven, answer_request, check_floors, prove_sample, sources_file
from tritonstack.catalogue import load_catalogue
from tritonstack.disk import link_or_copy
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.lint import ServingTarget, lint_repository, refuse_errors
from tritonstack.models.build_target import python_of, target_of
from tritonstack.models.contents import contents_of
from tritonstack.models.digest import model_digest, sha256_of
from tritonstack.models.manifest import (
    ENGINE_FIGURE,
    ArchiveEntry,
    ClientFileEntry,
    EngineEntry,
    EnvironmentEntry,
    Manifest,
    ModelEntry,
    Places,
    SampleEntry,
    tensor_entry,
)
from tritonstack.models.model_config import read_config
from tritonstack.models.recipe import RECIPE
from tritonstack.models.sample import READY_REQUEST, Arrays, ResponseDiffersError, read_sample, ready_request
from tritonstack.models.source import ArchiveSource, OwnModel
from tritonstack.models.source_files import CONFIG, files_below, model_directories
from tritonstack.models.tensorrt_models import TRTEXEC, tensorrt_models
from tritonstack.naming import DIGEST_LENGTH, ArchiveName, Platform


def stage_repository(
    source: ArchiveSource,
    *,
    exports: Mapping[str, Path],
    target: Path,
    added: Mapping[str, Path] | None = None,
    fetched: Mapping[str, Mapping[str, Path]] | None = None,
) -> None:
    """Fill the new folder ``target`` with the Triton models of an archive, its overlay and copy carried out.

    Files are linked where the file system can, so that weights are not copied. A file next to ``target`` notes where
    each comes from, for :func:`tritonstack.archives.proof.in_sources`. ``exports``: folder name → the files of its
    exports, for this folder and for those it uses. ``added``: further files: name in the repository → file.
    ``fetched``: folder name → its files that lie in S3 (:func:`tritonstack.archives.exporting.fetch_files`).

    Raises :class:`InputError` where a used model does not exist, or two models have one name.
    """
    target.mkdir(parents=True)
    noted: dict[str, Path] = {}
    for model in source.own_models:
        noted |= _add(
            model,
            exported=exports.get(source.folder.name),
            fetched=(fetched or {}).get(source.folder.name, {}),
            left_out=source.produced,
            target=target,
        )
    for name, path in (added or {}).items():
        if not (target / name).parent.is_dir():
            found, allowed = f"no model {name.partition('/')[0]}", ", ".join(m.name for m in source.own_models)
            many = bool(source.recipe.execution_environments)
            file, field = str(source.folder / RECIPE), f"execution_environment{'s' if many else ''}.model"
            raise InputError([Problem(file=file, field=field, found=found, allowed=allowed)])
        noted[name] = path
        link_or_copy(path, target / name)
    problems: list[Problem] = []
    for index, used in enumerate(source.recipe.uses):
        other = ArchiveSource(name=used.folder, folder=source.folder.parent / used.folder, choice=source.choice)
        models = {model.name: model for model in other.own_models} if other.folder.is_dir() else {}
        for name in used.models:
            found = f"no model {name} in {used.folder}" if name not in models else ""
            if (target / name).exists():
                found = f"a second model {name}"
            if found:
                field = f"uses[{index}].models"
                file = str(source.folder / RECIPE)
                problems.append(Problem(file=file, field=field, found=found, allowed="models, each once"))
            else:
                stored = (fetched or {}).get(used.folder, {})
                exported, left_out = exports.get(used.folder), other.produced
                noted |= _add(models[name], exported=exported, fetched=stored, left_out=left_out, target=target)
    refuse(problems)
    sources_file(target).write_text(json.dumps({name: str(path) for name, path in noted.items()}))


def _add(
    model: OwnModel,
    *,
    exported: Path | None,
    fetched: Mapping[str, Path],
    left_out: Collection[str],
    target: Path,
) -> dict[str, Path]:
    """Stage one model. Returns where each staged file comes from, by its name below ``target``."""
    place = target / model.name
    place.mkdir()
    directory = model.directory
    found = {
        name: path
        for name, path in files_below(directory, within=directory.parent)
        if f"{directory.name}/{name}" not in left_out
    }  # what an earlier export left in the folder is not what this one made
    if exported is not None and (exported / directory.name).is_dir():
        found |= dict(files_below(exported / directory.name, within=exported))
    below = f"{directory.name}/"
    found |= {name.removeprefix(below): path for name, path in fetched.items() if name.startswith(below)}
    for name, path in found.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if name == CONFIG and model.config != path.read_text(encoding="utf-8", errors="replace"):
            (place / name).write_text(model.config, encoding="utf-8")
        else:
            link_or_copy(path, place / name)
    if read_config(model.config).is_ensemble:
        # Triton requires a version folder of an ensemble too, and version control keeps no empty folder.
        (place / "1").mkdir(exist_ok=True)
    return {f"{model.name}/{name}": path for name, path in found.items()}


@dataclass(frozen=True, kw_only=True)
class Task:
    """One archive to build. ``platform``: the endpoint's, None for the local Triton; ``prove``: before it is packed."""

    source: ArchiveSource
    name: ArchiveName
    platform: Platform | None
    prove: bool = True

    @property
    def target(self) -> str | None:
        """Platform or Python that its bytes depend on; None where they depend on neither."""
        return target_of(self.source, self.platform)

    @property
    def proof(self) -> ProofKey:
        """What its proof covers. Copies differ in a name that the linter checks: one is proven for all of them."""
        return model_digest(replace(self.source, copy=None)), self.target


ProofKey = tuple[str, str | None]
Proofs = dict[ProofKey, Proven]
"""The proofs of one build."""


@dataclass(frozen=True, kw_only=True)
class Staged:
    """An archive before it is packed: exported, put together and linted.

    ``work`` is the build's own folder; ``repository`` holds the archive's models; ``exports``: folder → its finished
    exports; ``environments``: file of the repository → the one packed there; ``local``: the same file → what the local
    Triton has in its place; ``request``: the sample as the addressed model's inputs; ``spent``: of the exports and the
    proof.
    """

    task: Task
    work: Path
    repository: Path
    exports: Mapping[str, Exported]
    files: Mapping[str, Path]
    environments: Mapping[str, PackedEnvironment]
    local: Mapping[str, LocalEnvironment]
    sample: SampleEntry
    request: Arrays
    model: ModelEntry
    proven: Proven = field(default_factory=Proven)
    spent: tuple[Spent, ...] = ()

    def refuse_errors(self) -> None:
        """Raise :class:`InputError` with every error that the linter finds in the repository."""
        _refuse_errors(self.task, self.repository, self.environments)

    @property
    def local_files(self) -> dict[str, Path]:
        """File of the repository → the environment of the same packages for the local Triton's Python."""
        return {name: each.packed.path for name, each in self.local.items() if each.packed is not None}

    @property
    def lacking(self) -> str:
        """Why the local Triton cannot have an environment; empty where it can have all."""
        return next((each.lacking for each in self.local.values() if each.lacking), "")


def stage_archive(task: Task, work: Path, places: Places, report: Report, proofs: Proofs) -> Staged:
    """Export, put together, lint and prove an archive in ``work``; :func:`finish` packs it.

    Raises :class:`InputError` for what is wrong with the folder, :class:`WorkFailedError` where an export or the proof
    fails; then nothing is at its place.
    """
    staged = _staged(task, work, places, report, with_answer=True)
    spent = [step for made in staged.exports.values() for step in made.spent]
    if not task.prove:
        proofs[task.proof] = Proven(skipped="tritonstack local dev built it, and invokes its endpoint instead")
    elif task.proof not in proofs:
        report(f"proof of {task.source.name}")
        try:
            proofs[task.proof] = prove_sample(
                staged.repository,
                model=staged.model,
                sample=staged.sample,
                request=staged.request,
                environments=staged.local_files,
                lacking=staged.lacking,
                work=work,
                report=report,
            )
        except ResponseDiffersError as error:
            raise ResponseDiffersError(f"{error}\n  do:      {renewal(task.source)}") from error
        spent += [taken] if (taken := proofs[task.proof].spent) is not None else []
    files = dict(staged.files)
    if (content := ready_request(staged.sample, staged.request)) is not None:
        files[READY_REQUEST] = work / READY_REQUEST
        files[READY_REQUEST].write_bytes(content)
    return replace(staged, files=files, proven=proofs[task.proof], spent=tuple(spent))


def renewal(source: ArchiveSource) -> str:
    """What to do where an archive's response is not the expected one, and shall be expected from now on."""
    answer = source.recipe.sample.answer
    scripts = [export.script for export in source.recipe.exports if answer in export.produces]
    if scripts:
        return f"fix the model, or {source.folder.name}/{scripts[0]}, which makes the expected response"
    return f"if the model shall respond so from now on: tritonstack update {source.folder.name}"


def _staged(task: Task, work: Path, places: Places, report: Report, *, with_answer: bool) -> Staged:
    """Export, put together and lint an archive in ``work``; ``with_answer``: its sample has one."""
    source, recipe = task.source, task.source.recipe
    exports = _exports(source, places, report)
    own = exports.get(source.folder.name)
    files = client_files(source, own.files if own else None)
    sample = read_sample(source.folder, recipe, own.files if own else None, with_answer=with_answer)
    environments: dict[str, PackedEnvironment] = {}
    local: dict[str, LocalEnvironment] = {}
    for part in recipe.environments:
        name = part.file(source.model)
        local[name] = local_environment(source.folder, part, work=places.exports, report=report)
        packed = local[name].packed
        if task.platform is not None:
            python = python_of(task.platform)
            packed = kept_environment(source.folder, part, python=python, work=places.exports, report=report)
        if packed is not None:
            environments[name] = packed
    added = {name: each.path for name, each in environments.items()}
    repository = work / "repository"
    exported = {name: made.files for name, made in exports.items()}
    fetched = {part.folder.name: fetch_files(part, places.sources, report=report) for part in (source, *source.used)}
    stage_repository(source, exports=exported, target=repository, added=added, fetched=fetched)
    _refuse_errors(task, repository, environments)
    model = _model_entry(source.model, (repository / source.model / CONFIG).read_text())
    request = sample_arrays(source, sample, model=model, files=files)
    return Staged(
        task=task,
        work=work,
        repository=repository,
        exports=exports,
        files=files,
        environments=environments,
        local=local,
        sample=sample,
        request=request,
        model=model,
    )


def answer_sample(source: ArchiveSource, *, work: Path, places: Places, report: Report) -> Answered:
    """Response to its sample request of an archive that is staged in ``work`` as for the local Triton.

    Raises as :func:`stage_archive`; the sample needs no answer yet.
    """
    task = Task(source=source, name=ArchiveName(model=source.name, digest="0" * DIGEST_LENGTH), platform=None)
    staged = _staged(task, work, places, report, with_answer=False)
    if staged.lacking:
        raise WorkFailedError(f"{source.name}: no response can be recorded here: {staged.lacking}")
    report(f"response of {source.name}")
    return answer_request(
        staged.repository,
        model=staged.model.name,
        request=staged.request,
        environments=staged.local_files,
        work=work,
        report=report,
    )


def finish(
    staged: Staged,
    *,
    places: Places,
    report: Report,
    engines: Mapping[str, EngineEntry] | None = None,
    measured: Mapping[str, float] | None = None,
) -> Manifest:
    """Pack a staged archive and move it to its place, the archive last.

    ``engines``: model → the plan that was built for it and is in the repository. ``measured``: figures of their speed.
    """
    task = staged.task
    target = staged.work / "archive.tar.gz"
    packed = pack_reporting(staged.repository, target, name=task.source.name, report=report)
    manifest = _manifest(staged, packed, engines or {}, measured or {})
    _put(task, manifest, staged.files, packed, work=staged.work, places=places)
    return manifest


def _refuse_errors(task: Task, repository: Path, environments: Mapping[str, PackedEnvironment]) -> None:
    files = [part.file(task.source.model) for part in task.source.recipe.environments]
    absent = [name for name in files if name not in environments]
    release = load_catalogue().release(task.platform.release) if task.platform else None
    name = f"release {release.version}" if release else ""
    target = ServingTarget(name=name, release=release)  # what exports made is there only now
    refuse_errors(lint_repository(repository, addressed=task.source.model, absent=absent, target=target))


def _manifest(
    staged: Staged, packed: PackResult, engines: Mapping[str, EngineEntry], measured: Mapping[str, float]
) -> Manifest:
    task, source, recipe = staged.task, staged.task.source, staged.task.source.recipe
    own = staged.exports.get(source.folder.name)
    figures = {**(own.figures if own else {}), **measured}
    if staged.proven.sample_difference is not None:
        figures["sample_difference"] = staged.proven.sample_difference
    if engines:
        figures[ENGINE_FIGURE] = max(entry.difference for entry in engines.values())
    tools = dict(staged.proven.tools)
    for made in staged.exports.values():
        tools |= made.tools
    tensorrt = tensorrt_models(staged.repository)
    environments = [
        EnvironmentEntry(file=name, python=each.python, packages=dict(each.packages))
        for name, each in staged.environments.items()
    ]
    stood_in = [f"{TRTEXEC}, for the engine of {name}" for name, entry in engines.items() if entry.stand_in]
    return Manifest(
        name=source.name,
        digest=task.name.digest,
        description=recipe.description,
        dependency=recipe.dependency,
        folder=source.folder.resolve().name,
        overlay=source.overlay,
        copy_number=source.copy,
        target=task.target,
        source=recipe.source,
        size=source.choice.size if recipe.sizes.full != recipe.sizes.tiny else "full",
        weights=source.weights,
        seed=recipe.seed,
        plan=all(model.has_plan for model in tensorrt) if tensorrt else None,
        engines=dict(engines),
        archive=ArchiveEntry(
            file=str(task.name),
            bytes=packed.bytes,
            sha256=packed.sha256,
            tar_bytes=packed.tar_bytes,
            tar_sha256=packed.tar_sha256,
        ),
        model=staged.model,
        backends=tuple(sorted(contents_of(source).backends)),
        configs={path.name: (path / CONFIG).read_text() for path in model_directories(staged.repository)},
        adapters=recipe.adapters,
        answers=recipe.answers,
        sample=staged.sample,
        figures=figures,
        tools=dict(sorted(tools.items())),
        inputs=_inputs(source, staged.exports),
        client_files={
            name: ClientFileEntry(sha256=sha256_of(path), bytes=path.stat().st_size)
            for name, path in staged.files.items()
        },
        environment=environments[0] if environments else None,
        more_environments=tuple(environments[1:]),
        stand_ins=(*staged.proven.stand_ins, *stood_in),
        proof_skipped=staged.proven.skipped or None,
    )


def _put(
    task: Task, manifest: Manifest, files: Mapping[str, Path], packed: PackResult, *, work: Path, places: Places
) -> None:
    places.archives_for(task.target).mkdir(parents=True, exist_ok=True)
    if files:
        for name, path in files.items():
            (work / "files" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, work / "files" / name)
        place = places.client_files(task.name, task.target)
        shutil.rmtree(place, ignore_errors=True)
        try:
            (work / "files").replace(place)
        except OSError:  # another build of the same inputs was there in between: its files are as good
            if not place.is_dir():
                raise
    (work / "manifest.json").write_text(manifest.to_json())
    (work / "manifest.json").replace(places.manifest(task.name, task.target))
    packed.archive.replace(places.archive(task.name, task.target))  # last: its presence means that all is there


def _exports(source: ArchiveSource, places: Places, report: Report) -> dict[str, Exported]:
    """The exports of a folder and of the folders that it uses, by the folder's name; each reaches its floors."""
    model = next((model for model in source.own_models if model.name == source.model), None)
    entry = _model_entry(source.model, model.config if model else "")
    made = export_source(
        source,
        work=places.exports,
        sources=places.sources,
        write_sample=sample_writer(source, entry),
        report=report,
    )
    check_floors(source.folder, recipe=source.recipe, figures=made.figures if made else {})
    found = {source.folder.name: made} if made else {}
    for used in source.used:
        found |= _exports(used, places, report)
    return found


def _model_entry(name: str, text: str) -> ModelEntry:
    config = read_config(text)
    return ModelEntry(
        name=name,
        max_batch_size=config.max_batch_size,
        inputs=tuple(tensor_entry(tensor, config.max_batch_size) for tensor in config.inputs),
        outputs=tuple(tensor_entry(tensor, config.max_batch_size) for tensor in config.outputs),
    )


def _inputs(source: ArchiveSource, exports: Mapping[str, Exported]) -> dict[str, str]:
    """Every source file by its name in the repository, and what exports read from elsewhere."""
    found: dict[str, str] = {}
    for made in exports.values():
        found |= made.inputs
    for part in (source, *source.used):
        folder = part.folder.resolve().name
        found |= {f"{folder}/{name}": sha256_of(path) for name, path in part.files().items()}
    return dict(sorted(found.items()))
