"""The serving stack: from an endpoint's settings to its resources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions

from stacks.serving import ServingStack
from tests.constructs_lib.templates import allowed, flat, listed, of_type, only, properties, template_of
from tests.stacks.environments import DIGITS, SINGLE, environment, new_stage, serving_template, stage
from tritonstack.preflight.role import required_statements

OWN_REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
ROLE = "arn:aws:iam::123456789012:role/team/containers"
WATCHED = {"kind": "all-at-once", "termination_wait_seconds": 300}


@pytest.fixture(scope="module")
def digits() -> dict[str, Any]:
    return serving_template(DIGITS)


def container(template: dict[str, Any]) -> dict[str, Any]:
    return dict(properties(template, "AWS::SageMaker::Model")["PrimaryContainer"])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"release": "30.01", "image": f"{OWN_REGISTRY}/triton:30.01"}, ["not in the catalogue"]),
        ({"release": "26.04"}, ["lists no regions"]),
        ({"metrics": {"seconds": 10}}, ["stay at a minute without enhanced"]),
        ({"metrics": {"enhanced": True, "seconds": 10}}, ["multi-model endpoint publishes by instance is UNVERIFIED"]),
        (
            {**SINGLE, "metrics": {"detailed": True}, "image": f"{OWN_REGISTRY}/triton:24.09"},
            ["front end answers 400"],
        ),
        ({**SINGLE, "metrics": {"detailed": True, "enhanced": True, "seconds": 10}}, []),
    ],
)
def test_what_is_taken_for_granted_of_a_release_or_of_metrics_is_a_warning_of_the_synthesis(
    fields: dict[str, str], expected: list[str]
) -> None:
    [stack] = stage(environment({**DIGITS, **fields})).serving.values()
    found = assertions.Annotations.from_stack(stack).find_warning("*", assertions.Match.any_value())
    assert [words in str(each.entry.data) for words, each in zip(expected, found, strict=True)] == [True] * len(
        expected
    )


def test_the_role_is_ready_before_the_model_and_the_archives_before_the_endpoint(digits: dict[str, Any]) -> None:
    [policy] = [name for name in of_type(digits, "AWS::IAM::Policy") if name.startswith("ExecutionRole")]
    archives, _ = only(digits, "Custom::PublishedArchives")
    endpoint_id, endpoint = only(digits, "AWS::SageMaker::Endpoint")
    assert {policy, archives} <= set(only(digits, "AWS::SageMaker::Model")[1]["DependsOn"])
    assert archives in endpoint["DependsOn"]
    assert endpoint_id in only(digits, "Custom::ReleaseRecords")[1]["DependsOn"]


def test_a_variant_has_the_name_that_the_settings_give_it_and_else_its_instance_types(digits: dict[str, Any]) -> None:
    named = serving_template({**DIGITS, "variant": "AllTraffic"})
    [output] = [each for name, each in named["Outputs"].items() if name == "VariantName"]
    assert output["Value"] == "AllTraffic"
    for template, name in ((named, "AllTraffic"), (digits, "g4dn-xlarge")):
        [variant] = properties(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
        assert variant["VariantName"] == name


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ({"local": {"max_loaded_models": 8}}, "tritonstack:local-max-loaded-models", "8"),
        ({"description": "digits demo - team a"}, "description", "digits demo - team a"),
    ],
)
def test_local_limit_and_description_are_tags_on_the_endpoint_only_if_set(
    digits: dict[str, Any], setting: dict[str, Any], key: str, value: str
) -> None:
    tags = properties(serving_template({**DIGITS, **setting}), "AWS::SageMaker::Endpoint")["Tags"]
    assert {"Key": key, "Value": value} in tags
    assert key not in {each["Key"] for each in properties(digits, "AWS::SageMaker::Endpoint")["Tags"]}


def built(folder: Path, *, dockerfile: str = "FROM scratch") -> ServingStack:
    """A serving stack whose image is built from a folder of the project ``folder``."""
    (folder / "images/triton").mkdir(parents=True)
    (folder / "images/triton/Own").write_text(dockerfile)
    image = {"directory": "images/triton", "dockerfile": "Own", "build_args": {"RELEASE": "24.09"}}
    return new_stage(environment({**DIGITS, "image": image}).in_project(folder)).serving["digits"]


def test_an_image_that_is_built_is_an_asset_for_amd64_whose_tag_follows_its_content(tmp_path: Path) -> None:
    stack = built(tmp_path / "one")
    template = template_of(stack)
    root = stack.node.root
    assert isinstance(root, cdk.App)
    [manifest] = Path(root.synth().directory).glob("**/*servingdigits*.assets.json")
    [(digest, asset)] = json.loads(manifest.read_text())["dockerImages"].items()
    source = asset["source"]
    assert (source["platform"], source["dockerFile"]) == ("linux/amd64", "Own")
    assert source["dockerBuildArgs"] == {"RELEASE": "24.09"}
    repository = "cdk-hnb659fds-container-assets-123456789012-us-east-1"
    assert container(template)["Image"] == {
        "Fn::Sub": f"123456789012.dkr.ecr.us-east-1.${{AWS::URLSuffix}}/{repository}:{digest}"
    }
    pull = next(each for each in allowed(template) if each["Sid"] == "PullImage")
    assert flat(pull["Resource"]).endswith(f":ecr:us-east-1:123456789012:repository/{repository}")
    image = container(template)["Image"]
    assert container(template_of(built(tmp_path / "another")))["Image"] == image, "wherever the project lies"
    assert container(template_of(built(tmp_path / "other", dockerfile="FROM other")))["Image"] != image
    info = assertions.Annotations.from_stack(stack).find_info("*", assertions.Match.any_value())
    assert any("AWS's image of 24.09" in str(each.entry.data) for each in info)


def test_a_role_of_ones_own_gets_no_policy_and_needs_what_preflight_prints() -> None:
    """One definition: the statements that the construct would write, with the names that preflight reads."""
    own = {**SINGLE, "role_arn": ROLE, "data_capture": {"percentage": 10}, "rollout": WATCHED}
    network = {
        "created": {"cidr": "10.20.0.0/16", "zones": ["us-east-1a", "us-east-1b"]},
        "s3_prefix_list_id": "pl-1a",
    }
    of = environment(own, network=network)
    stack = stage(of).serving[own["name"]]
    template = template_of(stack)
    assert properties(template, "AWS::SageMaker::Model")["ExecutionRoleArn"] == ROLE
    assert [name for name in template["Resources"] if name.startswith(("ExecutionRole", "OwnRole"))] == []
    needed = stack.resolve(stack.role.required_policy.to_json())["Statement"]
    repository = "arn:aws:ecr:us-east-1:763104351884:repository/sagemaker-tritonserver"
    printed = required_statements(of, of.endpoints[0], repository_arn=repository, parameter="${{{}}}".format)
    assert [(each["Sid"], listed(each["Action"])) for each in needed] == [
        (each.sid, list(each.actions)) for each in printed
    ]


def test_an_image_of_ones_own_is_pulled_from_its_own_repository() -> None:
    image = "210987654321.dkr.ecr.us-east-1.amazonaws.com/team/triton:1"
    template = serving_template({**DIGITS, "image": image})
    assert container(template)["Image"] == image
    assert "arn:aws:ecr:us-east-1:210987654321:repository/team/triton" in str(template)


STREAMING = {**SINGLE, "release": "25.09", "container": {"inference_type": "generate_stream"}}


def test_an_endpoint_that_streams_says_so_to_its_container_its_verification_and_its_outputs() -> None:
    template, plain = serving_template(STREAMING), serving_template({**SINGLE, "release": "25.09"})
    variables = container(template)["Environment"]
    assert variables["SAGEMAKER_TRITON_INFERENCE_TYPE"] == "generate_stream"
    verified = [properties(each, "Custom::VerifiedEndpoint") for each in (template, plain)]
    assert [each.get("Streams") for each in verified] == ["true", None]
    published = [json.dumps(of_type(each, "AWS::SSM::Parameter")) for each in (template, plain)]
    assert ["streams" in each for each in published] == [True, False]
    actions = [{action for one in allowed(each) for action in listed(one["Action"])} for each in (template, plain)]
    stream = "sagemaker:InvokeEndpointWithResponseStream"
    assert [stream in each for each in actions] == [True, False]
    assert all("sagemaker:InvokeEndpoint" in each for each in actions)
