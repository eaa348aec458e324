"""Rewrites the committed snapshots from what is synthesised now, or with ``--check`` says how they differ.

python -m tritonstack.review.write [--check]
"""

# ruff: noqa: T201 - a command
from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tritonstack.errors import InputError, TritonstackError
from tritonstack.paths import machine_folder
from tritonstack.review.assembly import read_assembly
from tritonstack.review.current import out_of_date
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.stored import FOLDER, write_snapshots
from tritonstack.review.synthesis import synthesise

ROOT = machine_folder()


def main(arguments: list[str]) -> int:
    """Synthesise with validation, and write or check.

    Returns 0, an error's exit code after its message, or with ``--check`` 1 where the snapshots are out of date.
    """
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return InputError.exit_code
    try:
        with tempfile.TemporaryDirectory(prefix="snapshots-") as name:
            synthesise(ROOT, Path(name))
            snapshots = read_assembly(Path(name))
        return check(snapshots) if arguments else write(snapshots)
    except TritonstackError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def check(snapshots: Snapshots) -> int:
    """Say what differs from the committed snapshots. Returns 1 where anything does, else 0."""
    told = out_of_date(snapshots, ROOT / FOLDER)
    print("\n".join(told or [f"{FOLDER}/ is what is synthesised now."]))
    return 1 if told else 0


def write(snapshots: Snapshots) -> int:
    """Write them, and say which files changed. Returns 0."""
    touched = write_snapshots(snapshots, ROOT / FOLDER)
    for path in touched:
        print(f"{FOLDER}/{path}{'' if (ROOT / FOLDER / path).is_file() else ' (removed)'}")
    stacks = sum(len(each.stacks) for each in snapshots.environments.values())
    print(f"{stacks} stacks of {len(snapshots.environments)} environments: {len(touched)} files written or removed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
