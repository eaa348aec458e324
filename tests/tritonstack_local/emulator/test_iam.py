"""Permissions of callers: who an access key is, what is refused and in which form, and what is recorded of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.arns import ACCOUNT, arn_of
from tests.cases import cases
from tests.tritonstack_local.emulator.running import Emulator

TRUSTED = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
Statement = dict[str, Any]


def document(*statements: Statement) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [*statements]})


def allow(action: str, resource: str = "*", **more: Any) -> Statement:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


class Caller:
    """A role and clients with credentials of a session of it."""

    def __init__(self, aws: Emulator, name: str, *, principal: Any = TRUSTED, **more: Any) -> None:
        self.aws, self.name, self.iam = aws, name, aws.client("iam")
        trust = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
        self.arn = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=document(trust), **more)["Role"]["Arn"]

    def may(self, *statements: Statement) -> None:
        """Give the role these statements alone."""
        self.iam.put_role_policy(RoleName=self.name, PolicyName="own", PolicyDocument=document(*statements))

    def client(self, service: str, **session: Any) -> Any:
        """A client of a new session."""
        sts = self.aws.client("sts")
        given = sts.assume_role(RoleArn=self.arn, RoleSessionName="tests", **session)["Credentials"]
        return client(self.aws, service, given["AccessKeyId"], given["SessionToken"])


def client(aws: Emulator, service: str, access_key: str, token: str | None = None) -> Any:
    return boto3.client(
        service,
        endpoint_url=aws.url,
        region_name="us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key="any",
        aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture
def caller(guarded: Emulator, name: str) -> Caller:
    return Caller(guarded, name)


def refused(call: Callable[[], Any]) -> tuple[str, str]:
    """Code and message of a refusal; empty ones where there is none."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["Error"]["Message"]
    return "", ""


@cases("service, call, needed, refusal")
def test_a_refusal_is_the_service_s_own_and_names_principal_action_resource_and_reason(
    caller: Caller, service: str, call: tuple[str, dict[str, Any]], needed: tuple[str, str], refusal: tuple[str, int]
) -> None:
    action, resource = needed[0], arn_of(needed[1])
    requested = partial(getattr(caller.client(service), call[0]), **call[1])
    with pytest.raises(ClientError) as raised:
        requested()
    response, message = raised.value.response, raised.value.response["Error"]["Message"]
    assert (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]) == refusal
    assert message == (
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{caller.name}/tests is not authorized to perform: {action}"
        f" on resource: {resource} because no identity-based policy allows the {action} action"
    )
    caller.may(allow(action, resource))
    assert "not authorized" not in refused(requested)[1]


def test_a_denial_is_listed_with_the_statement_that_would_allow_it_and_a_use_with_its_role(caller: Caller) -> None:
    ssm = caller.client("ssm")
    for _ in range(2):
        refused(lambda: ssm.get_parameter(Name="/listed"))
    caller.may({"Sid": "Own", **allow("ssm:Get*")}, {"Sid": "Never", **allow("s3:PutObject")})
    refused(lambda: ssm.get_parameter(Name="/listed"))
    seen = caller.aws.get("/_tritonstack/iam")
    [denial] = [each for each in seen["denials"] if caller.name in each["principal"]]
    resource = f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/listed"
    assert (denial["times"], denial["by"]) == (2, "ssm GetParameter")
    assert denial["would_allow"] == {"Effect": "Allow", "Action": "ssm:GetParameter", "Resource": resource}
    [role] = [each for each in seen["roles"] if each["arn"] == caller.arn]
    used = {each["sid"]: each["used"] for each in role["statements"]}
    assert used == {"Own": {"ssm:GetParameter": 1}, "Never": {}}


def limit_by_boundary(caller: Caller, name: str) -> dict[str, Any]:
    made = caller.iam.create_policy(PolicyName=f"{name}-boundary", PolicyDocument=document(allow("s3:*")))
    caller.iam.put_role_permissions_boundary(RoleName=caller.name, PermissionsBoundary=made["Policy"]["Arn"])
    return {}


def limit_by_session(caller: Caller, name: str) -> dict[str, Any]:
    return {"Policy": document(allow("s3:*"))}


def limit_by_deny(caller: Caller, name: str) -> dict[str, Any]:
    caller.may(allow("*"), {"Effect": "Deny", "Action": "ssm:*", "Resource": "*"})
    return {}


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (limit_by_boundary, "because no permissions boundary allows the ssm:GetParameter action"),
        (limit_by_session, "because no session policy allows the ssm:GetParameter action"),
        (limit_by_deny, "with an explicit deny in an identity-based policy"),
    ],
)
def test_boundaries_session_policies_and_denies_limit_a_role_that_may_everything(
    caller: Caller, name: str, limit: Callable[[Caller, str], dict[str, Any]], reason: str
) -> None:
    caller.may(allow("*"))
    ssm = caller.client("ssm", **limit(caller, name))
    assert refused(lambda: ssm.get_parameter(Name="/x"))[1].endswith(reason)


