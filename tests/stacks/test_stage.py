"""One stage per environment: its stacks, their names and order; a stage from a file; commits in release sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stacks
import tritonstack_stacks
from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import new_app, properties, template_of
from tests.stacks.app_process import ROOT, files_under, run_app
from tests.stacks.environments import DIGITS, SINGLE, digests, environment, new_stage, stage
from tests.stacks.everything import stacks_of
from tritonstack.config import engines_built_on_deploy


def test_an_environment_is_one_stage_with_an_artifacts_stack_and_a_serving_stack_an_endpoint() -> None:
    made = stage(environment(DIGITS, SINGLE))
    assert made.node.id == "dev"
    assert {stack.node.path: stack.stack_name for stack in [made.artifacts, *made.serving.values()]} == {
        "dev/artifacts": "dev-artifacts",
        "dev/serving-digits": "dev-serving-digits",
        "dev/serving-single": "dev-serving-single",
    }


def test_an_environment_without_endpoints_is_its_bucket_and_key_whatever_is_switched_on() -> None:
    settings = environment(endpoints=[], dashboard=True, alarms={}, load_test={}, builds={"on_deploy": True})
    assert [stack.node.id for stack in stacks_of(new_stage(settings))] == ["artifacts"]
    assert not engines_built_on_deploy(settings, needs_engine=True)


def test_it_is_what_the_app_makes_of_the_file_and_imports_nothing_of_cdk_pipelines(tmp_path: Path) -> None:
    ran = run_app(tmp_path / "app", context={"environments": "local"}, variables={"PYTHONPROFILEIMPORTTIME": "1"})
    assert ran.returncode == 0, ran.stderr
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")}
    assert "stacks.stage" in imported
    of_pipelines = ("aws_cdk.pipelines", "aws_cdk.aws_codepipeline", "stacks.pipeline")
    assert not [name for name in imported if name.startswith(of_pipelines)]
    app = new_app(outdir=str(tmp_path / "own"))
    EnvironmentStage.from_file(app, file=ROOT / "environments" / "local.yaml", models=ROOT / "model_repos")
    app.synth()
    one, other = (
        {name: content for name, content in files_under(tmp_path / folder).items() if name.endswith(".template.json")}
        for folder in ("app", "own")
    )
    assert one
    assert one == other


def test_a_checkout_has_the_name_that_a_wheel_gives_the_stacks() -> None:
    assert tritonstack_stacks.__all__ == stacks.__all__
    assert tritonstack_stacks.EnvironmentStage is EnvironmentStage
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        getattr(stacks, "Nothing")  # noqa: B009 - the attribute does not exist


def test_a_release_set_holds_the_commit_of_each_of_its_models_and_of_no_other(tmp_path: Path) -> None:
    settings = environment(DIGITS)
    [(endpoint, models)] = digests(settings).items()
    app = new_app(outdir=str(tmp_path))
    known = dict.fromkeys([*sorted(models)[1:], "of-another-endpoint"], "1" * 40)
    made = EnvironmentStage(app, environment=settings, release_sets=digests(settings), commits=known)
    key = properties(template_of(made.serving[endpoint]), "Custom::ReleaseRecords")["ReleaseSetKey"]
    [asset] = tmp_path.rglob(f"asset.{key}")
    written = json.loads(asset.read_text())
    assert written["commits"] == {**dict.fromkeys(models, "1" * 40), sorted(models)[0]: "unknown"}
    assert written["models"] == models
