"""Writes ``facts.yaml`` anew: ``python -m tests.review.corpus.write``. Read what changes before it is committed."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import yaml

HEAD = "# The facts of each case's report; `python -m tests.review.corpus.write` writes it.\n"


def main() -> int:
    """Write the file."""
    os.environ["CDK_VALIDATION"] = "false"  # before the CDK starts, and so before it is imported
    from tests.review.corpus.case import FOLDER, cases
    from tests.review.corpus.made import Made, facts_of

    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder))
        found = {each.name: facts_of(made, each) for each in cases()}
    text = yaml.safe_dump(found, sort_keys=False, width=116, default_flow_style=None)
    (FOLDER / "facts.yaml").write_text(HEAD + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
