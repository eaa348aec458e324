"""``python -m tritonstack.review.write``: rewrites the committed snapshots from what is synthesised now."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tritonstack.errors import TritonstackError
from tritonstack.review.assembly import read_assembly
from tritonstack.review.stored import FOLDER, write_snapshots
from tritonstack.review.synthesis import synthesise

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Synthesise with validation, and write. Returns 0, or an error's exit code after its message."""
    try:
        with tempfile.TemporaryDirectory(prefix="snapshots-") as name:
            synthesise(ROOT, Path(name))
            snapshots = read_assembly(Path(name))
        touched = write_snapshots(snapshots, ROOT / FOLDER)
    except TritonstackError as error:
        print(error, file=sys.stderr)  # noqa: T201 - this is a command
        return error.exit_code
    for path in touched:
        print(f"{FOLDER}/{path}{'' if (ROOT / FOLDER / path).is_file() else ' (removed)'}")  # noqa: T201 - as above
    stacks = sum(len(each.stacks) for each in snapshots.environments.values())
    told = f"{stacks} stacks of {len(snapshots.environments)} environments: {len(touched)} files written or removed"
    print(told)  # noqa: T201 - as above
    return 0


if __name__ == "__main__":
    sys.exit(main())
