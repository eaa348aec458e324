"""The CDK app of one side of a case, with the policy checks: what ``cdk.json`` of a project names.

Context: ``case``, ``side`` (before, after) and ``folder``, where the project's files are written to.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from stacks import app as the_app
from tests.review.corpus.case import case


def main() -> int:
    """Synthesise into ``CDK_OUTDIR``; open findings fail it, and their report lies there."""
    app = cdk.App(analytics_reporting=False)
    of = case(app.node.get_context("case"))
    side = of.before if app.node.get_context("side") == "before" else of.after
    folder = Path(app.node.get_context("folder"))
    side.written(folder)
    side.stage(app, folder)
    the_app.check_with_nag(app, nist=False)
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
