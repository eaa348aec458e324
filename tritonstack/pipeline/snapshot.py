"""Rewrites the committed snapshots of what a pipeline adds: its own stack, and the access stack of each environment.

python -m tritonstack.pipeline.snapshot

The environments' other stacks are the same with a pipeline as without; ``snapshots/`` has those.
"""

# ruff: noqa: T201 - a command
from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tritonstack.errors import InputError, TritonstackError
from tritonstack.paths import machine_folder
from tritonstack.review.assembly import read_assembly, synthesise
from tritonstack.review.snapshot import Snapshots, part_of
from tritonstack.review.stored import write_snapshots

FOLDER = "snapshots-pipeline"
ADDED = ("pipeline", "pipeline-access")
SETTINGS = "pipeline.yaml"
"""The file that a pipeline is made of."""
CONTEXT = {"pipeline": "true"}
"""The context that makes the app add it."""


def added_by_pipeline(synthesised: Snapshots) -> Snapshots:
    """Of a synthesised pipeline, the stacks that are there only because of it, with their findings."""
    return part_of(synthesised, ADDED)


def main(arguments: list[str]) -> int:
    """Synthesise and write. Returns 0, or an error's exit code after its message."""
    root = machine_folder()
    if arguments:
        print(__doc__, file=sys.stderr)
        return InputError.exit_code
    try:
        with tempfile.TemporaryDirectory(prefix="snapshots-") as name:
            synthesise(root, Path(name), context=CONTEXT)
            touched = write_snapshots(added_by_pipeline(read_assembly(Path(name))), root / FOLDER)
    except TritonstackError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print("\n".join(f"{FOLDER}/{path}" for path in touched) or f"{FOLDER}/ is what is synthesised now.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
