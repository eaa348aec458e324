"""Stacks to put constructs into, and readers of the templates that come out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import assertions

from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.endpoint import Endpoint, ProductionVariant, VariantInstances
from constructs_lib.triton_model import ExecutionRole, MultiModelData, SingleModelData, TritonImage, TritonModel
from tritonstack.config import Scaling

ROOT = Path(__file__).resolve().parents[2]
ASSEMBLIES = tempfile.TemporaryDirectory(prefix="assemblies-")
ACCOUNT = "123456789012"
REGION = "us-east-1"
PREFIX = "endpoints/digits/24.09-t4/"
IMAGE = TritonImage.from_uri(f"763104351884.dkr.ecr.{REGION}.amazonaws.com/sagemaker-tritonserver:24.09-py3")

Resource = dict[str, Any]


def new_app(*, outdir: str | None = None) -> cdk.App:
    """An app with the context of cdk.json, as the command line would give it; its assembly goes with the process."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    return cdk.App(analytics_reporting=False, context=context, outdir=outdir or tempfile.mkdtemp(dir=ASSEMBLIES.name))


def new_stack(app: cdk.App | None = None) -> cdk.Stack:
    """An empty stack for a known account and region."""
    return cdk.Stack(app or new_app(), "stack", env=cdk.Environment(account=ACCOUNT, region=REGION))


_TEMPLATES: dict[cdk.Stack, str] = {}


def template_of(stack: cdk.Stack) -> dict[str, Any]:
    """The synthesised template. The CDK synthesises an app once, whatever is added later, so a stack's is kept."""
    if stack not in _TEMPLATES:
        _TEMPLATES[stack] = json.dumps(assertions.Template.from_stack(stack).to_json())
    return dict(json.loads(_TEMPLATES[stack]))


def built(build: Callable[[cdk.Stack], object]) -> dict[str, Any]:
    """The template of a stack with what ``build`` puts into it."""
    stack = new_stack()
    build(stack)
    return template_of(stack)


def of_type(template: dict[str, Any], resource_type: str) -> dict[str, Resource]:
    """Logical id → resource."""
    return {name: each for name, each in template["Resources"].items() if each["Type"] == resource_type}


def some(template: dict[str, Any], resource_type: str) -> dict[str, Resource]:
    """Logical id → resource; there must be at least one, so that a loop over them checks something."""
    found = of_type(template, resource_type)
    assert found, f"the template has no {resource_type}"
    return found


def only(template: dict[str, Any], resource_type: str) -> tuple[str, Resource]:
    """The one resource of a type, with its logical id."""
    [found] = of_type(template, resource_type).items()
    return found


def properties(template: dict[str, Any], resource_type: str) -> dict[str, Any]:
    """The properties of the one resource of a type."""
    found: dict[str, Any] = only(template, resource_type)[1]["Properties"]
    return found


def statements(policy: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Sid → statement, of an IAM policy's properties."""
    return {each["Sid"]: each for each in policy["PolicyDocument"]["Statement"]}


def flat(value: Any) -> str:
    """A string with its references as ``${LogicalId}``; pass nothing but strings and intrinsic functions."""
    match value:
        case str():
            return value
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(flat(part) for part in parts)
    raise AssertionError(f"no string: {value!r}")


def listed(value: Any) -> list[Any]:
    """IAM's "one or many" as a list."""
    return value if isinstance(value, list) else [value]


def allowed(template: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every Allow statement of every IAM policy."""
    for policy in of_type(template, "AWS::IAM::Policy").values():
        yield from (each for each in policy["Properties"]["PolicyDocument"]["Statement"] if each["Effect"] == "Allow")


def new_role(stack: cdk.Stack, **changes: Any) -> tuple[ArtifactBucketReference, ExecutionRole]:
    """An execution role of endpoint ``local-digits``, and the bucket it reads."""
    artifacts = ArtifactBucketReference(stack, "Artifacts", environment="local")
    given = {"endpoint_name": "local-digits", "archive_prefix": PREFIX, "image": IMAGE}
    return artifacts, ExecutionRole(stack, "ExecutionRole", artifacts=artifacts, **{**given, **changes})


def new_model(stack: cdk.Stack, data: MultiModelData | SingleModelData | None = None) -> TritonModel:
    """A Model, in multi-model mode unless ``data`` is single-model."""
    artifacts, role = new_role(stack)
    return TritonModel(
        stack,
        "Triton",
        image=IMAGE,
        role=role,
        artifacts=artifacts,
        data=data or MultiModelData(prefix=PREFIX),
        environment={"SAGEMAKER_TRITON_LOG_VERBOSE": "false"},
    )


def new_endpoint(
    stack: cdk.Stack,
    *,
    data: MultiModelData | SingleModelData | None = None,
    instances: VariantInstances | None = None,
    scaling: Scaling | None = None,
    **given: Any,
) -> Endpoint:
    """Endpoint ``local-digits`` over :func:`new_model`, on two instances."""
    if "variants" not in given:
        instances = instances or VariantInstances(instance_type="ml.g4dn.xlarge", initial_instance_count=2)
        given["variants"] = [ProductionVariant(model=new_model(stack, data), instances=instances, scaling=scaling)]
    return Endpoint(stack, "Endpoint", **{"endpoint_name": "local-digits", **given})


def endpoint_template(**given: Any) -> dict[str, Any]:
    """The template of a stack with that endpoint."""
    return built(lambda stack: new_endpoint(stack, **given))
