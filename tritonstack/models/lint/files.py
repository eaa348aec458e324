"""Rules about files that do not belong into an archive."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

from tritonstack.models.folder import model_directories
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.view import RepositoryView

STRAY = (
    ".ipynb_checkpoints",
    ".git",
    ".svn",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    "*~",
    "*.swp",
    "*.swo",
    "*.bak",
    "*.orig",
    "*.rej",
    "*.tmp",
    "*.partial",
    "#*#",
    ".#*",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".vscode",
    ".idea",
    "*.ipynb",
)
"""What notebooks, version control, editors and file managers leave behind."""

COMPILED = ("__pycache__", "*.pyc")
"""What the interpreter leaves behind. Our packer leaves it out, and Python makes it again at once."""


def check(view: RepositoryView) -> Iterator[Finding]:
    """What something left behind, and links that lead out of the archive: in all that is packed.

    Of a model folder with a recipe the models are packed, of any other repository everything.
    """
    packed_by_us = view.recipe is not None
    for root in model_directories(view.root) if packed_by_us else (view.root,):
        yield from _below(root, packed_by_us=packed_by_us)


def _below(root: Path, *, packed_by_us: bool) -> Iterator[Finding]:
    for current, directories, names in os.walk(root):
        for name in sorted([*directories, *names]):
            path = Path(current) / name
            if name == ".ipynb_checkpoints":
                yield _stray(path, "notebook-checkpoints", "a folder that a notebook left behind")
            elif _is_like(name, COMPILED) and not packed_by_us:
                yield _stray(path, "compiled-python", "what Python compiled on some machine")
            elif _is_like(name, STRAY):
                yield _stray(path, "stray-file", "what an editor or version control left behind")
            elif path.is_symlink():
                yield from _link(path, root)
        directories[:] = [name for name in directories if not _is_like(name, (*STRAY, *COMPILED))]


def _is_like(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _stray(path: Path, rule: str, found: str) -> Finding:
    allowed = "none: other tools pack it, and Triton may read it as a model or a version"
    return Finding(file=path, rule=rule, found=found, allowed=allowed, advice="delete it")


def _link(path: Path, root: Path) -> Iterator[Finding]:
    real = Path(os.path.realpath(path))
    if not real.exists() or not real.is_relative_to(root.resolve()):
        found = f"a link to {path.readlink()}"
        yield Finding(file=path, rule="link-outside", found=found, allowed="links to files inside the archive")