def test_a_bucket_s_policy_denies_the_administrator_and_admits_a_role_that_has_no_policy(
    caller: Caller, name: str
) -> None:
    s3, role = caller.aws.client("s3"), caller.client("s3")
    s3.create_bucket(Bucket=name)
    s3.put_object(Bucket=name, Key="open", Body=b"1")
    objects = f"arn:aws:s3:::{name}/"
    admits = {**allow("s3:GetObject", f"{objects}open"), "Principal": {"AWS": caller.arn}}
    denies = {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": f"{objects}shut"}
    s3.put_bucket_policy(Bucket=name, Policy=document(admits, denies))
    assert role.get_object(Bucket=name, Key="open")["Body"].read() == b"1"
    assert refused(lambda: role.get_object(Bucket=name, Key="other"))[0] == "AccessDenied"
    message = refused(lambda: s3.put_object(Bucket=name, Key="shut", Body=b"1"))[1]
    assert message.startswith(f"User: arn:aws:iam::{ACCOUNT}:user/administrator")
    assert message.endswith("with an explicit deny in a resource-based policy")


def test_a_key_is_not_used_by_principals_that_its_policy_does_not_allow(caller: Caller) -> None:
    kms = caller.aws.client("kms")
    root = {**allow("kms:*"), "Principal": TRUSTED}
    keys = {who: kms.create_key(Policy=document(root))["KeyMetadata"] for who in ("account", "nobody")}
    other = {**allow("kms:*"), "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:role/other"}}
    kms.put_key_policy(
        KeyId=keys["nobody"]["KeyId"], PolicyName="default", Policy=document(other),
        BypassPolicyLockoutSafetyCheck=True,
    )  # fmt: skip
    caller.may(allow("kms:*"))
    own = caller.client("kms")
    assert refused(lambda: own.describe_key(KeyId=keys["account"]["Arn"])) == ("", "")
    reason = "because no resource-based policy allows the kms:DescribeKey action"
    for each in (own, kms):
        assert refused(partial(each.describe_key, KeyId=keys["nobody"]["Arn"]))[1].endswith(reason)


@cases("principal, assumes")
def test_a_role_is_assumed_by_the_principals_of_its_trust_policy(
    guarded: Emulator, name: str, principal: Any, assumes: bool
) -> None:
    role = Caller(guarded, name, principal=principal)
    code, message = refused(lambda: role.client("sts"))
    assert (code == "") is assumes
    assert assumes or message.endswith("because no role trust policy allows the sts:AssumeRole action"), message


def test_a_role_is_passed_by_those_who_may_pass_it_to_that_service(caller: Caller) -> None:
    trusts = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    caller.iam.update_assume_role_policy(RoleName=caller.name, PolicyDocument=document(trusts))
    model = {
        "ModelName": caller.name,
        "ExecutionRoleArn": caller.arn,
        "PrimaryContainer": {"Image": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/any:1"},
    }
    other = Caller(caller.aws, f"{caller.name}-passing")
    other.may(allow("sagemaker:CreateModel"))
    sagemaker = other.client("sagemaker")
    message = refused(lambda: sagemaker.create_model(**model))[1]
    assert f"iam:PassRole on resource: {caller.arn}" in message
    for service, passes in (("lambda.amazonaws.com", False), ("sagemaker.amazonaws.com", True)):
        condition = {"StringEquals": {"iam:PassedToService": service}}
        other.may(allow("sagemaker:CreateModel"), allow("iam:PassRole", caller.arn, Condition=condition))
        assert ("iam:PassRole" not in refused(lambda: sagemaker.create_model(**model))[1]) is passes


@cases("service, call, code")
def test_an_access_key_without_an_owner_is_refused(
    guarded: Emulator, service: str, call: tuple[str, dict[str, str]], code: str
) -> None:
    nobodys = client(guarded, service, "AKIANOBODY0000000000")
    assert refused(partial(getattr(nobodys, call[0]), **call[1]))[0] == code


def test_an_operation_without_a_mapping_is_refused_by_name_for_the_administrator_too(guarded: Emulator) -> None:
    code, message = refused(lambda: guarded.client("s3").get_bucket_accelerate_configuration(Bucket="b"))
    assert code == "AccessDenied"
    assert "s3:GetBucketAccelerateConfiguration" in message
    assert "operations.json" in message


def test_a_decision_on_an_invocation_has_its_target_model(caller: Caller) -> None:
    condition = {"StringLike": {"sagemaker:TargetModel": "bert.*.tar.gz"}}
    caller.may(allow("sagemaker:InvokeEndpoint", Condition=condition))
    given = caller.aws.get(f"/_tritonstack/iam/credentials?role={caller.name}&session=tests")

    def decided(model: str) -> dict[str, Any]:
        requests = {
            "access_key": given["AccessKeyId"],
            "action": "sagemaker:InvokeEndpoint",
            "resource": f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/e",
            "context": {"sagemaker:TargetModel": model},
        }
        status, response = caller.aws._http("POST", "/_tritonstack/iam/decisions", json.dumps(requests).encode())
        assert status == 200
        return dict(response)

    assert decided("bert.1.tar.gz")["allowed"]
    denied = decided("bert-large.1.tar.gz")
    assert (denied["allowed"], denied["code"]) == (False, "AccessDeniedException")
