"""Writes ``says/*.yaml`` anew: ``python -m tests.review.corpus.write``. Read what changes before it is committed."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import yaml

HEAD = "# What a review must say of each case; `python -m tests.review.corpus.write` writes it.\n"


def main() -> int:
    """Every file."""
    os.environ["CDK_VALIDATION"] = "false"  # before the CDK starts, and so before it is imported
    from tests.review.corpus.case import cases
    from tests.review.corpus.made import Made, said_of
    from tests.review.corpus.side import FOLDER

    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder))
        said = {each.name: said_of(made, each) for each in cases()}
    for path in sorted((FOLDER / "cases").glob("*.yaml")):
        names = yaml.safe_load(path.read_text())
        text = yaml.safe_dump({name: said[name] for name in names}, sort_keys=False, width=116, allow_unicode=True)
        (FOLDER / "says" / path.name).write_text(HEAD + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
