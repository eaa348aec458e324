"""An export script's frame: read the arguments, do the work, turn what went wrong into a sentence and exit code 1."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.arguments import Arguments, parse
from tritonstack.exporters.progress import quiet


def run(work: Callable[[Arguments], None]) -> int:
    """Do the work. Returns the exit code."""
    quiet()
    try:
        work(parse())
    except WorkFailedError as error:
        print(f"export: {error}", file=sys.stderr, flush=True)  # noqa: T201  what the build shows as the reason
        return 1
    return 0
