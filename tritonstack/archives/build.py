"""Model folder → archive and manifest under ``.local/archives``: export, lint, prove, pack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.archives.contents import contents_of
from tritonstack.archives.digest import HasEndpoints, model_digest
from tritonstack.archives.exporting import Exported, export_folder
from tritonstack.archives.folder import CONFIG, model_directories
from tritonstack.archives.lint import refuse_errors
from tritonstack.archives.manifest import ArchiveEntry, Manifest, ModelEntry, tensor_entry
from tritonstack.archives.model_config import read_config
from tritonstack.archives.packing import PackResult, pack
from tritonstack.archives.partial import partial_folder
from tritonstack.archives.places import Places
from tritonstack.archives.programs import Report
from tritonstack.archives.proof import Proven, check_floors, prove_sample
from tritonstack.archives.recipe import Recipe, read_recipe
from tritonstack.archives.sample import read_sample
from tritonstack.archives.staging import stage_repository
from tritonstack.errors import InputError, Problem
from tritonstack.naming import ArchiveName


@dataclass(frozen=True, kw_only=True)
class Built:
    """One model's archive; ``fresh`` if this build made it."""

    name: ArchiveName
    manifest: Manifest
    fresh: bool


@dataclass(frozen=True, kw_only=True)
class BuildSummary:
    """What a build of several models came to."""

    built: tuple[Built, ...]

    def __str__(self) -> str:
        fresh = [item for item in self.built if item.fresh]
        made = ", ".join(f"{item.name.model} {item.manifest.archive.bytes:,} bytes" for item in fresh)
        unchanged = len(self.built) - len(fresh)
        return "; ".join(part for part in (made, f"{unchanged} unchanged" if unchanged else "") if part)


def build_environment(
    environment: HasEndpoints,
    *,
    models: Sequence[str] = (),
    places: Places | None = None,
    report: Report = lambda _text: None,
) -> BuildSummary:
    """Build the archive of every model of an environment, or of those named.

    What is built already is left alone. Every model folder is linted before the first is built.
    Raises :class:`InputError` for what is wrong with folders or names, :class:`WorkFailedError` where an export or a
    proof fails.
    """
    places = places or Places.of_project()
    known = sorted({name for endpoint in environment.endpoints for name in endpoint.models})
    unknown = [Problem(found=f"model {name}", allowed=", ".join(known)) for name in models if name not in known]
    if unknown:
        raise InputError(unknown)
    return build_models(sorted(set(models)) or known, places=places, report=report)


def build_models(
    models: Sequence[str], *, places: Places | None = None, report: Report = lambda _text: None
) -> BuildSummary:
    """Build the archives of model folders by their names; see :func:`build_environment`."""
    places = places or Places.of_project()
    names = {model: ArchiveName(model=model, digest=model_digest(places.folder(model))) for model in models}
    waiting = [model for model in models if places.built(names[model]) is None]
    refuse_errors([places.folder(model) for model in waiting])
    return BuildSummary(built=tuple(_build(names[model], places, report) for model in models))


def _build(name: ArchiveName, places: Places, report: Report) -> Built:
    finished = places.built(name)
    if finished is not None:
        return Built(name=name, manifest=finished, fresh=False)
    with partial_folder(places.archives, name=f".{name.model}") as work:
        manifest = _make(name, work, places, report)
    return Built(name=name, manifest=manifest, fresh=True)


def _make(name: ArchiveName, work: Path, places: Places, report: Report) -> Manifest:
    folder = places.folder(name.model)
    recipe = read_recipe(folder)
    sample = read_sample(folder, recipe)
    exports = _exports(folder, recipe, places, report)
    figures = exports[folder.name].figures if folder.name in exports else {}
    check_floors(folder, recipe=recipe, figures=figures)
    repository = work / "repository"
    stage_repository(folder, recipe, exports={key: made.files for key, made in exports.items()}, target=repository)
    refuse_errors([repository], staged_for=recipe.model or name.model)
    model = _model_entry(repository, recipe.model or name.model)
    report(f"proof of {name.model}")
    proven = prove_sample(repository, recipe=recipe, model=model, sample=sample, work=work, report=report)
    packed = _pack(repository, work / "archive.tar.gz", name.model, report)
    manifest = Manifest(
        name=name.model,
        digest=name.digest,
        description=recipe.description,
        dependency=recipe.dependency,
        archive=_archive_entry(name, packed),
        model=model,
        backends=tuple(sorted(contents_of(folder).backends)),
        configs={path.name: (path / CONFIG).read_text() for path in model_directories(repository)},
        adapters=recipe.adapters,
        sample=sample,
        figures=figures | {"sample_difference": proven.sample_difference},
        tools=_tools(exports, proven),
    )
    (work / "manifest.json").write_text(manifest.to_json())
    (work / "manifest.json").replace(places.manifest(name))
    packed.archive.replace(places.archive(name))  # last: the archive's presence says that all is there
    return manifest


def _exports(folder: Path, recipe: Recipe, places: Places, report: Report) -> dict[str, Exported]:
    """The exports of a folder and of the folders that it uses, by the folder's name."""
    found: dict[str, Exported] = {}
    if recipe.exports:
        digest = model_digest(folder)
        told = {"seed": recipe.seed, "tolerance": recipe.proof.tolerance}
        found[folder.name] = export_folder(
            folder, recipe.exports[0], told=told, digest=digest, work=places.exports, report=report
        )
    for used in recipe.uses:
        other = folder.parent / used.folder
        other_recipe = read_recipe(other)
        made = _exports(other, other_recipe, places, report)
        if other.name in made:
            check_floors(other, recipe=other_recipe, figures=made[other.name].figures)
        found |= made
    return found


def _model_entry(repository: Path, name: str) -> ModelEntry:
    config = read_config((repository / name / CONFIG).read_text())
    return ModelEntry(
        name=name,
        max_batch_size=config.max_batch_size,
        inputs=tuple(tensor_entry(tensor, config.max_batch_size) for tensor in config.inputs),
        outputs=tuple(tensor_entry(tensor, config.max_batch_size) for tensor in config.outputs),
    )


def _pack(repository: Path, target: Path, model: str, report: Report) -> PackResult:
    total = sum(path.stat().st_size for path in repository.rglob("*") if path.is_file()) or 1
    done = 0

    def progress(read: int) -> None:
        nonlocal done
        done += read
        report(f"packing {model}: {100 * done // total} %")

    return pack(repository, target, progress=progress)


def _archive_entry(name: ArchiveName, packed: PackResult) -> ArchiveEntry:
    return ArchiveEntry(
        file=str(name),
        bytes=packed.bytes,
        sha256=packed.sha256,
        tar_bytes=packed.tar_bytes,
        tar_sha256=packed.tar_sha256,
    )


def _tools(exports: Mapping[str, Exported], proven: Proven) -> dict[str, str]:
    tools = dict(proven.tools)
    for made in exports.values():
        tools |= made.tools
    return dict(sorted(tools.items()))
