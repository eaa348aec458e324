"""One stage per environment: its stacks, their names, order and tags."""

from __future__ import annotations

from tests.stacks.environments import DIGITS, SINGLE, environment, stage


def test_an_environment_is_one_stage_with_an_artifacts_stack_and_a_serving_stack_an_endpoint() -> None:
    made = stage(environment(DIGITS, SINGLE))
    assert made.node.id == "dev"
    assert {stack.node.path: stack.stack_name for stack in [made.artifacts, *made.serving.values()]} == {
        "dev/artifacts": "dev-artifacts",
        "dev/serving-digits": "dev-serving-digits",
        "dev/serving-single": "dev-serving-single",
    }


def test_the_artifacts_stack_is_deployed_first() -> None:
    made = stage(environment(DIGITS, SINGLE))
    assert all(made.artifacts in stack.dependencies for stack in made.serving.values())
    assert made.artifacts.dependencies == []


def test_account_and_region_are_those_of_the_settings() -> None:
    made = stage(environment(DIGITS, account="210987654321", region="eu-west-1"))
    for stack in [made.artifacts, *made.serving.values()]:
        assert (stack.account, stack.region) == ("210987654321", "eu-west-1")
