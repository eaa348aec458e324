"""Environments to make stages of."""

from __future__ import annotations

from typing import Any

from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import new_app, template_of
from tests.monitoring.settings_of import DIGITS, SINGLE
from tritonstack.config import Environment

__all__ = ["DIGITS", "SINGLE", "digests", "environment", "new_stage", "serving_template", "stage"]


def environment(*endpoints: dict[str, Any], **changes: Any) -> Environment:
    """Environment ``dev`` with these endpoints; ``digits`` where none is given."""
    settings = {
        "environment": "dev",
        "account": "123456789012",
        "region": "us-east-1",
        "production": False,
        "endpoints": list(endpoints) or [DIGITS],
    }
    return Environment.model_validate({**settings, **changes})


def digests(of: Environment) -> dict[str, dict[str, str]]:
    """A made-up digest for every model: its length, so that it is the same in every run."""
    return {each.name: {model: f"{len(model):016x}" for model in each.models} for each in of.endpoints}


_STAGES: dict[str, EnvironmentStage] = {}


def new_stage(of: Environment) -> EnvironmentStage:
    """The stage of an environment in an app of its own, for a test that adds to it."""
    return EnvironmentStage(new_app(), environment=of, release_sets=digests(of))


def stage(of: Environment) -> EnvironmentStage:
    """The stage of an environment; the same one for the same settings, so add nothing to it."""
    text = of.model_dump_json()
    if text not in _STAGES:
        _STAGES[text] = new_stage(of)
    return _STAGES[text]


def serving_template(endpoint: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The template of the one endpoint's serving stack."""
    return template_of(stage(environment(endpoint, **changes)).serving[endpoint["name"]])
