"""The stage of an environment's file, for an app or a pipeline of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import stacks
import tritonstack_stacks
from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import new_app
from tests.stacks.app_process import ROOT, files_under, run_app
from tritonstack.errors import InputError


def test_it_is_what_the_app_makes_of_the_file(tmp_path: Path) -> None:
    ran = run_app(tmp_path / "app", context={"environments": "local"})
    assert (ran.returncode, ran.stderr) == (0, "")
    app = new_app(outdir=str(tmp_path / "own"))
    EnvironmentStage.from_file(app, file=ROOT / "environments" / "local.yaml", models=ROOT / "model_repos")
    app.synth()
    one, other = (
        {name: content for name, content in files_under(tmp_path / folder).items() if name.endswith(".template.json")}
        for folder in ("app", "own")
    )
    assert one
    assert one == other


def test_a_wrong_file_is_told_with_every_problem(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("environment: other\nregion: mars\n")
    with pytest.raises(InputError) as raised:
        EnvironmentStage.from_file(new_app(), file=file, models=ROOT / "model_repos")
    assert {"account", "region"} <= {problem.field for problem in raised.value.problems}


def test_a_checkout_has_the_name_that_a_wheel_gives_the_stacks() -> None:
    assert tritonstack_stacks.__all__ == stacks.__all__
    assert tritonstack_stacks.EnvironmentStage is EnvironmentStage
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        getattr(stacks, "Nothing")  # noqa: B009 - the attribute does not exist
