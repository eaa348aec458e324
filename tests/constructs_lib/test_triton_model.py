"""The Model: what its container serves, and what stands before it."""

from __future__ import annotations

from typing import Any

import pytest

from constructs_lib.triton_model import MultiModelData, SingleModelData
from tests.constructs_lib.templates import IMAGE, PREFIX, built, flat, new_model, only, properties


def container(data: MultiModelData | SingleModelData) -> dict[str, Any]:
    template = built(lambda stack: new_model(stack, data))
    return dict(properties(template, "AWS::SageMaker::Model")["PrimaryContainer"])


def test_the_roles_policy_is_attached_before_the_model_is_made() -> None:
    template = built(new_model)
    policy, _ = only(template, "AWS::IAM::Policy")
    assert policy in only(template, "AWS::SageMaker::Model")[1]["DependsOn"]


def test_its_name_is_generated() -> None:
    assert "ModelName" not in properties(built(new_model), "AWS::SageMaker::Model")


def test_many_models_lie_under_a_prefix() -> None:
    rendered = container(MultiModelData(prefix=PREFIX))
    assert rendered["Mode"] == "MultiModel"
    assert flat(rendered["ModelDataUrl"]).endswith(f"}}/{PREFIX}")
    assert flat(rendered["ModelDataUrl"]).startswith("s3://${")


@pytest.mark.parametrize(("cache", "setting"), [(True, "Enabled"), (False, "Disabled")])
def test_the_model_cache_is_rendered_either_way(cache: bool, setting: str) -> None:
    rendered = container(MultiModelData(prefix=PREFIX, cache=cache))
    assert rendered["MultiModelConfig"] == {"ModelCacheSetting": setting}


def test_a_single_model_is_one_archive_and_has_no_cache_setting() -> None:
    rendered = container(SingleModelData(key=f"{PREFIX}bert.0123456789abcdef.tar.gz"))
    assert rendered["Mode"] == "SingleModel"
    assert flat(rendered["ModelDataUrl"]).endswith(f"}}/{PREFIX}bert.0123456789abcdef.tar.gz")
    assert "MultiModelConfig" not in rendered


def test_image_and_environment_are_as_given() -> None:
    rendered = container(MultiModelData(prefix=PREFIX))
    assert rendered["Image"] == IMAGE.uri
    assert rendered["Environment"] == {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
