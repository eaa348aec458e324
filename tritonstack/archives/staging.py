"""Put an archive's model repository together: the folder's models, what its export made, models of other folders."""

from __future__ import annotations

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
    the file system can, so that weights are not copied. Raises :class:`InputError` where a used model does not exist
    or two models have one name.
    """
    target.mkdir(parents=True)
    for model in model_directories(folder):
        _add(model, exports.get(folder.name), target)
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
                _add(model, exports.get(used.folder), target)
    if problems:
        raise InputError(problems)


def _add(model: Path, exported: Path | None, target: Path) -> None:
    sources = [model]
    if exported is not None and (exported / model.name).is_dir():
        sources.append(exported / model.name)
    for source in sources:
        for name, path in files_below(source):
            place = target / model.name / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)  # the export's file wins over one that an earlier export left in the folder
            _link_or_copy(path, place)
    if read_config((model / CONFIG).read_text()).is_ensemble:
        # Triton wants a version folder of an ensemble too, and version control keeps no empty folder.
        (target / model.name / "1").mkdir(exist_ok=True)


def _link_or_copy(source: Path, place: Path) -> None:
    try:
        place.hardlink_to(source.resolve())
    except OSError:
        shutil.copyfile(source, place)
        shutil.copymode(source, place)
