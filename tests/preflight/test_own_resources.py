"""KMS keys of your own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.preflight.fakes import DENIED, Answer, FakeSession, RefusalError
from tests.preflight.subjects import ACCOUNT, results_of, served
from tritonstack.preflight.own_resources import (
    check_key,
    lets_in,
)
from tritonstack.read_only_aws import MutatingCallError, ReadOnlyCalls

KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a"
ROOT = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}
LOGS = {
    "Effect": "Allow",
    "Principal": {"Service": "logs.us-east-1.amazonaws.com"},
    "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
    "Resource": "*",
}
ALARMS = {
    "Effect": "Allow",
    "Principal": {"Service": ["events.amazonaws.com", "cloudwatch.amazonaws.com"]},
    "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
    "Resource": "*",
}
WOULD = RefusalError("DryRunOperationException")


def key(*statements: dict[str, Any], **metadata: str) -> dict[str, Answer]:
    """An account with the key, with this policy."""
    described = {"KeyId": "0a", "Arn": KEY, "KeyState": "Enabled", "KeyUsage": "ENCRYPT_DECRYPT"}
    return {
        "kms.DescribeKey": {"KeyMetadata": described | metadata},
        "kms.GetKeyPolicy": {"Policy": json.dumps({"Statement": list(statements)})},
        "kms.Encrypt": WOULD,
    }


def look(folder: Path, answers: dict[str, Answer], **environment: Any) -> dict[str, str]:
    """Outcomes by what was looked at, of an environment whose artifacts are under the key, with logs and alarms."""
    more = {"alarms": {}, "logs": {"endpoint_days": 30}, **environment}
    found = results_of(check_key, served(folder, artifacts={"key_arn": KEY}, **more), answers)
    return {name.removesuffix(KEY).strip() or "state": result.outcome for name, result in found.items()}


def test_a_key_that_lets_in_what_is_needed_passes(tmp_path: Path) -> None:
    found = look(tmp_path, key(ROOT, LOGS, ALARMS))
    assert found == {"state": "passes", "policy of": "passes", "use of": "passes"}


@pytest.mark.parametrize("left", [0, 1, 2])
def test_each_missing_statement_fails(tmp_path: Path, left: int) -> None:
    statements = [statement for number, statement in enumerate([ROOT, LOGS, ALARMS]) if number != left]
    assert look(tmp_path, key(*statements))["policy of"] == "fails"


def test_services_that_do_not_use_the_key_need_no_statement(tmp_path: Path) -> None:
    assert look(tmp_path, key(ROOT), alarms=None, logs={})["policy of"] == "passes"


@pytest.mark.parametrize(
    "metadata",
    [{"KeyState": "PendingDeletion"}, {"KeyState": "Disabled"}, {"KeyUsage": "SIGN_VERIFY"}, {"KeySpec": "RSA_2048"}],
)
def test_a_key_that_cannot_encrypt_fails_and_nothing_else_is_asked(tmp_path: Path, metadata: dict[str, str]) -> None:
    assert look(tmp_path, key(ROOT, **metadata)) == {"state": "fails"}


def test_no_such_key_fails(tmp_path: Path) -> None:
    assert look(tmp_path, {"kms.DescribeKey": RefusalError("NotFoundException")}) == {"state": "fails"}


def test_denials_are_unknown_each_with_its_permission(tmp_path: Path) -> None:
    what = served(tmp_path, artifacts={"key_arn": KEY})
    answers = key(ROOT) | {"kms.GetKeyPolicy": DENIED, "kms.Encrypt": DENIED}
    found = results_of(check_key, what, answers)
    assert {result.permission for result in found.values()} == {None, "kms:GetKeyPolicy", "kms:Encrypt"}
    assert [result.outcome for result in found.values()] == ["passes", "unknown", "unknown"]


def test_encrypt_is_called_with_dry_run_alone(tmp_path: Path) -> None:
    session = FakeSession(key(ROOT))
    calls = ReadOnlyCalls(session)
    with pytest.raises(MutatingCallError, match="DryRun"):
        calls.must("kms", "encrypt", KeyId=KEY, Plaintext=b"x")
    assert session.calls == [], "it must not leave this machine"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (LOGS, True),
        ({**LOGS, "Effect": "Deny"}, False),
        ({**LOGS, "Action": "kms:Decrypt"}, False),
        ({**LOGS, "Principal": "*"}, True),
        ({**LOGS, "Principal": {"AWS": "logs.us-east-1.amazonaws.com"}}, False),
        ({**LOGS, "Principal": {"Service": "logs.eu-west-1.amazonaws.com"}}, False),
    ],
)
def test_a_statement_lets_a_service_in_or_not(statement: dict[str, Any], expected: bool) -> None:
    policy = {"Statement": statement}
    assert lets_in(policy, "Service", ["logs.us-east-1.amazonaws.com"]) is expected
