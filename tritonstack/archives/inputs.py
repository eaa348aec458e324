"""What a digest covers, as one zip: kept beside the archives, so that a recorded digest can be built again later."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from tritonstack.archives.digest import lock_files
from tritonstack.archives.folder import files_below
from tritonstack.archives.recipe import read_recipe

_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can name


def zip_inputs(folder: Path, target: Path) -> None:
    """Write the sources of a model folder, of the folders it uses, and their lock files; the same bytes every time.

    Inside: ``model_repos/<folder>/…`` and ``requirements/<environment>.txt``, as the repository has them. Files that an
    export makes are left out.
    """
    members: dict[str, Path] = {}
    _collect(folder, members)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _NO_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o100644 << 16
            with members[name].open("rb") as source, archive.open(info, "w", force_zip64=True) as stream:
                shutil.copyfileobj(source, stream, 1 << 20)


def _collect(folder: Path, members: dict[str, Path]) -> None:
    recipe = read_recipe(folder)
    sources = [(name, path) for name, path in files_below(folder) if name not in recipe.produced]
    members |= {f"model_repos/{folder.name}/{name}": path for name, path in sources}
    members |= {f"requirements/{lock.name}": lock for lock in lock_files(folder, recipe)}
    for used in recipe.uses:
        _collect(folder.parent / used.folder, members)
