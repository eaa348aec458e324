"""Commits on their way from synthesis into the release set, which the activation function reads."""

from __future__ import annotations

import json
from pathlib import Path

from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import new_app, properties, template_of
from tests.stacks.environments import DIGITS, digests, environment


def test_a_release_set_tells_the_commit_of_each_of_its_models_and_of_no_other(tmp_path: Path) -> None:
    settings = environment(DIGITS)
    [(endpoint, models)] = digests(settings).items()
    app = new_app(outdir=str(tmp_path))
    known = dict.fromkeys([*sorted(models)[1:], "of-another-endpoint"], "1" * 40)
    made = EnvironmentStage(app, environment=settings, release_sets=digests(settings), commits=known)
    key = properties(template_of(made.serving[endpoint]), "Custom::ReleaseRecords")["ReleaseSetKey"]
    [asset] = tmp_path.rglob(f"asset.{key}")
    told = json.loads(asset.read_text())
    assert told["commits"] == {**dict.fromkeys(models, "1" * 40), sorted(models)[0]: "unknown"}
    assert told["models"] == models
