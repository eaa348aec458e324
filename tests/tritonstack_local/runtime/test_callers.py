"""IAM at the runtime: who may invoke, how long a decision is used, and as which role archives and logs go."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, CredentialRetrievalError

from tests.tritonstack_local.http_fake import responding
from tests.tritonstack_local.runtime.fakes import ROLE, Stage, asynchronous, config, settings, signed, stage, until
from tritonstack.loopback.http_server import InvokeError, Request
from tritonstack_local.runtime.callers import INVOKE, Authority, Roles, access_key_of
from tritonstack_local.runtime.deployed import DeploymentError, RoleRefusedError, S3Location, UnreachableError
from tritonstack_local.runtime.model_store import S3Objects

DENIED = InvokeError("AccessDeniedException", 403, "User: u is not authorized to perform: sagemaker:InvokeEndpoint")
CREDENTIALS = {"AccessKeyId": "ASIA1", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": time.time() + 9999}


async def code(at: Stage, **given: Any) -> str:
    """The code with which a request is refused."""
    with pytest.raises(InvokeError) as caught:
        await at.call(**given)
    return caught.value.code


def request(path: bytes = b"/", **headers: bytes) -> Request:
    """A request with these headers."""
    named = {name.encode(): value for name, value in headers.items()}
    return Request(method=b"POST", path=path, headers=named, body=b"", received=0.0, id="r")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (request(authorization=signed("AKIA")[b"authorization"]), b"AKIA"),
        (request(b"/?X-Amz-Algorithm=a&X-Amz-Credential=AKIA%2F20260101%2Fus-east-1%2Fsagemaker"), b"AKIA"),
        (request(), b""),
        (request(authorization=b"Bearer token/with/slashes"), b""),
        (request(authorization=b"AWS4-HMAC-SHA256 Credential=cut"), b""),
    ],
)
def test_the_access_key_is_read_from_header_or_query(query: Request, expected: bytes) -> None:
    assert access_key_of(query) == expected


@asynchronous
async def test_a_caller_who_may_not_invoke_is_refused_in_sagemakers_form_and_not_counted(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.reader.described["e"] = replace(at.reader.described["e"], tags={"team": "vision"})
        await until(lambda: at.runtime.reconciler.endpoints["e"].described.tags != {})
        at.authority.refused["testing"] = DENIED
        with pytest.raises(ClientError) as caught:
            await at.boto3(EndpointName="e", TargetModel="a.tar.gz", Body=b"x")
        response = caught.value.response
        assert (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]) == (DENIED.code, 403)
        assert response["Error"]["Message"] == DENIED.message
        context = {"aws:ResourceTag/team": "vision", "sagemaker:ResourceTag/team": "vision"}
        arn = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/e"
        assert at.authority.asked == [("testing", arn, {**context, "sagemaker:TargetModel": "a.tar.gz"})]
        assert await code(at, endpoint="Other", target=None) == DENIED.code, "before it is looked for"
        assert at.authority.asked[-1] == ("testing", f"{arn[:-1]}other", {})
        assert (at.fleet().metrics.requests, at.triton.calls, at.objects.downloads) == (0, [], [])


@asynchronous
async def test_a_presigned_request_is_its_access_keys_and_an_unsigned_one_nobodys(tmp_path: Path) -> None:
    async with stage(tmp_path, config(multi_model=False)) as at:
        presigned = at.client.generate_presigned_url("invoke_endpoint", Params={"EndpointName": "e", "Body": b"{}"})
        for url in (presigned, presigned.partition("?")[0]):
            sent = urllib.request.Request(url, data=b"{}")  # noqa: S310  (the runtime, on loopback)
            with await asyncio.to_thread(urllib.request.urlopen, sent) as document:
                assert document.status == 200
        assert [access_key for access_key, _, _ in at.authority.asked] == ["testing", ""]


@asynchronous
async def test_a_decision_is_used_for_a_second_and_renewed_before(tmp_path: Path, monkeypatch: Any) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call(access_key="a")
        assert [await at.call(access_key="a") for _ in range(5)]
        assert (len(at.authority.asked), at.at_once) == (1, 5)
        assert await at.call(access_key="b"), "of another caller another decision"
        assert len(at.authority.asked) == 2
        monkeypatch.setattr("tritonstack_local.runtime.callers.RENEWED_SECONDS", 0.0)
        at.authority.refused["a"] = DENIED
        assert await at.call(access_key="a"), "still by the decision that is kept"
        await until(lambda: len(at.authority.asked) == 3)
        await asyncio.sleep(0.05)
        assert await code(at, access_key="a") == DENIED.code
        monkeypatch.setattr("tritonstack_local.runtime.callers.KEPT_SECONDS", -1.0)
        del at.authority.refused["a"]
        assert await at.call(access_key="a")


@asynchronous
async def test_while_iam_does_not_respond_the_last_decision_holds_and_others_are_unavailable(
    tmp_path: Path, monkeypatch: Any
) -> None:
    async with stage(tmp_path, config()) as at:
        at.authority.refused["b"] = DENIED
        await at.call(access_key="a")
        assert await code(at, access_key="b") == DENIED.code
        monkeypatch.setattr("tritonstack_local.runtime.callers.KEPT_SECONDS", -1.0)
        at.authority.reachable = False
        assert await at.call(access_key="a")
        assert await code(at, access_key="b") == DENIED.code
        assert await code(at, access_key="c") == "ServiceUnavailable"
        at.authority.reachable = True
        assert await at.call(access_key="c")


@asynchronous
async def test_where_iam_is_off_an_access_key_without_an_owner_is_refused_too(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), iam=False) as at:
        at.authority.refused["nobody"] = DENIED
        assert await at.call()
        assert await code(at, access_key="nobody") == DENIED.code


@asynchronous
async def test_archives_are_downloaded_and_logs_written_as_the_execution_role(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), log_seconds=0.01) as at:
        await at.call()
        await until(lambda: bool(at.logs.calls))
        assert (at.roles[0], set(at.roles)) == (ROLE, {ROLE})


# The emulator's routes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "status", "access_key", "expected"),
    [
        ({"allowed": True, "enforced": True}, 200, "a", None),
        ({"allowed": True, "enforced": False}, 200, "", None),
        ({"allowed": False, "code": "ExpiredTokenException", "message": "m"}, 200, "a", "ExpiredTokenException"),
        ({"allowed": False, "code": "x", "message": "m"}, 200, "", "MissingAuthenticationTokenException"),
        ({}, 200, "a", UnreachableError),
        ({"message": "no"}, 500, "a", UnreachableError),
    ],
)
def test_a_decision_is_an_error_response_or_none(
    document: dict[str, Any], status: int, access_key: str, expected: Any, tmp_path: Path
) -> None:
    unreachable = pytest.raises(UnreachableError) if expected is UnreachableError else nullcontext()
    with responding(json.dumps(document).encode(), status=status) as (port, seen), unreachable:
        authority = Authority(settings(tmp_path, emulator_url=f"http://127.0.0.1:{port}"))
        refusal = authority.refusal(access_key=access_key, action=INVOKE, resource="r", context={})
        assert (refusal.code if refusal else None) == expected
    assert seen == ["POST /_tritonstack/iam/decisions HTTP/1.1"]


def test_a_client_of_a_role_signs_with_a_session_of_it(tmp_path: Path) -> None:
    with responding(json.dumps(CREDENTIALS).encode()) as (port, seen):
        chosen = settings(tmp_path, emulator_url=f"http://127.0.0.1:{port}")
        roles = Roles(Authority(chosen), chosen)
        roles.check(ROLE)
        client = roles.client(ROLE, "logs")
        client.create_log_group(logGroupName="g")
        assert client is roles.client(ROLE, "logs")
        roles.forget()
        assert client is not roles.client(ROLE, "logs"), "of an emulator that was started anew"
        assert client._get_credentials().get_frozen_credentials()[:3] == ("ASIA1", "s", "t")
        query = "role=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fexecution&service=sagemaker.amazonaws.com"
        assert seen[:2] == [f"GET /_tritonstack/iam/credentials?{query}&session=SageMaker HTTP/1.1"] * 2
        assert len(seen) == 4
        off = replace(chosen, iam=False)
        administrator = Roles(Authority(off), off).client(ROLE, "logs")._get_credentials()
    assert administrator.access_key == "testing"


@pytest.mark.parametrize(
    ("status", "checked", "retrieved", "downloaded"),
    [
        (403, DeploymentError, RoleRefusedError, "ValidationError"),
        (404, DeploymentError, RoleRefusedError, "ValidationError"),
        (500, UnreachableError, CredentialRetrievalError, "InternalDependencyException"),
    ],
)
def test_a_role_that_cannot_be_assumed_reads_no_archive(
    status: int, checked: type[Exception], retrieved: type[Exception], downloaded: str, tmp_path: Path
) -> None:
    with responding(b'{"message": "it does not trust SageMaker"}', status=status) as (port, _):
        chosen = settings(tmp_path, emulator_url=f"http://127.0.0.1:{port}")
        roles = Roles(Authority(chosen), chosen)
        with pytest.raises(checked):
            roles.check(ROLE)
        with pytest.raises(retrieved):
            roles.client(ROLE, "logs").create_log_group(logGroupName="g")
        with pytest.raises(InvokeError) as caught:
            list(S3Objects(lambda: roles.client(ROLE, "s3")).chunks(S3Location(bucket="b", key="k")))
    assert caught.value.code == downloaded
