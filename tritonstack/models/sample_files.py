"""The sample and the client files of an archive's source: of the folder, or made by its exports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tritonstack.errors import InputError, Problem
from tritonstack.models.exporting import WriteSample, exported_files
from tritonstack.models.manifest import ModelEntry, SampleEntry
from tritonstack.models.places import Places
from tritonstack.models.recipe import RECIPE
from tritonstack.models.sample import read_request, sample_file
from tritonstack.models.sample_request import Arrays, request_arrays, save_arrays
from tritonstack.models.source import ArchiveSource


def client_files(source: ArchiveSource, exported: Path | None) -> dict[str, Path]:
    """Name → file, for everything that clients need. Raises :class:`InputError` where the folder lacks one."""
    recipe = source.recipe
    files = {name: sample_file(source.folder, recipe, name, exported) for name in recipe.client_files}
    problems = [
        Problem(
            file=str(source.folder / RECIPE),
            field="client_files",
            found=f"no file {name}",
            allowed="files of the folder, or that an export makes",
        )
        for name, path in files.items()
        if not path.is_file()
    ]
    if problems:
        raise InputError(problems)
    return files


def sample_arrays(
    source: ArchiveSource, sample: SampleEntry, *, model: ModelEntry, files: Mapping[str, Path]
) -> Arrays:
    """The sample request as the model takes it. Raises :class:`InputError` where it is not what the model takes."""
    recipe = source.recipe
    file = str(source.folder / recipe.sample.request)
    return request_arrays(sample, adapters=recipe.adapters, model=model, files=files, file=file)


def built_sample_file(source: ArchiveSource, places: Places) -> Path:
    """The sample request's file of an archive that was built here.

    Raises :class:`InputError` where an export makes it and did not, on this machine and from this folder as it is.
    """
    exported = None
    if source.recipe.exports:
        exported = exported_files(source, places.exports)
    path = sample_file(source.folder, source.recipe, source.recipe.sample.request, exported)
    if not path.is_file():
        problem = Problem(
            file=str(path),
            found="no sample request",
            allowed="the file that the build made",
            advice=f"tritonstack build {source.name}",
        )
        raise InputError([problem])
    return path


def sample_writer(source: ArchiveSource, model: ModelEntry) -> WriteSample:
    """What gives an archive's export scripts the sample request, where the folder holds all that it takes."""
    recipe = source.recipe
    made = {name for export in recipe.exports for name in export.produces}
    needed = {name for adapter in recipe.adapters.present.values() for name in adapter.files}

    def write(path: Path) -> bool:
        if recipe.sample.request in made or made & needed:
            return False
        files = {name: source.folder / name for name in needed}
        sample = read_request(source.folder, recipe)
        return save_arrays(sample_arrays(source, sample, model=model, files=files), path)

    return write
