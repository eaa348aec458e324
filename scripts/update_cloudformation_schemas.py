"""Write the compact copy of CloudFormation's resource schemas that the local AWS and reviews read.

    python scripts/update_cloudformation_schemas.py

cfn-lint ships CloudFormation's own resource schemas. This makes a temporary environment with one pinned cfn-lint,
keeps of each schema what replaces a resource, and of the types that the local AWS has property names, what is required
and enumerations. Writes ``tritonstack/cloudformation/data/resource_schemas.json``, without
descriptions.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

CFN_LINT = "1.58.0"
REGION = "us-east-1"
TARGET = Path(__file__).resolve().parents[1] / "tritonstack/cloudformation/data/resource_schemas.json"

TYPES = [
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::CompositeAlarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::CodeBuild::Project",
    "AWS::CodePipeline::Pipeline",
    "AWS::EC2::EIP",
    "AWS::EC2::FlowLog",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::NatGateway",
    "AWS::EC2::Route",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::Subnet",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPC",
    "AWS::EC2::VPCEndpoint",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::ECR::Repository",
    "AWS::Events::Rule",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::KMS::Alias",
    "AWS::KMS::Key",
    "AWS::Lambda::Alias",
    "AWS::Lambda::Function",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Version",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SNS::TopicPolicy",
    "AWS::SSM::Parameter",
    "AWS::SageMaker::Endpoint",
    "AWS::SageMaker::EndpointConfig",
    "AWS::SageMaker::Model",
    "AWS::StepFunctions::StateMachine",
]


def names(pointers: list[str] | None) -> list[str]:
    """Properties, and parts of them with slashes, among JSON pointers: ``EncryptionConfiguration/KmsKey``."""
    return sorted(pointer.removeprefix("/properties/") for pointer in pointers or [])


def rules(schema: Any) -> dict[str, list[str]]:
    """What replaces a resource of the type."""
    return {
        "create_only": names(schema.get("createOnlyProperties")),
        "conditionally_create_only": names(schema.get("conditionalCreateOnlyProperties")),
    }


def compact(schema: Any) -> dict[str, Any]:
    """What is kept of one (sub-)schema: ``properties``, ``required``, ``items``, ``enum``, ``ref``, ``closed``."""
    if not isinstance(schema, dict):
        return {}
    kept: dict[str, Any] = {}
    if "$ref" in schema:
        kept["ref"] = schema["$ref"].removeprefix("#/definitions/")
    if "properties" in schema:
        kept["properties"] = {name: compact(member) for name, member in sorted(schema["properties"].items())}
        if schema.get("additionalProperties") is False and "patternProperties" not in schema:
            kept["closed"] = True
    if schema.get("required"):
        kept["required"] = sorted(schema["required"])
    if "items" in schema:
        items = compact(schema["items"])
        if items:
            kept["items"] = items
    if "enum" in schema:
        kept["enum"] = schema["enum"]
    return kept


def extract() -> dict[str, Any]:
    """The whole data file; runs inside the temporary environment."""
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # noqa: PLC0415  only there

    types = {}
    for name in TYPES:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, name).schema
        types[name] = {
            **rules(schema),
            "read_only": [each for each in names(schema.get("readOnlyProperties")) if "/" not in each],
            "root": compact(schema),
            "definitions": {key: compact(value) for key, value in sorted(schema.get("definitions", {}).items())},
        }
    others = {}
    for name in sorted(set(PROVIDER_SCHEMA_MANAGER.get_resource_types(REGION)) - set(TYPES)):
        kept = rules(PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, name).schema)
        others[name] = {key: value for key, value in kept.items() if value}
    source = f"CloudFormation resource schemas in cfn-lint {CFN_LINT}, {REGION}"
    return {"source": source, "types": types, "others": others}


def render(data: dict[str, Any]) -> str:
    """One line a resource type, so that a change reads well in a diff."""
    sections = [f'"source": {json.dumps(data["source"])}']
    for section in ("types", "others"):
        lines = [f"{json.dumps(key)}: {json.dumps(each, separators=(',', ':'))}" for key, each in data[section].items()]
        sections.append(f'"{section}": {{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(sections) + "}\n"


def main() -> None:
    """Make the temporary environment, extract in it, write the file under a temporary name, move it."""
    if sys.argv[1:] == ["--extract"]:
        print(render(extract()), end="")
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin/python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"cfn-lint=={CFN_LINT}"], check=True)
        made = subprocess.run([python, __file__, "--extract"], check=True, capture_output=True, text=True)
    part = TARGET.with_suffix(".part")
    part.write_text(made.stdout, encoding="utf-8")
    part.replace(TARGET)
    print(f"{TARGET}: {TARGET.stat().st_size} bytes, {len(TYPES)} types")


if __name__ == "__main__":
    main()
