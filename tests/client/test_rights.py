"""A caller with the rights of ``docs/clients.md``, and no other, reaches models of both modes by their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import numpy as np
import pytest
from aws_cdk import aws_iam as iam
from botocore.config import Config

from tests.client.fakes import (
    FakeEndpoint,
    FakeTime,
    Reply,
    Request,
    client_account,
    echo,
    error_reply,
    serving_outputs,
)
from tests.client.rights import Caller, documented
from tests.constructs_lib.templates import of_type, template_of
from tests.fake_aws import FakeAws
from tests.stacks.environments import DIGITS, environment, new_stage
from tritonstack.client import ModelClient
from tritonstack.client.errors import ReleaseLookupError
from tritonstack.client.releases import CONTRACT, SERVING_SECONDS
from tritonstack.outputs import contract

DIGEST = "0123456789abcdef"
ARCHIVE = f"bert.{DIGEST}.tar.gz"
RECORD, OUTPUTS = "/tritonstack/local/digits/bert", "/tritonstack/local/_outputs/serving-digits"
X = {"x": np.arange(3, dtype=np.float32)}
MODES = ("multi-model", "single-model")


def sagemaker(mode: str) -> Any:
    """InvokeEndpoint of an endpoint in this mode: a TargetModel in the wrong place is refused."""

    def reply(request: Request) -> Reply:
        right = request.target_model == (ARCHIVE if mode == "multi-model" else None)
        return echo(request) if right else error_reply("ValidationError", 400)

    return reply


@dataclass
class GuardedAws:
    """An account as a caller with these rights sees it."""

    aws: FakeAws
    caller: Caller
    time: FakeTime = field(default_factory=FakeTime)

    def client(self, service_name: str, *, config: Config | None = None) -> Any:
        session = self.caller.guard(
            boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1")
        )
        url = self.aws.urls.get(service_name)
        client: Any = session.client(service_name, endpoint_url=url, config=config)
        return client if url else self.aws.respond_to(client, service_name)

    def models(self) -> ModelClient:
        return ModelClient(environment="local", session=self, clock=self.time.clock())


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint().running() as served:
        yield served


def aws(endpoint: FakeEndpoint, mode: str, *, outputs: str | None = "", without: str = "") -> GuardedAws:
    """An endpoint in a mode; ``outputs``: what its stack wrote, None: it was deployed before there were outputs."""
    endpoint.reply = sagemaker(mode)
    written = {} if outputs is None else {OUTPUTS: outputs or serving_outputs(mode)}
    account = client_account(endpoint, {RECORD: DIGEST, **written})
    return GuardedAws(account, Caller(documented(without=without)))


@pytest.mark.parametrize("name", ["digits/bert", "bert"])
@pytest.mark.parametrize("mode", MODES)
def test_models_of_both_modes_are_called_by_name_without_a_refusal(
    endpoint: FakeEndpoint, mode: str, name: str
) -> None:
    assert contract.CONTRACT == CONTRACT, "the client reads the contract that stacks write"
    world = aws(endpoint, mode)
    response = world.models().invoke(name, X)
    assert response.target_model == (ARCHIVE if mode == "multi-model" else None)
    assert (world.caller.denied, len(endpoint.requests)) == ([], 1), "no probe, and nothing that is not allowed"
    record = "GetParameter" if "/" in name else "GetParametersByPath"
    assert world.caller.allowed == [record, "GetParameter", "InvokeEndpoint"]


@pytest.mark.parametrize("mode", MODES)
def test_what_grant_invoke_grants_is_enough_for_a_model_of_the_endpoint(endpoint: FakeEndpoint, mode: str) -> None:
    world = aws(endpoint, mode)
    stack = new_stage(environment({**DIGITS, "mode": mode, "models": ["bert"]}, environment="local")).serving["digits"]
    role = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    stack.endpoint.grant_invoke(role, models=["bert"] if mode == "multi-model" else None)
    policies = of_type(template_of(stack), "AWS::IAM::Policy")
    [policy] = [each for name, each in policies.items() if name.startswith("Caller")]
    world.caller.statements = policy["Properties"]["PolicyDocument"]["Statement"]
    assert world.models().invoke("digits/bert", X).outputs["x"].tolist() == [0, 1, 2]
    assert world.caller.denied == []


def test_the_mode_is_read_seldom_and_again_where_sagemaker_refuses(endpoint: FakeEndpoint) -> None:
    world = aws(endpoint, "multi-model")
    client = world.models()
    client.invoke("digits/bert", X)
    world.time.seconds += SERVING_SECONDS - 1
    client.invoke("digits/bert", X)
    assert world.caller.allowed.count("GetParameter") == 3, "the record twice, the mode once"
    endpoint.reply = sagemaker("single-model")
    world.aws.parameters[OUTPUTS] = serving_outputs("single-model")
    assert client.invoke("digits/bert", X).target_model is None
    assert [each.target_model for each in endpoint.requests] == [ARCHIVE, ARCHIVE, ARCHIVE, None]


@pytest.mark.parametrize(
    ("change", "todo"),
    [
        ({"outputs": None}, "cdk deploy 'local/serving-digits'"),
        ({"without": "NameModels"}, "allow this caller ssm:GetParameter on it"),
    ],
    ids=["deployed-before-outputs", "not-allowed-to-read"],
)
def test_an_endpoint_whose_mode_cannot_be_read_is_an_error_with_what_to_do(
    endpoint: FakeEndpoint, change: dict[str, Any], todo: str
) -> None:
    with pytest.raises(ReleaseLookupError, match=f"cannot be read from {OUTPUTS}") as caught:
        aws(endpoint, "single-model", **change).models().invoke("bert", X)
    assert todo in str(caught.value)
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (serving_outputs(contract=2), "is of contract 2, and this version of tritonstack reads contract 1"),
        ("multi-model", "put the stack's own value back"),
        ('{"contract": 1}', "put the stack's own value back"),
        (serving_outputs("asynchronous"), "put the stack's own value back"),
    ],
)
def test_outputs_of_another_contract_or_none_are_not_guessed_at(
    endpoint: FakeEndpoint, value: str, message: str
) -> None:
    with pytest.raises(ReleaseLookupError, match=message):
        aws(endpoint, "multi-model", outputs=value).models().invoke("digits/bert", X)
    assert endpoint.requests == []
