"""Put an archive's model repository together: the folder's models, what exports made, models of other folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from tritonstack.errors import InputError, Problem
from tritonstack.models.folder import CONFIG, files_below
from tritonstack.models.model_config import read_config
from tritonstack.models.recipe import RECIPE
from tritonstack.models.source import ArchiveSource, OwnModel


def stage_repository(
    source: ArchiveSource, *, exports: Mapping[str, Path], target: Path, added: Mapping[str, Path] | None = None
) -> None:
    """Fill the new folder ``target`` with the Triton models of an archive.

    Args:
        source: the archive's; its overlay and copy are carried out here.
        exports: folder name → the files of its exports, for this folder and for those it uses.
        target: made here. Files are linked where the file system can, so that weights are not copied. A file beside it
            notes where each file comes from, for :func:`in_sources`.
        added: further files of the addressed model: name below its directory → file.

    Raises:
        InputError: a used model does not exist, or two models have one name.
    """
    target.mkdir(parents=True)
    noted: dict[str, Path] = {}
    for model in source.own_models():
        noted |= _add(model, exported=exports.get(source.folder.name), left_out=source.produced, target=target)
    for name, path in (added or {}).items():
        noted[f"{source.model}/{name}"] = path
        _link_or_copy(path, target / source.model / name)
    problems: list[Problem] = []
    for index, used in enumerate(source.recipe.uses):
        other = ArchiveSource(name=used.folder, folder=source.folder.parent / used.folder, choice=source.choice)
        models = {model.name: model for model in other.own_models()} if other.folder.is_dir() else {}
        for name in used.models:
            found = f"no model {name} in {used.folder}" if name not in models else ""
            if (target / name).exists():
                found = f"a second model {name}"
            if found:
                field = f"uses[{index}].models"
                file = str(source.folder / RECIPE)
                problems.append(Problem(file=file, field=field, found=found, allowed="models, each once"))
            else:
                exported = exports.get(used.folder)
                noted |= _add(models[name], exported=exported, left_out=other.produced, target=target)
    if problems:
        raise InputError(problems)
    _sources_file(target).write_text(json.dumps({name: str(path) for name, path in noted.items()}))


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


def _add(model: OwnModel, *, exported: Path | None, left_out: Collection[str], target: Path) -> dict[str, Path]:
    """Stage one model. Returns where each staged file comes from, by its name below ``target``."""
    place = target / model.name
    place.mkdir()
    directory = model.directory
    found = {
        name: path for name, path in files_below(directory) if f"{directory.name}/{name}" not in left_out
    }  # what an earlier export left in the folder is not what this one made
    if exported is not None and (exported / directory.name).is_dir():
        found |= dict(files_below(exported / directory.name))
    for name, path in found.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        if name == CONFIG and model.config != path.read_text(encoding="utf-8", errors="replace"):
            (place / name).write_text(model.config, encoding="utf-8")
        else:
            _link_or_copy(path, place / name)
    if read_config(model.config).is_ensemble:
        # Triton wants a version folder of an ensemble too, and version control keeps no empty folder.
        (place / "1").mkdir(exist_ok=True)
    return {f"{model.name}/{name}": path for name, path in found.items()}


def _link_or_copy(source: Path, place: Path) -> None:
    try:
        place.hardlink_to(source.resolve())
    except OSError:
        shutil.copyfile(source, place)
        shutil.copymode(source, place)
