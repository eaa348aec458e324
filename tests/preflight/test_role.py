"""Execution roles of your own: existence, trust, permissions by IAM's simulator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fake_aws import DENIED, AwsError, FakeAws, Response
from tests.preflight.subjects import ACCOUNT, results_of, served, subject_of
from tritonstack.aws.read_only import ReadOnlyCalls
from tritonstack.preflight.role import check_role
from tritonstack.preflight.subject import Subject

ROLE = f"arn:aws:iam::{ACCOUNT}:role/team/triton"
TRUST = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
VALUES = {"bucket-name": "archives", "key-arn": f"arn:aws:kms:us-east-1:{ACCOUNT}:key/k"}
OWN = {"role_arn": ROLE}


def parameter(request: dict[str, Any]) -> dict[str, Any]:
    return {"Parameter": {"Name": request["Name"], "Value": VALUES[request["Name"].rpartition("/")[2]]}}


DEPLOYED: dict[str, Response] = {"ssm.GetParameter": parameter}


def role(*, arn: str = ROLE, trust: Any = TRUST) -> dict[str, Response]:
    """An account with the role."""
    fixed = {"Path": "/team/", "RoleName": "triton", "RoleId": "A" * 16, "CreateDate": 0}
    document = json.dumps({"Statement": [trust]})  # boto3 parses it, in place
    return {"iam.GetRole": lambda _request: {"Role": {**fixed, "Arn": arn, "AssumeRolePolicyDocument": document}}}


def simulated(*denied: str) -> dict[str, Response]:
    """IAM's simulator, which denies these actions."""

    def respond(request: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {"EvalActionName": name, "EvalDecision": "implicitDeny" if name in denied else "allowed"}
            for name in request["ActionNames"]
        ]
        return {"EvaluationResults": rows, "IsTruncated": False}

    return {"iam.SimulatePrincipalPolicy": respond}


WHOLE = {**role(), **DEPLOYED, **simulated()}
TRUSTED, ALLOWED = f"e0: {ROLE}", f"policies of e0: {ROLE}"


@pytest.mark.parametrize(
    ("responses", "subject", "outcome", "found"),
    [
        ({"iam.GetRole": AwsError("NoSuchEntity")}, TRUSTED, "fails", "no such role"),
        ({"iam.GetRole": DENIED}, TRUSTED, "unknown", "denies iam:GetRole"),
        (role(arn=ROLE.replace("/team", "")), TRUSTED, "fails", f"the role is arn:aws:iam::{ACCOUNT}:role/triton"),
        (
            role(trust={**TRUST, "Principal": {"Service": "ec2.amazonaws.com"}}),
            TRUSTED,
            "fails",
            "lets in no sagemaker",
        ),
        (role(trust={**TRUST, "Action": "sts:TagSession"}), TRUSTED, "fails", "lets in no sagemaker"),
        ({}, TRUSTED, "passes", "lets in sagemaker.amazonaws.com"),
        ({}, ALLOWED, "passes", "all allowed"),
        (simulated("s3:GetObject"), ALLOWED, "fails", "do not allow ReadArchives (s3:GetObject)"),
        (simulated("cloudwatch:PutMetricData"), ALLOWED, "fails", "WriteMetrics (cloudwatch:PutMetricData)"),
        ({"iam.SimulatePrincipalPolicy": DENIED}, ALLOWED, "unknown", "denies iam:SimulatePrincipalPolicy"),
        ({"ssm.GetParameter": AwsError("ParameterNotFound")}, ALLOWED, "unknown", "there is no parameter"),
    ],
)
def test_a_role_of_ones_own(
    tmp_path: Path, responses: dict[str, Response], subject: str, outcome: str, found: str
) -> None:
    results = results_of(check_role, served(tmp_path, OWN), {**WHOLE, **responses})
    assert results[subject].outcome == outcome
    assert found in results[subject].found
    if (subject, outcome) == (TRUSTED, "fails"):
        assert ALLOWED not in results, "nothing is simulated for a role that cannot be assumed"


def test_an_endpoint_whose_role_the_stack_makes_is_not_looked_at(tmp_path: Path) -> None:
    assert results_of(check_role, served(tmp_path), {}) == {}


def test_what_is_simulated_is_a_sample_of_each_resource_under_the_statements_conditions(tmp_path: Path) -> None:
    session = FakeAws(responses=WHOLE)
    what = served(tmp_path, OWN)
    list(check_role(Subject(served=what, calls=ReadOnlyCalls(session), project=tmp_path, local=False)))
    requests = [request for name, request in session.calls if name == "iam.SimulatePrincipalPolicy"]
    assert {request["PolicySourceArn"] for request in requests} == {ROLE}
    by_action = {request["ActionNames"][-1]: request for request in requests}
    archive = "arn:aws:s3:::archives/endpoints/e0/24.09-t4/preflight"
    assert by_action["s3:GetObject"]["ResourceArns"] == [archive]
    [prefix] = by_action["s3:ListBucket"]["ContextEntries"]
    assert (prefix["ContextKeyName"], prefix["ContextKeyValues"]) == ("s3:prefix", ["endpoints/e0/24.09-t4/preflight"])
    assert by_action["cloudwatch:PutMetricData"]["ResourceArns"] == ["*"]
    [logs] = [request["ResourceArns"] for request in requests if request["ActionNames"][-1] == "logs:PutLogEvents"]
    assert logs == [f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/sagemaker/Endpoints/test-e0:log-stream:preflight"]


def test_the_local_aws_simulates_nothing_and_the_result_reports_it(tmp_path: Path) -> None:
    subject = replace(subject_of(served(tmp_path, OWN), role()), local=True)
    found = {each.subject: each.outcome for each in check_role(subject)}
    assert found == {TRUSTED: "passes", ALLOWED: "unknown"}
