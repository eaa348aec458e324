"""A caller who is granted one model can call it, and neither another model nor another endpoint."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_cdk import aws_iam as iam

from tests.client.examples import blocks
from tests.constructs_lib.templates import of_type, template_of
from tests.stacks.environments import DIGITS, environment, new_stage
from tritonstack.aws.iam_evaluation import Policies, Request, evaluate

ENDPOINT = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/dev-digits"
BERT = "bert.0123456789abcdef.tar.gz"
NEARLY = [BERT.replace("bert", name) for name in ("bert-large", "resnet", "xbert", "BERT")]


Granted = tuple[list[str] | None, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=[["bert"], ["bert", "resnet"], None])
def granted(request: pytest.FixtureRequest) -> Granted:
    """The models, and the statements of a caller who is granted them."""
    models = ["bert", "bert-large", "resnet"]
    stack = new_stage(environment({**DIGITS, "models": models})).serving["digits"]
    caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    stack.endpoint.grant_invoke(caller, models=request.param)
    policies = of_type(template_of(stack), "AWS::IAM::Policy")
    [policy] = [each for name, each in policies.items() if name.startswith("Caller")]
    return request.param, policy["Properties"]["PolicyDocument"]["Statement"]


def may(statements: list[dict[str, Any]], action: str, resource: str, context: dict[str, Any]) -> bool:
    caller = "arn:aws:iam::123456789012:role/caller"
    request = Request(principal=caller, action=action, resource=resource, context=context)
    return evaluate(request, Policies(identity=statements)).allowed


def may_call(statements: list[dict[str, Any]], target: str | None, endpoint: str = ENDPOINT) -> bool:
    context = {} if target is None else {"sagemaker:TargetModel": target}
    return may(statements, "sagemaker:InvokeEndpoint", endpoint, context)


@pytest.mark.parametrize("target", [BERT, "bert.fedcba9876543210.tar.gz", *NEARLY, "bert", None])
def test_only_archives_of_the_models_that_were_granted(granted: Granted, target: str | None) -> None:
    models, statements = granted
    of_granted = models is None or (
        target is not None and target.endswith(".tar.gz") and target.partition(".")[0] in models
    )
    assert may_call(statements, target) is of_granted


@pytest.mark.parametrize("other", [f"{ENDPOINT}-two", ENDPOINT.replace("dev", "prod"), ENDPOINT[:-1]])
def test_no_other_endpoint(granted: Granted, other: str) -> None:
    assert not may_call(granted[1], BERT, endpoint=other)


def may_read(statements: list[dict[str, Any]], parameter: str) -> bool:
    record = f"arn:aws:ssm:us-east-1:123456789012:parameter/tritonstack/{parameter}"
    return may(statements, "ssm:GetParameter", record, {})


@pytest.mark.parametrize("model", ["bert", "bert-large", "resnet"])
def test_the_granted_models_records_and_their_endpoints_mode_can_be_read(granted: Granted, model: str) -> None:
    models, statements = granted
    assert may_read(statements, f"dev/digits/{model}") is (models is None or model in models)
    assert may_read(statements, "dev/_outputs/serving-digits")


@pytest.mark.parametrize("other", ["dev/digits-two/bert", "dev/_outputs/serving-digits-two", "prod/digits/bert", "dev"])
def test_no_other_endpoint_s_records_can_be_read(granted: Granted, other: str) -> None:
    assert not may_read(granted[1], other)


def test_calling_and_naming_is_all_that_is_granted(granted: Granted) -> None:
    assert {each["Action"] for each in granted[1]} == {"sagemaker:InvokeEndpoint", "ssm:GetParameter"}


def publishing() -> list[dict[str, Any]]:
    """Statements of a caller who may publish latencies."""
    stack = new_stage(environment(DIGITS)).serving["digits"]
    caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    stack.endpoint.grant_publish_latency(caller)
    policies = of_type(template_of(stack), "AWS::IAM::Policy")
    [policy] = [each for name, each in policies.items() if name.startswith("Caller")]
    statements: list[dict[str, Any]] = policy["Properties"]["PolicyDocument"]["Statement"]
    return statements


@pytest.mark.parametrize(("namespace", "allowed"), [("tritonstack/client", True), ("AWS/SageMaker", False)])
def test_who_may_publish_latencies_writes_in_the_clients_namespace_alone(namespace: str, allowed: bool) -> None:
    statements = publishing()
    assert may(statements, "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": namespace}) is allowed
    assert not may(statements, "cloudwatch:PutMetricAlarm", "*", {})


def test_the_documented_policy_is_what_the_grant_gives() -> None:
    [block] = [each.text for each in blocks() if each.language == "json" and each.heading == "Latency at the client"]
    [documented] = json.loads(block)["Statement"]
    [granted] = publishing()
    assert {**granted, "Sid": documented["Sid"]} == documented
