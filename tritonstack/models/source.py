"""What one archive is built from, what it will contain, and what it is built for."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from tritonstack.catalogue import load_catalogue
from tritonstack.errors import InputError, Problem, refuse
from tritonstack.folder_files import text_inside, unfit, unfit_problem
from tritonstack.local_aws import require_package
from tritonstack.models.marked_plan import is_marked
from tritonstack.models.model_config import ConfigFile, ModelConfig, merge_configs, read_config, with_name
from tritonstack.models.recipe import KIND_BACKENDS, RECIPE, Dependency, Recipe, Size, Weights, read_recipe
from tritonstack.naming import Platform
from tritonstack.python_calls import INFERS, calls_of, programs_of

CONFIG = "config.pbtxt"

JUNK = ("__pycache__", ".ipynb_checkpoints", ".git", "*.pyc", ".DS_Store", "*~", "*.swp", ".mypy_cache", ".ruff_cache")
"""What editors and interpreters leave behind: never a source, never packed. Triton would read some of it as a model."""


def is_junk(name: str) -> bool:
    """Whether a file or directory of this name is never part of an archive."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in JUNK)


def files_below(folder: Path, *, within: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Every file below ``folder`` but junk, as (relative name with forward slashes, path), sorted by the name.

    Raises :class:`InputError` with all that is no regular file inside ``within``, the folder itself where it is None:
    see :mod:`tritonstack.folder_files`.
    """
    listed = tuple(listed_below(folder, within=within))
    root = within or folder
    refuse([unfit_problem(path, root, reason) for _, path, reason in listed if reason])
    yield from ((name, path) for name, path, _ in listed)


def listed_below(folder: Path, *, within: Path | None = None) -> Iterator[tuple[str, Path, str]]:
    """The same with why each is unfit, empty where it is not; links to folders inside are followed."""
    root = within or folder
    found: list[tuple[str, Path, str]] = []
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            entries = list(os.scandir(current))
        except (FileNotFoundError, NotADirectoryError):
            continue  # there is none, or it is gone in between
        except PermissionError as error:
            found.append((current.relative_to(folder).as_posix(), current, str(error.strerror)))
            continue
        for entry in entries:
            path = Path(entry.path)
            if is_junk(entry.name):
                continue
            reason = unfit(path, root)
            if reason or not entry.is_dir():
                found.append((path.relative_to(folder).as_posix(), path, reason))
            elif not (entry.is_symlink() and _contains(path, current)):
                waiting.append(path)
            else:
                reason = f"a link to a folder that contains it, {path.readlink()}"
                found.append((path.relative_to(folder).as_posix(), path, reason))
    yield from sorted(found)


def _contains(link: Path, current: Path) -> bool:
    """Whether a link in ``current`` leads to a folder on the way there, so that following it would not end."""
    return Path(os.path.realpath(current)).is_relative_to(os.path.realpath(link))


def model_directories(folder: Path) -> tuple[Path, ...]:
    """The directories of ``folder`` that hold a ``config.pbtxt``: its Triton models, sorted by name."""
    return tuple(sorted(path.parent for path in folder.glob(f"*/{CONFIG}") if not is_junk(path.parent.name)))


@dataclass(frozen=True, kw_only=True)
class BuildChoice:
    """How large models are made, and whose weights they get."""

    size: Size = "full"
    weights: Weights = "pretrained"


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """A Triton model of the folder: its directory's name in the archive, its directory in the folder, its config."""

    name: str
    directory: Path
    config: str


@dataclass(frozen=True, kw_only=True)
class ArchiveSource:
    name: str  # the archive's name: the folder's, ``<folder>-<overlay>`` or ``<folder>-<copy>``
    folder: Path  # the model folder
    overlay: str | None = None  # the overlay's name, or None
    copy: int | None = None  # the copy's number, or None where the folder has no copies
    # size and weights; they matter only where the recipe makes a difference between them
    choice: BuildChoice = field(default_factory=BuildChoice)
    # the folder's recipe as it is written, where it was read already
    written: Recipe | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _written(self) -> Recipe:
        return self.written or read_recipe(self.folder)

    @cached_property
    def recipe(self) -> Recipe:
        """The effective recipe: the overlay's fields in place, the model called like the copy; no overlays left.

        Raises :class:`InputError` where the recipe is wrong.
        """
        written = self._written
        changes: dict[str, Any] = {"overlays": {}, "copies": 1}
        if self.overlay is not None:
            changes |= written.overlays[self.overlay].changes()
        if self.copy is not None:
            changes["model"] = self.name
        return written.model_copy(update=changes)

    @cached_property
    def fragments(self) -> tuple[str, ...]:
        """The configuration fragments of the overlay, by their names in the folder."""
        return self._written.overlays[self.overlay].config if self.overlay else ()

    @cached_property
    def other_fragments(self) -> frozenset[str]:
        """Fragments that only other overlays use: no source of this archive."""
        overlays = self._written.overlays.values()
        return frozenset(name for overlay in overlays for name in overlay.config) - frozenset(self.fragments)

    @cached_property
    def produced(self) -> frozenset[str]:
        """Every file that an export of the folder makes, of whichever overlay: none is a source."""
        return self._written.produced

    @property
    def directory(self) -> str:
        """The addressed model's directory in the folder."""
        return self._written.model or self.folder.name

    @property
    def model(self) -> str:
        """The addressed model's directory in the archive."""
        return self.recipe.model or self.folder.name

    @property
    def size(self) -> dict[str, Any]:
        """What the chosen size changes in the source framework's model configuration."""
        return getattr(self.recipe.sizes, self.choice.size)  # type: ignore[no-any-return]  # one of its two fields

    @property
    def weights(self) -> Weights:
        """Which weights the exports take; random where the recipe has no source."""
        return self.choice.weights if self.recipe.source is not None else "random"

    @property
    def used(self) -> tuple[ArchiveSource, ...]:
        """The folders that this one uses, as they are and in the same size."""
        names = dict.fromkeys(used.folder for used in self.recipe.uses)
        return tuple(ArchiveSource(name=name, folder=self.folder.parent / name, choice=self.choice) for name in names)

    def files(self) -> dict[str, Path]:
        """The source files of the folder: name → path, without the recipe, which counts by its content."""
        left_out = self.produced | self.other_fragments | {RECIPE}
        return {name: path for name, path in files_below(self.folder) if name not in left_out}

    def own_models(self) -> tuple[OwnModel, ...]:
        """The folder's models as the archive has them, with the overlay's and the copy's changes to the addressed one.

        Raises :class:`InputError` where a fragment is missing or a configuration cannot be merged.
        """
        return tuple(self._own(directory) for directory in model_directories(self.folder))

    def _own(self, directory: Path) -> OwnModel:
        config = ConfigFile(file=str(directory / CONFIG), text=text_inside(directory / CONFIG, self.folder))
        if directory.name != self.directory:
            return OwnModel(name=directory.name, directory=directory, config=config.text)
        text = merge_configs(config, self._read_fragments())
        if self.copy is not None:
            text = with_name(ConfigFile(file=config.file, text=text), self.name)
        return OwnModel(name=self.model, directory=directory, config=text)

    def _read_fragments(self) -> list[ConfigFile]:
        found: list[ConfigFile] = []
        problems: list[Problem] = []
        for index, name in enumerate(self.fragments):
            path = self.folder / name
            try:
                found.append(ConfigFile(file=str(path), text=text_inside(path, self.folder)))
            except OSError as error:
                place = f"overlays.{self.overlay}.config[{index}]"
                reason = f"{name}: {error.strerror or error}"
                allowed = "a fragment of config.pbtxt in the model folder"
                problems.append(Problem(file=str(self.folder / RECIPE), field=place, found=reason, allowed=allowed))
        refuse(problems)
        return found


def archives_of(folder: Path, choice: BuildChoice | None = None) -> tuple[ArchiveSource, ...]:
    """The archives that a model folder stands for: its overlays, its copies, or itself alone.

    Raises :class:`InputError` where the recipe is wrong.
    """
    choice = choice or BuildChoice()
    recipe = read_recipe(folder)
    name = folder.resolve().name

    def source(suffix: str, *, overlay: str | None = None, copy: int | None = None) -> ArchiveSource:
        return ArchiveSource(
            name=f"{name}{suffix}", folder=folder, overlay=overlay, copy=copy, choice=choice, written=recipe
        )

    if recipe.overlays:
        return tuple(source(f"-{overlay}", overlay=overlay) for overlay in recipe.overlays)
    if recipe.copies > 1:
        return tuple(source(f"-{copy}", copy=copy) for copy in range(recipe.copies))
    return (source(""),)


TENSORRT = "tensorrt"

PROVABLE = frozenset({"onnxruntime", "ensemble"})
"""Backends that the prover stands in for. Others of ``KIND_BACKENDS`` are proven in the local Triton: a Python model
sees all that Triton gives it nowhere else. Nothing here proves the rest."""


def skipped_proof(backends: Iterable[str]) -> str:
    """Why nothing here can prove an archive that needs these backends; empty where something can."""
    lacking = sorted(set(backends) - {"", *KIND_BACKENDS.values()})
    return f"the local Triton has no backend {', '.join(lacking)}" if lacking else ""


@dataclass(frozen=True, kw_only=True)
class ArchiveContents:
    """The Triton models of one archive, those of used folders included."""

    models: tuple[str, ...]  # their directories' names, sorted
    ensembles: tuple[str, ...]  # those of them that SageMaker's front end takes for ensembles
    # what ``backend:`` and ``platform:`` of their configurations name (``onnxruntime``, ``ensemble``, …)
    backends: frozenset[str]
    addressed: str = ""  # the model that requests reach by the recipe
    # those that no ensemble uses and that a Python model of the archive may send requests to (BLS), sorted: Triton
    # loads an ensemble's steps with it, and these only where it is told to
    called: tuple[str, ...] = ()
    # of the addressed model: ``pixels FP32 [-1, 64]``, sorted; none where Triton completes the configuration
    inputs: tuple[str, ...] = ()


def contents_of(source: ArchiveSource) -> ArchiveContents:
    """What an archive will contain.

    A configuration that names no backend adds none: the linter refuses it. Raises :class:`InputError` where a recipe
    or an overlay is wrong.
    """
    texts = {model.name: model.config for model in source.own_models()}
    directories = {model.name: model.directory for model in source.own_models()}
    for used in source.recipe.uses:
        for name in used.models:
            config = source.folder.parent / used.folder / name / CONFIG
            if config.is_file():
                texts[name] = text_inside(config, source.folder.parent / used.folder)
                directories[name] = config.parent
    configs = {name: read_config(texts[name]) for name in sorted(texts)}
    return ArchiveContents(
        models=tuple(configs),
        ensembles=tuple(name for name, config in configs.items() if config.is_ensemble),
        backends=frozenset(config.backend for config in configs.values()) - {""},
        addressed=source.model,
        called=called_models(configs, directories, addressed=source.model),
        inputs=_inputs_of(configs.get(source.model)),
    )


def _inputs_of(config: ModelConfig | None) -> tuple[str, ...]:
    if config is None:
        return ()
    most = config.max_batch_size
    return tuple(sorted(f"{each.name} {each.data_type} {list(each.shape(most))}" for each in config.inputs))


def called_models(
    configs: Mapping[str, ModelConfig], directories: Mapping[str, Path], *, addressed: str | None
) -> tuple[str, ...]:
    """The models of an archive that none of its ensembles uses and that a Python model of it may call, sorted.

    A model that names no backend has the one that Triton derives from its files.
    """
    from tritonstack.models.lint.view import view_model  # noqa: PLC0415  (the linter reads sources)

    steps = {step.text("model_name") for config in configs.values() for step in config.steps}
    others = {name for name, config in configs.items() if not config.is_ensemble and name not in (addressed, *steps)}
    backends = {name: config.backend or view_model(directories[name], ()).backend for name, config in configs.items()}
    programs = [programs_of(directories[name]) for name, backend in backends.items() if backend == "python"]
    infers = bool(others) and any(INFERS in calls_of(paths) for paths in programs)
    return tuple(sorted(others)) if infers else ()


def lacks_plan(source: ArchiveSource) -> bool:
    """Whether an archive needs a TensorRT engine that has yet to be built: a build makes its ONNX graph alone."""
    return bool(models_without_plan(source))


def models_without_plan(source: ArchiveSource) -> tuple[str, ...]:
    """The TensorRT models of an archive, those of used folders included, that neither folder nor export gives a plan.

    Sorted. Raises :class:`InputError` where a recipe or an overlay is wrong.
    """
    parts = {part.name: part for part in source.used}
    models = [(model, source) for model in source.own_models()]
    for used in source.recipe.uses:
        part = parts[used.folder]
        models += [(model, part) for model in part.own_models() if model.name in used.models]
    return tuple(sorted(model.name for model, part in models if _model_lacks_plan(model, part)))


def _model_lacks_plan(model: OwnModel, source: ArchiveSource) -> bool:
    config = read_config(model.config)
    if config.backend != TENSORRT:
        return False
    made = {name for export in source.recipe.exports for name in export.produces}
    files = (PurePosixPath(name) for name in {*source.files(), *made})
    return not any(path.parts[0] == model.directory.name and is_plan(path.name, config) for path in files)


def is_plan(name: str, config: ModelConfig) -> bool:
    """Whether a file of a TensorRT model is a plan by its name: what the backend loads, or one for another GPU."""
    return name.endswith(".plan") or name == config.model_file


# trtexec's stand-in writes an ONNX graph with a mark in a plan's place: such a file is no plan.


TRTEXEC = "trtexec-stand-in: the ONNX graph, marked, in the plan's place"


@dataclass(frozen=True, kw_only=True)
class TensorrtModel:
    name: str  # its directory
    versions: tuple[Path, ...]  # its version folders, the oldest first
    plan: str  # the file name that a plan of it has
    plans: tuple[Path, ...]  # the plans that are there, marked ones included

    @property
    def has_plan(self) -> bool:
        return bool(self.plans) and not any(is_marked(path) for path in self.plans)


def tensorrt_models(repository: Path) -> tuple[TensorrtModel, ...]:
    """The TensorRT models of a repository, sorted by name."""
    found = []
    for directory in model_directories(repository):
        config = read_config(text_inside(directory / CONFIG, repository))
        if config.backend == TENSORRT:
            versions = sorted(
                (path for path in directory.iterdir() if _is_version(path)), key=lambda path: int(path.name)
            )
            plans = tuple(
                path for version in versions for path in sorted(version.iterdir()) if is_plan(path.name, config)
            )
            found.append(
                TensorrtModel(name=directory.name, versions=tuple(versions), plan=config.model_file, plans=plans)
            )
    return tuple(found)


def _is_version(path: Path) -> bool:
    return path.is_dir() and path.name.isdigit()


LOCAL = "local"
"""The target of archives that only the local Triton serves."""


def target_of(source: ArchiveSource, platform: Platform | None) -> str | None:
    """The name of what an archive is built for; None where it serves everywhere.

    ``platform``: of the endpoint that shall serve it; None for the local Triton.
    """
    return target_for(source.recipe.dependency, platform)


def target_for(dependency: Dependency, platform: Platform | None) -> str | None:
    """The same by what an archive depends on."""
    if dependency == "none":
        return None
    if platform is None:
        return LOCAL
    return f"python-{python_of(platform)}" if dependency == "python" else str(platform)


def python_of(platform: Platform) -> str:
    """The minor version of the Python that Python models run in. Raises :class:`InputError` for unknown releases."""
    release = load_catalogue().release(platform.release)
    if release is None:
        problem = Problem(field="release", found=platform.release, allowed="a release of the catalogue")
        raise InputError([problem])
    return release.python


def refuse_unservable(sources: Iterable[ArchiveSource], *, platform: Platform | None) -> None:
    """Raise :class:`InputError` for every archive that cannot be built for a target so that it would serve there."""
    problems = [problem for source in sources for problem in _problems(source, platform)]
    refuse(problems)


def _problems(source: ArchiveSource, platform: Platform | None) -> Iterable[Problem]:
    file, backends = str(source.folder / RECIPE), contents_of(source).backends
    if not backends <= PROVABLE and not skipped_proof(backends):
        require_package()  # before any export: it has the local Triton that proves the archive
    if platform is not None and lacks_plan(source):
        yield Problem(
            file=file,
            found=f"{source.name} for {platform}: it needs a TensorRT engine that is built on that GPU with that "
            "release, and holds the ONNX graph instead, which the real backend does not load",
            allowed="the local AWS, whose stand-in for TensorRT runs the graph",
            advice="tritonstack prepare builds the engine on its GPU; with builds: {on_deploy: true} a deployment does",
        )
