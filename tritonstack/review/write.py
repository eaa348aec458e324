"""Rewrites the committed snapshots from what is synthesised now, or with ``--check`` reports which files differ.

python -m tritonstack.review.write [--check]
"""
# ruff: noqa: T201 - a command

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tritonstack.errors import InputError, TritonstackError
from tritonstack.paths import machine_folder
from tritonstack.review.assembly import read_assembly, synthesise
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.stored import FINDINGS, FOLDER, texts_of, write_snapshots

ROOT = machine_folder()


def out_of_date(synthesised: Snapshots, folder: Path) -> list[str]:
    """Files of ``folder`` that are not what was synthesised, sorted; ``findings.json`` only where validation was on."""
    wanted = texts_of(synthesised)
    unknown = {f"{name}/{FINDINGS}" for name, each in synthesised.environments.items() if each.findings is None}
    there = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.json"))
    }
    return sorted(name for name in (wanted.keys() | there.keys()) - unknown if there.get(name) != wanted.get(name))


def main(arguments: list[str]) -> int:
    """Synthesise with validation, and write or check.

    Returns 0, an error's exit code after its message, or with ``--check`` 1 where a file differs.
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
    """Print the committed files that differ. Returns 1 where any does, else 0."""
    differing = out_of_date(snapshots, ROOT / FOLDER)
    if not differing:
        print(f"{FOLDER}/ is up to date.")
        return 0
    print("\n".join(f"{FOLDER}/{name}: differs" for name in differing))
    print(f"Run `make snapshots`, read `git diff {FOLDER}/`, and commit it with the change that caused it.")
    return 1


def write(snapshots: Snapshots) -> int:
    """Write the snapshots and print the files that changed. Returns 0."""
    touched = write_snapshots(snapshots, ROOT / FOLDER)
    for path in touched:
        print(f"{FOLDER}/{path}{'' if (ROOT / FOLDER / path).is_file() else ' (removed)'}")
    stacks = sum(len(each.stacks) for each in snapshots.environments.values())
    print(f"{stacks} stacks of {len(snapshots.environments)} environments: {len(touched)} files written or removed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
