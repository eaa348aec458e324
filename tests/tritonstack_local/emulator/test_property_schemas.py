"""Properties of templates against CloudFormation's resource schemas."""

from __future__ import annotations

from typing import Any

from tests.cases import cases
from tritonstack_local.emulator.cloudformation.property_schemas import resource_schemas


def test_everything_but_tags_replaces_a_model_and_a_config_and_only_the_name_an_endpoint() -> None:
    schemas = resource_schemas()
    for kind in ("Model", "EndpointConfig"):
        schema = schemas[f"AWS::SageMaker::{kind}"]
        settable = set(schema.root["properties"]) - set(schema.read_only) - {"Tags"}
        assert set(schema.create_only) == settable
    assert schemas["AWS::SageMaker::Endpoint"].create_only == ("EndpointName",)


@cases("type_name, properties, problems")
def test_properties_are_checked(type_name: str, properties: dict[str, Any], problems: list[str]) -> None:
    assert sorted(resource_schemas()[type_name].problems(properties)) == problems
