"""Preflight reads and changes nothing: shown on its operations, its clients and its source."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from tests.preflight.fakes import FakeSession
from tritonstack.preflight.runner import LONGEST_SECONDS
from tritonstack.read_only_aws import ACTIONS, BOUNDED, DRY_RUN_ONLY, MutatingCallError, ReadOnlyCalls

READS = re.compile(r"(Get|List|Describe|BatchGet|Head)[A-Z]")
PACKAGE = Path(__file__).parents[2] / "tritonstack/preflight"
DOCUMENT = Path(__file__).parents[2] / "docs/preflight.md"


@pytest.mark.parametrize(("service", "operation"), sorted(ACTIONS))
def test_every_operation_exists_and_reads(service: str, operation: str) -> None:
    model = botocore.session.get_session().get_service_model(service)
    assert operation in model.operation_names
    assert READS.match(operation) or (service, operation) in DRY_RUN_ONLY
    if (service, operation) in DRY_RUN_ONLY:
        shape: Any = model.operation_model(operation).input_shape
        assert "DryRun" in shape.members


@pytest.mark.parametrize(
    ("service", "operation", "request_"),
    [
        ("s3", "put_object", {"Bucket": "b", "Key": "k", "Body": b""}),
        ("sagemaker", "delete_endpoint", {"EndpointName": "e"}),
        ("service-quotas", "request_service_quota_increase", {"ServiceCode": "s", "QuotaCode": "c", "DesiredValue": 1}),
        ("iam", "list_roles", {}),
    ],
)
def test_any_other_call_is_refused_before_it_leaves_this_machine(
    service: str, operation: str, request_: dict[str, object]
) -> None:
    session = FakeSession({})
    client = ReadOnlyCalls(session).client(service)
    with pytest.raises(MutatingCallError):
        getattr(client, operation)(**request_)
    assert session.calls == []


def test_clients_are_made_in_one_place_and_by_nobody_else() -> None:
    """Otherwise a call could pass the guard by."""
    makers = []
    for file in (*sorted(PACKAGE.rglob("*.py")), PACKAGE.parent / "read_only_aws.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        imported = {
            name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
        } | {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert "boto3" not in imported, file
        makers += [
            file.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr == "client" and ast.unparse(node.value) == "self._session"
        ]
    assert makers == ["read_only_aws.py"]


def test_synthesis_never_asks() -> None:
    root = PACKAGE.parents[1]
    for file in (root / "app.py", *(root / "stacks").rglob("*.py"), *(root / "constructs_lib").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert not any(name in text for name in ("tritonstack.preflight", "tritonstack.read_only_aws")), file


def test_a_call_is_bounded_in_time() -> None:
    bounds: Any = BOUNDED
    assert (bounds.connect_timeout + bounds.read_timeout) * bounds.retries["total_max_attempts"] < LONGEST_SECONDS


def test_the_documented_policy_allows_exactly_what_is_called() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    policy = re.search(r"<!-- preflight policy -->\n```json\n(.*?)```", text, re.DOTALL)
    assert policy is not None
    documented = set(re.findall(r'"([a-z0-9]+:[A-Z][A-Za-z]+)"', policy[1]))
    of_itself = {"sts:GetCallerIdentity"}  # needs no permission
    by_s3 = {"kms:Decrypt"}  # S3 asks KMS with the caller's rights
    assert documented == set(ACTIONS.values()) - of_itself | by_s3
