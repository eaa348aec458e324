"""The files that ``capacity simulate`` writes: whether they can be, before it simulates, and writing them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tritonstack.errors import Problem, WorkFailedError


def target_problems(targets: Sequence[tuple[str, Path | None]]) -> list[Problem]:
    """What is wrong with the paths given as options (``--json``); None: the option was not given."""
    return [
        Problem(
            file=str(file),
            field=option,
            found=found,
            allowed="a file in a folder that is there, or can be made, and may be written",
        )
        for option, file in targets
        if file is not None and (found := _obstacle(file)) is not None
    ]


def _obstacle(file: Path) -> str | None:
    """Of the nearest folder on the way to ``file`` that is there."""
    folder = Path(os.path.abspath(file)).parent  # noqa: PTH100  (resolve() would fail on what may not be read)
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        return f"{folder} is no folder"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"{folder} may not be written by this user"


def write_text(file: Path, text: str) -> None:
    """Writes to a temporary name beside ``file``, then moves; to a device (/dev/stdout) as it is.

    Raises:
        WorkFailedError: it cannot be written. Nothing is left of it then.
    """
    with failures_of(file):
        if file.exists() and not file.is_file():
            file.write_text(text, encoding="utf-8")
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def failures_of(file: Path) -> Iterator[None]:
    """What the system says of writing ``file``, with that name and not a temporary one."""
    try:
        yield
    except OSError as error:
        raise WorkFailedError(f"{file} cannot be written: {error.strerror or error}") from error
