"""Where the files lie that are no part of a package: in a checkout beside the packages, in a wheel inside this one.

``setup.py`` says what a wheel carries.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
CARRIED = "_repository"
"""The folder of this package that only a wheel has."""
CHECKOUT: Path | None = None if (PACKAGE / CARRIED).is_dir() else PACKAGE.parent
"""The repository; None where this is an installed wheel."""
LIBRARY = PACKAGE.parent
"""What a Python must have on its path to import the packages: the repository, or a ``site-packages``."""


def repository_path(name: str) -> Path:
    """A file or folder by its path in the repository (``lambda``, ``schemas/releases.schema.json``)."""
    return (CHECKOUT or PACKAGE / CARRIED) / name


def machine_folder() -> Path:
    """Where ``.envs/``, ``node_modules/`` and ``.local/`` lie: the repository, or of a wheel the working folder."""
    return CHECKOUT or Path.cwd()
