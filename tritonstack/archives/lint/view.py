"""What the linter looks at: the models that an archive will hold; some of their files an export has yet to make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritonstack.archives.folder import CONFIG, files_below, is_junk, model_directories
from tritonstack.archives.model_config import ModelConfig, read_config
from tritonstack.archives.recipe import RECIPE, Recipe, read_recipe


@dataclass(frozen=True, kw_only=True)
class ModelView:
    """One Triton model: a directory with a ``config.pbtxt``.

    ``files`` are names below the directory, those included that an export makes; ``folders`` its sub-directories.
    """

    name: str
    file: Path
    config: ModelConfig
    files: frozenset[str]
    folders: frozenset[str]

    @property
    def versions(self) -> tuple[str, ...]:
        """The version folders that Triton reads: numbers without a leading zero."""
        return tuple(sorted(name for name in self.folders if name.isdecimal() and not name.startswith("0")))


@dataclass(frozen=True, kw_only=True)
class RepositoryView:
    """The models of one archive. ``recipe`` is None for a repository that is linted as it stands."""

    root: Path
    recipe: Recipe | None
    addressed: str | None
    models: dict[str, ModelView]

    @property
    def ensembles(self) -> tuple[ModelView, ...]:
        """The models that SageMaker's front end takes for ensembles."""
        return tuple(model for model in self.models.values() if model.config.is_ensemble)


def view_folder(folder: Path) -> RepositoryView:
    """A model folder with a recipe, or a model repository without one. Raises InputError where a recipe is wrong."""
    if not (folder / RECIPE).is_file():
        return view_repository(folder, addressed=None)
    recipe = read_recipe(folder)
    models = {model.name: _view(model, _produced(recipe, model.name)) for model in model_directories(folder)}
    for used in recipe.uses:
        other = folder.parent / used.folder
        produced_by = read_recipe(other)
        for name in used.models:
            if (other / name / CONFIG).is_file():
                models[name] = _view(other / name, _produced(produced_by, name))
    return RepositoryView(root=folder, recipe=recipe, addressed=recipe.model or folder.name, models=models)


def view_repository(folder: Path, *, addressed: str | None) -> RepositoryView:
    """A model repository as it stands, without a recipe."""
    models = {model.name: _view(model, ()) for model in model_directories(folder)}
    return RepositoryView(root=folder, recipe=None, addressed=addressed, models=models)


def _produced(recipe: Recipe, model: str) -> list[str]:
    """The files that an export makes below one model's directory."""
    names = (name for export in recipe.exports for name in export.produces)
    return [name.removeprefix(f"{model}/") for name in names if name.startswith(f"{model}/")]


def _view(directory: Path, produced: Iterable[str]) -> ModelView:
    files = {name for name, _ in files_below(directory)} | set(produced)
    there = {path.name for path in directory.iterdir() if path.is_dir() and not is_junk(path.name)}
    folders = there | {PurePosixPath(name).parts[0] for name in files if "/" in name}
    text = (directory / CONFIG).read_text(errors="replace")
    return ModelView(
        name=directory.name,
        file=directory / CONFIG,
        config=read_config(text),
        files=frozenset(files),
        folders=frozenset(folders),
    )
