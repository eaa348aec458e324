"""Requests against botocore's service model, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack_local.emulator.request_validation import RefusedError, coerce, validate

VARIANT = {"VariantName": "v", "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}


def _config(**changes: Any) -> dict[str, Any]:
    return {"EndpointConfigName": "c", "ProductionVariants": [{**VARIANT, **changes}]}


def _refusal(operation: str, request: dict[str, Any]) -> str:
    with pytest.raises(RefusedError) as refused:
        validate("sagemaker", operation, request)
    assert refused.value.code == "ValidationException"
    return str(refused.value)


def test_right_request_passes() -> None:
    validate("sagemaker", "CreateEndpointConfig", _config())


def test_every_problem_is_reported_at_once() -> None:
    sentence = _refusal(
        "CreateEndpointConfig",
        {"ProductionVariants": [{**VARIANT, "VariantName": "-", "InitialInstanceCount": 0, "Wieght": 1}]},
    )
    assert sentence.startswith("4 validation errors detected: ")
    for part in (
        "'endpointConfigName' failed to satisfy constraint: Member must not be null",
        "'productionVariants.1.member.variantName' failed to satisfy constraint: Member must satisfy",
        "'productionVariants.1.member.initialInstanceCount' failed to satisfy constraint: Member must have value",
        "'productionVariants.1.member.wieght' failed to satisfy constraint: Member is not known",
        "source: botocore",
    ):
        assert part in sentence


def test_misspelt_member_is_reported_with_the_right_one() -> None:
    request = {"ModelName": "m", "PrimaryContainer": {"Image": "i", "Enviroment": {}}}
    assert "did you mean Environment?" in _refusal("CreateModel", request)


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"InitialInstanceCount": "1"}, "must be of type integer"),
        ({"InitialInstanceCount": True}, "must be of type integer"),
        ({"InitialInstanceCount": 2**31}, "must be of type integer"),
        ({"InitialInstanceCount": 1e26}, "must be of type integer"),
        ({"InitialVariantWeight": float("inf")}, "must be of type float"),
        ({"VariantName": 7}, "must be of type string"),
        ({"EnableSSMAccess": "true"}, "must be of type boolean"),
        ({"RoutingConfig": []}, "must be of type structure"),
        ({"VariantName": "v" * 64}, "length less than or equal to 63"),
        ({"InstanceType": "ml.g5.xlarg"}, "near: ml.g5.xlarge"),
        ({"InitialVariantWeight": -0.5}, "value greater than or equal to 0"),
    ],
)
def test_wrong_value_is_refused(changes: dict[str, Any], constraint: str) -> None:
    assert constraint in _refusal("CreateEndpointConfig", _config(**changes))


def test_list_and_map_sizes_are_checked() -> None:
    assert "length greater than or equal to 1" in _refusal(
        "CreateEndpointConfig", {"EndpointConfigName": "c", "ProductionVariants": []}
    )
    environment = {f"K{number}": "v" for number in range(101)}
    request = {"ModelName": "m", "PrimaryContainer": {"Image": "i", "Environment": environment}}
    assert "length less than or equal to 100" in _refusal("CreateModel", request)


def test_pattern_in_javas_classes_is_read() -> None:
    request = {"ModelName": "m", "Tags": [{"Key": "t\u00e9am/a b", "Value": "v"}]}
    validate("sagemaker", "CreateModel", request)
    request["Tags"] = [{"Key": "t*", "Value": "v"}]
    assert "regular expression" in _refusal("CreateModel", request)


def test_templates_spelling_of_numbers_and_booleans_is_taken() -> None:
    request = coerce(
        "sagemaker",
        "CreateEndpointConfig",
        _config(InitialInstanceCount="2", InitialVariantWeight="0.5", EnableSSMAccess="True", VariantName=5),
    )
    variant = request["ProductionVariants"][0]
    assert (variant["InitialInstanceCount"], variant["InitialVariantWeight"]) == (2, 0.5)
    assert (variant["EnableSSMAccess"], variant["VariantName"]) == (True, "5")
    validate("sagemaker", "CreateEndpointConfig", request)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["EndpointConfigName", "ProductionVariants", "Tags", "KmsKeyId", "x"]), JSON))
def test_whatever_json_is_either_right_or_refused(request: dict[str, Any]) -> None:
    try:
        validate("sagemaker", "CreateEndpointConfig", coerce("sagemaker", "CreateEndpointConfig", request))
    except RefusedError as refusal:
        assert refusal.code == "ValidationException"
    else:
        assert {"EndpointConfigName", "ProductionVariants"} <= request.keys()
