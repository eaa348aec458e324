"""TensorRT models of an archive or a repository, and whether each has its plan or a stand-in's marked file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritonstack.model_files.marked_plan import is_marked
from tritonstack.models.model_config import ModelConfig, read_config
from tritonstack.models.source import ArchiveSource, OwnModel
from tritonstack.models.source_files import CONFIG, model_directories
from tritonstack.untrusted.folder_files import text_inside

TENSORRT = "tensorrt"


def lacks_plan(source: ArchiveSource) -> bool:
    """Whether an archive needs a TensorRT engine that has yet to be built: a build makes its ONNX graph alone."""
    return bool(models_without_plan(source))


def models_without_plan(source: ArchiveSource) -> tuple[str, ...]:
    """The TensorRT models of an archive, those of used folders included, that neither folder nor export gives a plan.

    Sorted. Raises :class:`InputError` where a recipe or an overlay is wrong.
    """
    parts = {part.name: part for part in source.used}
    models = [(model, source) for model in source.own_models]
    for used in source.recipe.uses:
        part = parts[used.folder]
        models += [(model, part) for model in part.own_models if model.name in used.models]
    return tuple(sorted(model.name for model, part in models if _model_lacks_plan(model, part)))


def _model_lacks_plan(model: OwnModel, source: ArchiveSource) -> bool:
    config = read_config(model.config)
    if config.backend != TENSORRT:
        return False
    made = {name for export in source.recipe.exports for name in export.produces}
    files = (PurePosixPath(name) for name in {*source.files(), *made})
    return not any(path.parts[0] == model.directory.name and is_plan(path.name, config) for path in files)


def is_plan(name: str, config: ModelConfig) -> bool:
    """Whether a file of a TensorRT model is a plan by its name: the one that is loaded, or one for another GPU."""
    return name.endswith(".plan") or name == config.model_file


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
