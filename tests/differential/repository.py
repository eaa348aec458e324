"""Model repositories as data: sound ones to start from, and small changes to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Files = dict[str, str]
"""Path below the repository → text. A path that ends with a slash is a folder."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """A sound repository.

    Attributes:
        name: what kind of repository it is.
        model: the directory of the model that requests reach; its configuration is what changes are made to.
        files: the whole repository.
    """

    name: str
    model: str
    files: Mapping[str, str]

    @property
    def has_steps(self) -> bool:
        """Whether there are models beside the one that requests reach: an ensemble's."""
        return sum(path.endswith("/config.pbtxt") for path in self.files) > 1

    @property
    def config(self) -> str:
        """The path of the configuration that changes are made to."""
        return f"{self.model}/config.pbtxt"


Change = Callable[[Files, Base], None]
"""Changes the files in place."""


@dataclass(frozen=True)
class Mutation:
    """One mutated repository and what both judges must say of it.

    Attributes:
        name: what was changed; unique in all tables.
        base: the sound repository.
        change: one change or several, made in this order.
        rule: the linter's rule that refuses it; empty where it accepts it.
        server_says: what the server's own answer or log must contain; empty where it loads it.
    """

    name: str
    base: Base
    change: Change | tuple[Change, ...]
    rule: str = ""
    server_says: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the server loads it."""
        return not self.rule

    def write(self, folder: Path) -> None:
        """Lay the mutated repository out below an existing or new folder."""
        files = dict(self.base.files)
        for change in self.change if isinstance(self.change, tuple) else (self.change,):
            change(files, self.base)
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            target = folder / path
            if path.endswith("/"):
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8", newline="")


def swap(old: str, new: str, *, file: str | None = None, count: int = 1) -> Change:
    """Put ``new`` where ``old`` stands the first ``count`` times, in the base's configuration or in another file."""

    def change(files: Files, base: Base) -> None:
        path = file or base.config
        if files[path].count(old) < count:
            raise ValueError(f"{path} of {base.name} has no {old!r}")
        files[path] = files[path].replace(old, new, count)

    return change


def more(text: str, *, file: str | None = None) -> Change:
    """Add a line at the end of the base's configuration or of another file."""

    def change(files: Files, base: Base) -> None:
        files[file or base.config] += f"{text}\n"

    return change


def write(path: str, text: str) -> Change:
    """Write a file of one's own, or over one that is there."""

    def change(files: Files, base: Base) -> None:
        files[path] = text

    return change


def folder(path: str) -> Change:
    """Make an empty folder."""

    def change(files: Files, base: Base) -> None:
        files[f"{path.removesuffix('/')}/"] = ""

    return change


def drop(*paths: str) -> Change:
    """Remove files, or folders with all that is in them."""

    def change(files: Files, base: Base) -> None:
        for path in paths:
            gone = [name for name in files if name == path or name.startswith(f"{path.removesuffix('/')}/")]
            if not gone:
                raise ValueError(f"{base.name} has no {path}")
            for name in gone:
                del files[name]

    return change


def move(old: str, new: str) -> Change:
    """Rename a file or folder."""

    def change(files: Files, base: Base) -> None:
        moved = {name: f"{new}{name.removeprefix(old)}" for name in files if f"{name}/".startswith(f"{old}/")}
        if not moved:
            raise ValueError(f"{base.name} has no {old}")
        for name, target in moved.items():
            files[target] = files.pop(name)

    return change


def nothing(files: Files, base: Base) -> None:
    """Leave the repository as it is."""
