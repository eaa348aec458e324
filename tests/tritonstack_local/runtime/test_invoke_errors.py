"""What boto3 raises and gives back: the exceptions, members and headers that it would meet in the cloud."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.runtime.fakes import asynchronous, config, signed, stage, until
from tritonstack.loopback.http_server import InvokeError

CALL = {"EndpointName": "e", "TargetModel": "a.tar.gz", "ContentType": "application/json", "Body": b"x"}


async def refusal(at: Any, **arguments: Any) -> tuple[str, Any]:
    """The exception's class name and the exception (whose response has members that its type does not declare)."""
    with pytest.raises(ClientError) as caught:
        await at.boto3(**{name: value for name, value in (CALL | arguments).items() if value is not None})
    return type(caught.value).__name__, caught.value


@asynchronous
async def test_a_response_has_its_content_type_variant_and_custom_attributes(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        response = await at.boto3(**CALL, Accept="application/json", CustomAttributes="trace=1")
        assert response["ContentType"] == "application/json"
        assert response["InvokedProductionVariant"] == "g4dn-xlarge"
        assert response["CustomAttributes"] == "from=container"
        assert json.loads(response["Body"]) == {"model": "a.tar.gz", "body": "x"}
        sent = at.triton.headers[-1]
        assert sent[b"x-amzn-sagemaker-custom-attributes"] == b"trace=1"
        assert sent[b"accept"] == b"application/json"
        assert sent[b"x-amzn-sagemaker-target-model"] == b"a.tar.gz"


@asynchronous
async def test_an_endpoint_that_is_being_created_is_not_found_yet(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        at.triton.ping_status = 400
        at.reader.deploy("e", config())
        await until(lambda: bool(at.triton.containers))
        assert (await refusal(at))[0] == "ValidationError"


@asynchronous
async def test_a_target_model_on_a_single_model_endpoint_is_a_validation_error(tmp_path: Path) -> None:
    async with stage(tmp_path, config(multi_model=False)) as at:
        name, error = await refusal(at)
        assert name == "ValidationError"
        assert "is not a multi-model endpoint and does not support target model header" in str(error)
        response = await at.boto3(EndpointName="e", Body=b"y", ContentType="application/json")
        assert json.loads(response["Body"]) == {"model": "invocations", "body": "y"}


OUTSIDE = ("../a.tar.gz", "/a.tar.gz", "b/../a", "b//a", "./a", "a\\b", "a/", "..", "b/./a")


@asynchronous
async def test_what_names_nothing_that_is_there_is_a_validation_error(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.objects.missing.add("none.tar.gz")
        cases: list[tuple[dict[str, Any], str]] = [
            ({"EndpointName": "other"}, "Endpoint other of account 123456789012 not found."),
            ({"TargetModel": None}, "is missing a target model header"),
            ({"TargetModel": "none.tar.gz"}, "Failed to download model data(bucket: models, key: prefix/none.tar.gz)"),
            ({"TargetVariant": "blue"}, "Variant blue was not found"),
            *(({"TargetModel": target}, "Invalid target model header") for target in OUTSIDE),
        ]
        for changed, words in cases:
            name, error = await refusal(at, **changed)
            assert (name, error.response["ResponseMetadata"]["HTTPStatusCode"]) == ("ValidationError", 400)
            assert words in str(error)
        assert at.objects.downloads == ["prefix/none.tar.gz"]
        assert await at.model_of("team/a.tar.gz") == "team/a.tar.gz", "a folder below the prefix"


@asynchronous
async def test_a_member_that_is_not_supported_is_refused_for_a_loaded_model_too(tmp_path: Path) -> None:
    members = {"TargetContainerHostname": "second", "SessionId": "NEW_SESSION", "EnableExplanations": "`true`"}
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        for member, value in members.items():
            name, error = await refusal(at, **{member: value})
            assert (name, f"does not support {member}" in str(error)) == ("ValidationError", True)
        assert at.triton.count("invoke") == 1


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@asynchronous
async def test_a_target_model_beyond_ascii_is_refused_by_its_readable_name(tmp_path: Path, encoding: str) -> None:
    async with stage(tmp_path, config()) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(b"POST /endpoints/e/invocations HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n")
        writer.write(b"Authorization: %b\r\n" % signed("testing")[b"authorization"])
        writer.write(b"X-Amzn-SageMaker-Target-Model: %b\r\n\r\n" % "modèle.tar.gz".encode(encoding))
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        assert head.startswith(b"HTTP/1.1 400 ")
        assert "'modèle.tar.gz'" in json.loads(body)["Message"]
        assert "printable ASCII" in json.loads(body)["Message"]


@pytest.mark.parametrize(("status", "kind"), [(404, "client"), (503, "server")])
@asynchronous
async def test_the_containers_error_is_a_model_error_with_its_status_and_message(
    tmp_path: Path, status: int, kind: str
) -> None:
    async with stage(tmp_path, config()) as at:
        at.triton.statuses["a.tar.gz"] = status
        name, error = await refusal(at)
        assert name == "ModelError"
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 424
        assert error.response["OriginalStatusCode"] == status
        assert error.response["OriginalMessage"] == json.dumps({"error": f"a.tar.gz answers {status}"})
        assert error.response["LogStreamArn"].startswith(
            "arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/Endpoints/e:log-stream:g4dn-xlarge/i-"
        )
        assert f"Received {kind} error ({status}) from primary with message" in str(error)


@asynchronous
async def test_a_container_that_does_not_respond_in_time_is_a_model_error(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        at.fleet().invoke_seconds = 0.0  # at least one second is always given
        at.triton.held["a.tar.gz"] = asyncio.Event()
        name, error = await refusal(at)
        assert name == "ModelError"
        assert error.response["OriginalStatusCode"] == 0
        assert "Your invocation timed out while waiting for a response from container primary" in str(error)
        assert (at.fleet().in_flight, at.fleet().models.models["a.tar.gz"].in_flight) == (0, 0)
        at.triton.held.pop("a.tar.gz").set()
        assert (await at.call("a.tar.gz")).status == 200


@asynchronous
async def test_a_payload_over_the_limit_is_refused_and_counted_and_the_client_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), max_payload_bytes=1000) as at:
        _, error = await refusal(at, Body=b"x" * 1001)
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 413
        assert "HTTP content length exceeded 1000 bytes" in str(error)
        sums = {
            datum["MetricName"]: datum["StatisticValues"]["Sum"]
            for _, datum in at.fleet().metrics.take()
            if "StatisticValues" in datum
        }
        assert (sums["Invocations"], sums["Invocation4XXErrors"], sums["InvocationModelErrors"]) == (1, 1, 0)
        assert at.fleet().last_errors[-1][1].startswith("413")
        response = await at.boto3(**CALL | {"Body": b"y" * 1000})
        assert json.loads(response["Body"])["body"] == "y" * 1000


@asynchronous
async def test_a_loaded_model_responds_at_once_an_unloaded_one_after_its_load_and_both_are_counted(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        assert at.at_once == 0
        first = await at.call("a.tar.gz", body=b"again")
        assert at.at_once == 1
        assert (first.status, first.headers[b"x-amzn-invoked-production-variant"]) == (200, b"g4dn-xlarge")
        await at.call("b.tar.gz")
        assert at.at_once == 1
        fleet = at.fleet()
        assert (fleet.metrics.requests, fleet.metrics.lookups, fleet.metrics.hits) == (3, 3, 1)
        assert (fleet.metrics.recent()["count"], fleet.in_flight) == (3, 0)
        at.triton.statuses["a.tar.gz"] = 400
        with pytest.raises(InvokeError, match="Received client error \\(400\\)"):
            await at.call("a.tar.gz")
        assert at.at_once == 2
        assert (fleet.metrics.errors, fleet.in_flight, len(fleet.last_errors)) == (1, 0, 1)
