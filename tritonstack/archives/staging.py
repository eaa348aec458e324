"""Put an archive's model repository together: the folder's models, what its export made, models of other folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from tritonstack.archives.folder import CONFIG, files_below, model_directories
from tritonstack.archives.model_config import read_config
from tritonstack.archives.recipe import RECIPE, Recipe
from tritonstack.errors import InputError, Problem


def stage_repository(folder: Path, recipe: Recipe, *, exports: Mapping[str, Path], target: Path) -> None:
    """Fill the new folder ``target`` with the Triton models of a model folder.

    ``exports``: folder name → the files of its export, for this folder and for those it uses. Files are linked where
    the file system can, so that weights are not copied. A file beside ``target`` notes where each file comes from,
    for :func:`in_sources`. Raises :class:`InputError` where a used model does not exist or two models have one name.
    """
    target.mkdir(parents=True)
    sources: dict[str, Path] = {}
    for model in model_directories(folder):
        sources |= _add(model, exports.get(folder.name), target)
    problems: list[Problem] = []
    for index, used in enumerate(recipe.uses):
        for name in used.models:
            model = folder.parent / used.folder / name
            found = f"no model {name} in {used.folder}" if not (model / CONFIG).is_file() else ""
            if (target / name).exists():
                found = f"a second model {name}"
            if found:
                field = f"uses[{index}].models"
                problems.append(
                    Problem(file=str(folder / RECIPE), field=field, found=found, allowed="models, each once")
                )
            else:
                sources |= _add(model, exports.get(used.folder), target)
    if problems:
        raise InputError(problems)
    _sources_file(target).write_text(json.dumps({name: str(path) for name, path in sources.items()}))


def in_sources(text: str, repository: Path) -> str:
    """A message about a staged repository, with every staged file by the name of its source.

    A source below the working directory is named from there, as a person would.
    """
    sources: dict[str, str] = json.loads(_sources_file(repository).read_text())
    here = Path.cwd()
    for name in sorted(sources, key=len, reverse=True):
        source = Path(sources[name]).resolve()
        shown = source.relative_to(here) if source.is_relative_to(here) else source
        text = text.replace(str(repository.resolve() / name), str(shown))
    return text


def _sources_file(repository: Path) -> Path:
    return repository.with_name(f"{repository.name}.sources.json")


def _add(model: Path, exported: Path | None, target: Path) -> dict[str, Path]:
    """Stage one model. Returns where each staged file comes from, by its name below ``target``."""
    found: dict[str, Path] = {}
    sources = [model]
    if exported is not None and (exported / model.name).is_dir():
        sources.append(exported / model.name)
    for source in sources:
        for name, path in files_below(source):
            place = target / model.name / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)  # the export's file wins over one that an earlier export left in the folder
            _link_or_copy(path, place)
            found[f"{model.name}/{name}"] = path
    if read_config((model / CONFIG).read_text()).is_ensemble:
        # Triton wants a version folder of an ensemble too, and version control keeps no empty folder.
        (target / model.name / "1").mkdir(exist_ok=True)
    return found


def _link_or_copy(source: Path, place: Path) -> None:
    try:
        place.hardlink_to(source.resolve())
    except OSError:
        shutil.copyfile(source, place)
        shutil.copymode(source, place)
