"""No request passes the gate as one action and is carried out as another."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from botocore.exceptions import ClientError

from tests.arns import ACCOUNT
from tests.tritonstack_local.emulator.running import Emulator
from tests.tritonstack_local.emulator.test_iam import TRUSTED, Caller, allow

FORM, JSON = "application/x-www-form-urlencoded", "application/x-amz-json-1.1"


class Attempt(NamedTuple):
    """A request of a role that may read roles, create models, pass none, and use the bucket NAME but for one object."""

    signed_for: str
    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str = ""
    trailer: str = ""  # behind a body in chunks


@pytest.fixture
def caller(guarded: Emulator, name: str) -> Caller:
    caller = Caller(guarded, name, principal={**TRUSTED, "Service": "sagemaker.amazonaws.com"})
    caller.may(
        allow("iam:GetRole"),
        allow("s3:ListBucket"),
        allow("s3:*Object*", f"arn:aws:s3:::{name}/*"),
        allow("s3:PutEncryptionConfiguration", f"arn:aws:s3:::{name}"),
        allow("s3:GetObject", "arn:aws:s3:::2015-03-31/*"),
        allow("sagemaker:CreateModel"),
        {"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": f"arn:aws:s3:::{name}/kept"},
    )
    s3, ssm = guarded.client("s3"), guarded.client("ssm")
    for bucket in (name, f"{name}-others"):
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="key", Body=b"the secret of others" if bucket != name else b"own")
    s3.put_object(Bucket=f"{name}-others", Key=f"{name}/key", Body=b"the secret of others")
    s3.put_object(Bucket=name, Key="kept", Body=b"")
    ssm.put_parameter(Name=f"/{name}", Value="the secret of others", Type="String")
    return caller


def sent(caller: Caller, attempt: Attempt) -> tuple[int, str]:
    """Status and body of the response."""
    given = caller.aws.get(f"/_tritonstack/iam/credentials?role={caller.name}&session=tests")
    scope = f"{given['AccessKeyId']}/20260101/us-east-1/{attempt.signed_for}/aws4_request"
    connection = http.client.HTTPConnection("127.0.0.1", caller.aws.port, timeout=30)

    def fill(text: str) -> str:
        return text.replace("NAME", caller.name).replace("SCOPE", scope).replace("KEY", given["AccessKeyId"])

    body = fill(attempt.body).encode()
    if STREAM in attempt.headers:
        frame = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        body = frame + b"0\r\n%b\r\n" % fill(attempt.trailer).encode()
    if ("Content-Encoding", "identity, gzip") in attempt.headers:
        body = gzip.compress(body)
    names = {name.lower() for name, _ in attempt.headers}
    connection.putrequest(attempt.method, fill(attempt.url), skip_host="host" in names)
    signature = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"
    own = [] if "X-Amz-Credential" in attempt.url else [("Authorization", signature)]
    for header, value in (*own, *attempt.headers, ("Content-Length", str(len(body)))):
        connection.putheader(header, fill(value))
    connection.endheaders(body)
    response = connection.getresponse()
    read = response.read().decode()
    connection.close()
    return response.status, read


CREATE = "CreateUser&UserName=NAME"
GET_OTHERS = json.dumps({"Name": "/NAME"})
CREATE_MODEL = ("X-Amz-Target", "SageMaker.CreateModel")
ROLE = f"arn:aws:iam::{ACCOUNT}:role/NAME"
IMAGE = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/any:1"
MODEL = json.dumps({"ModelName": "NAME", "ExecutionRoleArn": ROLE, "PrimaryContainer": {"Image": IMAGE}})
STREAM = ("X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
OF_S3 = "X-Amz-Credential=SCOPE&X-Amz-Algorithm=AWS4-HMAC-SHA256"
ATTEMPTS: Mapping[str, Attempt] = {
    "action in query, form of a GET": Attempt(
        "iam", "GET", f"/?Action={CREATE}", (("Content-Type", FORM),), "Action=GetRole&RoleName=NAME"
    ),
    "two actions in a form": Attempt(
        "iam", "POST", "/", (("Content-Type", FORM),), f"Action={CREATE}&Action=GetRole&RoleName=NAME"
    ),
    "two signatures": Attempt(
        "iam", "GET", f"/NAME/key?Action={CREATE}",
        (("Authorization", "AWS4-HMAC-SHA256 Credential=KEY/20260101/us-east-1/s3/aws4_request"),),
    ),
    "a role to pass in chunks": Attempt(
        "sagemaker", "POST", "/",
        (CREATE_MODEL, ("Content-Type", JSON), ("Content-Encoding", "aws-chunked"), STREAM),
        MODEL,
    ),
    "a role to pass, compressed": Attempt(
        "sagemaker", "POST", "/",
        (CREATE_MODEL, ("Content-Type", JSON), ("Content-Encoding", "identity, gzip")),
        MODEL,
    ),
    "target behind chunks": Attempt(
        "s3", "PUT", "/NAME/key", (STREAM, ("Content-Encoding", "aws-chunked")),
        GET_OTHERS, "x-amz-target:AmazonSSM.GetParameter\r\n",
    ),
    "copy source behind chunks": Attempt(
        "s3", "PUT", "/NAME/key", (STREAM, ("Content-Encoding", "aws-chunked")),
        "", "x-amz-copy-source:/NAME-others/key\r\n",
    ),
    "copy source in the query": Attempt("s3", "PUT", "/NAME/key?x-amz-copy-source=/NAME-others/key", ()),
    "copy source with a host": Attempt(
        "s3", "PUT", "/NAME/key", (("X-Amz-Copy-Source", "//NAME-others/NAME/key"),)
    ),
    "encoded slash behind the bucket": Attempt("s3", "GET", "/NAME-others%2Fkey", ()),
    "bucket in the host": Attempt("s3", "GET", "/key", (("Host", "NAME-others.localhost"),)),
    "bucket in the host of another service": Attempt(
        "iam", "GET", "/key?Action=GetRole&RoleName=NAME", (("Host", "NAME-others.localhost"),)
    ),
    "two subresources": Attempt(
        "s3", "PUT", "/NAME?encryption&policy", (),
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"*"}]}',
    ),
    "object with two keys": Attempt(
        "s3", "POST", "/NAME?delete", (), "<Delete><Object><Key>kept</Key><Key>x</Key></Object></Delete>"
    ),
    "function in a presigned object": Attempt("s3", "GET", f"/2015-03-31/functions/?{OF_S3}", ()),
    "form in a presigned object": Attempt(
        "s3", "PUT", f"/NAME/key?{OF_S3}", (("Content-Type", FORM),),
        "Action=CreateSecurityGroup&GroupName=NAME&GroupDescription=d",
    ),
}  # fmt: skip


def state(caller: Caller) -> dict[str, object]:
    """What the attempts would change."""
    aws, name = caller.aws, caller.name
    s3 = aws.client("s3")
    groups = aws.client("ec2").describe_security_groups()["SecurityGroups"]
    try:
        policy = s3.get_bucket_policy(Bucket=name)["Policy"]
    except ClientError:
        policy = None
    return {
        "users": [each for each in caller.iam.list_users()["Users"] if each["UserName"] == name],
        "models": aws.client("sagemaker").list_models(NameContains=name)["Models"],
        "groups": [each for each in groups if each["GroupName"] == name],
        "policy": policy,
        "kept": "kept" in [each["Key"] for each in s3.list_objects_v2(Bucket=name)["Contents"]],
        "of others": s3.get_object(Bucket=f"{name}-others", Key="key")["Body"].read(),
        "copied": s3.get_object(Bucket=name, Key="key")["Body"].read() == b"the secret of others",
    }


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_no_request_passes_as_one_action_and_is_carried_out_as_another(caller: Caller, attempt: Attempt) -> None:
    before = state(caller)
    _, response = sent(caller, attempt)
    assert "secret of others" not in response
    assert '"Functions"' not in response
    assert state(caller) == before, response


PLAIN = {
    "cloudformation": "list_stacks", "iam": "list_roles", "kms": "list_keys",
    "lambda": "list_functions", "logs": "describe_log_groups", "s3": "list_buckets", "sagemaker": "list_endpoints",
    "ssm": "describe_parameters", "sts": "get_caller_identity",
}  # fmt: skip


def test_services_whose_scope_has_another_name_are_served(guarded: Emulator) -> None:
    assert guarded.client("service-quotas").list_service_quotas(ServiceCode="sagemaker")["Quotas"]
    assert guarded.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
    assert guarded.client("cloudwatch").describe_alarms()["ResponseMetadata"]
    for service, operation in PLAIN.items():
        assert getattr(guarded.client(service), operation)()["ResponseMetadata"]
