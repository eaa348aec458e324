"""Rewrites the committed snapshots from what is synthesised now: python -m tritonstack.review.write."""
# ruff: noqa: T201 - a command

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tritonstack.errors import TritonstackError
from tritonstack.paths import machine_folder
from tritonstack.review.assembly import read_assembly, synthesise
from tritonstack.review.stored import FOLDER, write_snapshots

ROOT = machine_folder()


def main() -> int:
    """Synthesise with validation, write, and print the files that changed. Returns 0, or an error's exit code."""
    try:
        with tempfile.TemporaryDirectory(prefix="snapshots-") as name:
            synthesise(ROOT, Path(name))
            snapshots = read_assembly(Path(name))
    except TritonstackError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    touched = write_snapshots(snapshots, ROOT / FOLDER)
    for path in touched:
        print(f"{FOLDER}/{path}{'' if (ROOT / FOLDER / path).is_file() else ' (removed)'}")
    stacks = sum(len(each.stacks) for each in snapshots.environments.values())
    print(f"{stacks} stacks of {len(snapshots.environments)} environments: {len(touched)} files written or removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
