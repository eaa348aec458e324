"""What a stage synthesises is what its settings are compared with."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest

from stacks.stage import EnvironmentStage, builds_of
from tests.constructs_lib.templates import new_app
from tests.stacks.environments import DIGITS, SINGLE, environment, stage
from tests.stacks.everything import everything, everything_served, stacks_of
from tritonstack.config import Environment, load_environment
from tritonstack.deployed.stacks import DeployedStack, expects_builds, parts_of
from tritonstack.naming import BUILDS
from tritonstack.paths import REPOSITORY
from tritonstack.served import served_by


def deployed(stack: cdk.Stack) -> DeployedStack:
    """The stack as CloudFormation would have it."""
    return DeployedStack(
        name=stack.stack_name, id=stack.stack_name, status="CREATE_COMPLETE", tags=stack.tags.tag_values()
    )


def assert_same(made: EnvironmentStage, settings: Environment, *, builds: bool | None) -> None:
    app = made.node.root
    assert isinstance(app, cdk.App)
    found = {each.node.id: deployed(each) for each in stacks_of(made)}
    expected = {*parts_of(settings), *([BUILDS] if builds else [])}
    assert {name for name in found if not name.startswith("observability-")} == expected
    app.synth()  # tags are put on stacks when they are synthesised
    assert {each.part for each in map(deployed, stacks_of(made))} == set(found)


@pytest.mark.parametrize("changes", [{}, {"dashboard": True}, {"alarms": {}}, {"load_test": {}}, {"endpoints": []}])
def test_the_settings_determine_which_stacks_a_stage_has(changes: dict[str, object]) -> None:
    settings = environment(*([] if "endpoints" in changes else [DIGITS, {**SINGLE, "name": "one"}]), **changes)
    assert_same(stage(settings), settings, builds=False)


def test_an_environment_with_everything_has_every_kind_of_stack(tmp_path: Path) -> None:
    settings = everything_served(tmp_path).environment
    assert_same(everything(tmp_path, scope=new_app()), settings, builds=True)


@pytest.mark.parametrize("name", ["local", "dev", "prod"])
def test_a_builds_stack_is_expected_where_the_models_need_one(name: str) -> None:
    file = REPOSITORY / "environments" / f"{name}.yaml"
    settings = load_environment(file)
    made = builds_of(served_by(settings, REPOSITORY / "model_repos", file=file), models=REPOSITORY / "model_repos")
    assert expects_builds(settings, project=REPOSITORY) is (made is not None)


def test_without_sound_model_folders_a_builds_stack_is_neither_expected_nor_not(tmp_path: Path) -> None:
    settings = environment(DIGITS)
    assert expects_builds(settings, project=tmp_path) is None
    given = environment(DIGITS, builds={"on_deploy": True})
    assert expects_builds(given, project=tmp_path) is True
