"""What a digest covers, as one zip: kept beside the archives, so that a recorded digest can be built again later."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from tritonstack.archives.digest import library_files, lock_files
from tritonstack.archives.folder import files_below
from tritonstack.archives.source import ArchiveSource

_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can name


def zip_inputs(source: ArchiveSource, target: Path) -> None:
    """Write the sources of an archive's folder, of the folders it uses, their lock files and the exporters' library.

    Inside: ``model_repos/<folder>/…``, ``requirements/<environment>.txt`` and ``tritonstack/exporters/…``, as the
    repository has them; the same bytes every time. Files that an export makes are left out.
    """
    members: dict[str, Path] = {}
    _collect(source, members)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _NO_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o100644 << 16
            with members[name].open("rb") as file, archive.open(info, "w", force_zip64=True) as stream:
                shutil.copyfileobj(file, stream, 1 << 20)


def _collect(source: ArchiveSource, members: dict[str, Path]) -> None:
    folder = source.folder
    for name, path in files_below(folder):
        if name not in source.produced:
            members[f"model_repos/{folder.resolve().name}/{name}"] = path
    members |= {f"requirements/{lock.name}": lock for lock in lock_files(folder, source.recipe)}
    members |= {f"tritonstack/exporters/{name}": path for name, path in library_files(source.recipe).items()}
    for used in source.used:
        _collect(used, members)
