"""Read-only calls: over a real connection, and shown to change nothing by operations, clients, source and page."""

from __future__ import annotations

import ast
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.config import Config

from tests.fake_aws import DENIED, FakeAws
from tritonstack.aws import read_only
from tritonstack.aws.read_only import ACTIONS, BOUNDED, MutatingCallError, NotKnownError, ReadOnlyCalls
from tritonstack.preflight.runner import LONGEST_SECONDS
from tritonstack.preflight.subject import AccountFacts

QUICK = Config(connect_timeout=1, read_timeout=0.3, retries={"mode": "standard", "total_max_attempts": 2}, proxies={})


class Session:
    """Makes clients of one URL."""

    def __init__(self, url: str) -> None:
        """``url``: of every service."""
        self._url = url

    def client(self, service_name: str, *, config: Any = None) -> Any:
        """A boto3 client."""
        return boto3.client(
            service_name,
            endpoint_url=self._url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=config,
        )


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter limits than a person's account gets."""
    monkeypatch.setattr(read_only, "BOUNDED", QUICK)


@contextmanager
def server_with(*replies: tuple[int, dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """A server with these responses, one after the other, the last for ever; its URL and its requests."""
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Respond."""
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = replies[min(len(received), len(replies) - 1)]
            received.append(self.headers["X-Amz-Target"])
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class's name)
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", received
    finally:
        server.shutdown()
        server.server_close()


def read_parameter(url: str) -> dict[str, Any]:
    """Read a parameter."""
    return ReadOnlyCalls(Session(url)).must("ssm", "get_parameter", Name="n")


THROTTLED = (400, {"__type": "ThrottlingException", "message": "Rate exceeded"})


def test_a_throttled_request_is_tried_again_and_one_that_stays_throttled_is_unknown() -> None:
    with server_with(THROTTLED, (200, {"Parameter": {"Value": "v"}})) as (url, received):
        assert read_parameter(url)["Parameter"]["Value"] == "v"
    assert len(received) == 2
    with server_with(THROTTLED) as (url, received), pytest.raises(NotKnownError, match="throttled"):
        read_parameter(url)
    assert len(received) == 2


def test_a_service_that_never_responds_is_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(NotKnownError, match="did not respond") as error:
            read_parameter(f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert error.value.permission is None


def test_a_denial_names_the_permission() -> None:
    with server_with((400, {"__type": "AccessDeniedException", "message": "no"})) as (url, _):
        with pytest.raises(NotKnownError) as error:
            read_parameter(url)
        assert error.value.permission == "ssm:GetParameter"


def test_a_fact_is_read_once_and_a_refusal_is_kept() -> None:
    denied = FakeAws(responses={"service-quotas.ListServiceQuotas": DENIED})
    facts = AccountFacts(ReadOnlyCalls(denied), region="us-east-1")
    for name in ("one", "another"):
        with pytest.raises(NotKnownError) as error:
            facts.quota("sagemaker", name)
        assert error.value.permission == "servicequotas:ListServiceQuotas"
    assert len(denied.calls) == 1


# They read and change nothing.
READS = re.compile(r"(Get|List|Describe|BatchGet|Head|Simulate)[A-Z]")
PACKAGE = Path(__file__).parents[2] / "tritonstack/preflight"
DOCUMENT = Path(__file__).parents[2] / "docs/preflight.md"


@pytest.mark.parametrize(("service", "operation"), sorted(ACTIONS))
def test_every_operation_exists_and_reads(service: str, operation: str) -> None:
    model = botocore.session.get_session().get_service_model(service)
    assert operation in model.operation_names
    assert READS.match(operation)


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
    session = FakeAws(responses={})
    client = ReadOnlyCalls(session).client(service)
    with pytest.raises(MutatingCallError):
        getattr(client, operation)(**request_)
    assert session.calls == []


def test_clients_are_made_in_one_place_alone() -> None:
    """Otherwise a call could pass the guard by."""
    makers = []
    for file in (*sorted(PACKAGE.rglob("*.py")), PACKAGE.parent / "aws" / "read_only.py"):
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
    assert makers == ["read_only.py"]


def test_synthesis_sends_no_request() -> None:
    root = PACKAGE.parents[1]
    for file in (root / "app.py", *(root / "stacks").rglob("*.py"), *(root / "constructs_lib").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert not any(name in text for name in ("tritonstack.preflight", "tritonstack.aws.read_only")), file


def test_a_call_is_bounded_in_time() -> None:
    bounds: Any = BOUNDED
    assert (bounds.connect_timeout + bounds.read_timeout) * bounds.retries["total_max_attempts"] < LONGEST_SECONDS


def test_the_documented_policy_allows_exactly_what_is_called() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    policy = re.search(r"<!-- preflight policy -->\n```json\n(.*?)```", text, re.DOTALL)
    assert policy is not None
    documented = set(re.findall(r'"([a-z0-9]+:[A-Z][A-Za-z]+)"', policy[1]))
    others = {"sts:GetCallerIdentity", "pricing:GetProducts"}  # needs no permission; of `capacity prices update`
    needed_too = {"cloudformation:ListStacks"}  # of DescribeStacks without a stack's name (API reference)
    assert documented == set(ACTIONS.values()) - others | needed_too
