"""CloudFormation's resource schemas, as the local AWS and reviews read them."""

from __future__ import annotations

from tests.cases import cases
from tritonstack.cloudformation.resource_schemas import replacement_rules

# What a change of a property does to its resource: settled from AWS's template reference, not from our data.


@cases("type_name, path, answer")
def test_what_replaces_is_what_the_template_reference_says(
    type_name: str, path: tuple[str | int, ...], answer: str
) -> None:
    rules = replacement_rules(type_name)
    assert rules is not None
    assert rules.of(path) == answer


def test_a_whole_property_replaces_where_the_part_that_replaces_differs() -> None:
    rules = replacement_rules("AWS::EC2::VPCEndpoint")
    assert rules is not None
    options = {"PrivateDnsPreference": "ALL_DOMAINS"}
    assert rules.of(("DnsOptions",), None, options) == "yes"
    assert rules.of(("DnsOptions",), None, {"DnsRecordIpType": "ipv4"}) == "no"
    assert rules.of(("DnsOptions", "DnsRecordIpType"), "ipv4", "dualstack") == "no"


def test_custom_resources_share_the_rules_of_one_type() -> None:
    assert replacement_rules("Custom::Anything") == replacement_rules("AWS::CloudFormation::CustomResource")
    assert replacement_rules("AWS::Nobody::Knows") is None


def test_a_name_of_the_templates_choice_is_known_by_the_types_own_word() -> None:
    names = {
        "AWS::SageMaker::Model": "ModelName",
        "AWS::SSM::Parameter": "Name",
        "AWS::EC2::VPC": None,
        "AWS::Lambda::LayerVersion": None,
    }
    assert {kind: rules.name for kind in names if (rules := replacement_rules(kind)) is not None} == names
