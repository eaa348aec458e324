"""A running emulator for tests."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import random
import signal
import socket
import subprocess
import textwrap
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests.local_keys import KEYS, OWN

REPOSITORY = Path(__file__).resolve().parents[3]
PYTHON = REPOSITORY / ".envs/emulator/bin/python"
START_SECONDS = 180.0  # a start that failed is noticed at once; a busy machine takes its time
SETTLE_SECONDS = 30.0
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
ROLE = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}
ROLE_ARN = "arn:aws:iam::123456789012:role/any"
IMAGE = "301217895009.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3"


def free_port() -> int:
    """A free TCP port below the ephemeral range, so that no other process gets it before the test listens on it.

    Each process of a test run draws from a thousand of its own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = random.randrange(20000 + 1000 * worker, 21000 + 1000 * worker)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def measured(folder: Path) -> dict[str, str]:
    """Variables that make the process measure its coverage, in a run with ``--cov``; none in any other run.

    The environment of the emulator has no coverage: the process imports that of the tests' environment, and nothing
    else of it, so that a package that the emulator lacks stays missing.
    """
    settings = os.environ.get("COVERAGE_PROCESS_CONFIG")  # set by `patch = ["subprocess"]` in pyproject.toml
    if settings is None:
        return {}
    import coverage  # here: an ordinary run of the tests has no use for it

    site = folder / "measured"
    if not site.exists():  # it is there for a second emulator of one test
        site.mkdir()
        (site / "coverage").symlink_to(Path(coverage.__file__).parent)
        (site / "sitecustomize.py").write_text("import coverage\n\ncoverage.process_startup()\n")
    return {"COVERAGE_PROCESS_CONFIG": settings, "PYTHONPATH": os.pathsep.join((str(REPOSITORY), str(site)))}


class Emulator:
    """One emulator process."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "emulator.log"
        self.temporary = folder / "tmp"
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GATEWAY_PORT": str(self.port),
            "TRITONSTACK_STACK_PATIENCE_SECONDS": "0",  # the tests look themselves, and often
            "STATE_DIR": str(folder / "state"),
            "TMPDIR": str(self.temporary),
            **KEYS.variables(),
            "TRITONSTACK_IAM": "off",  # most tests here are of one service, with roles that may nothing
            **variables,
            **measured(folder),
        }
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [PYTHON, "-m", "tritonstack_local.emulator"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._clients: dict[str, Any] = {}

    def wait_ready(self) -> Emulator:
        """Wait until the health route responds."""
        until = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < until:
            try:
                self.get("/_tritonstack/health")
            except OSError:
                time.sleep(0.02)
            else:
                return self
        raise AssertionError(f"the emulator did not come up:\n{self.log.read_text()}")

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def client(self, service_name: str, *, config: Config | None = None) -> Any:
        """A boto3 client without retries, whatever ``config``."""
        if service_name not in self._clients:
            self._clients[service_name] = boto3.client(
                service_name,
                endpoint_url=self.url,
                region_name="us-east-1",
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
                config=Config(retries={"total_max_attempts": 1}),
            )
        return self._clients[service_name]

    def get(self, path: str) -> Any:
        """A JSON response of the gateway itself."""
        status, response = self._http("GET", path, None)
        assert status == 200, response
        return response

    def report(self, endpoint: str, config: str, outcome: str, reason: str = "") -> int:
        """Report a deployment as the runtime does; the HTTP status."""
        body = json.dumps({"endpoint_config_name": config, "outcome": outcome, "reason": reason}).encode()
        return self._http("POST", f"/_tritonstack/endpoints/{endpoint}/report", body)[0]

    def advance(self, seconds: float) -> float:
        """Move the emulator's clock on; the time there."""
        status, response = self._http("POST", "/_tritonstack/clock", json.dumps({"advance_seconds": seconds}).encode())
        assert status == 200, response
        return float(response["now"])

    def _http(self, method: str, path: str, body: bytes | None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, OWN)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def create_stack(self, name: str, resources: dict[str, Any], **more: Any) -> None:
        """Create a stack and come back at once."""
        self.client("cloudformation").create_stack(**_stack(name, resources, more))

    def update_stack(self, name: str, resources: dict[str, Any], **more: Any) -> None:
        """Update a stack and come back at once."""
        self.client("cloudformation").update_stack(**_stack(name, resources, more))

    def settled(self, name: str) -> dict[str, Any]:
        """The stack, once it is no longer in progress."""
        cloudformation = self.client("cloudformation")
        stack: dict[str, Any] = wait_until(
            lambda: cloudformation.describe_stacks(StackName=name)["Stacks"][0],
            lambda stack: not stack["StackStatus"].endswith("IN_PROGRESS"),
        )
        return stack

    def deploy(self, name: str, resources: dict[str, Any], **more: Any) -> str:
        """Create or update a stack; its status."""
        names = {stack["StackName"] for stack in self.client("cloudformation").describe_stacks()["Stacks"]}
        (self.update_stack if name in names else self.create_stack)(name, resources, **more)
        return str(self.settled(name)["StackStatus"])

    def failures(self, name: str) -> str:
        """The reasons of every failed event of a stack."""
        events = self.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
        return "\n".join(e.get("ResourceStatusReason", "") for e in events if e["ResourceStatus"].endswith("FAILED"))

    def physical(self, name: str, logical_id: str) -> str:
        """The physical id of a stack's resource."""
        response = self.client("cloudformation").describe_stack_resource(StackName=name, LogicalResourceId=logical_id)
        return str(response["StackResourceDetail"]["PhysicalResourceId"])

    def delete_stack(self, name: str) -> str:
        """Delete a stack; the status it ends with."""
        stack_id = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.client("cloudformation").delete_stack(StackName=name)
        return str(self.settled(stack_id)["StackStatus"])


def _stack(name: str, resources: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    outputs = {"Outputs": more.pop("outputs")} if "outputs" in more else {}
    body = json.dumps({"Resources": resources, **outputs})
    return {"StackName": name, "TemplateBody": body, "Capabilities": ["CAPABILITY_NAMED_IAM"], **more}


def wait_until(look: Callable[[], Any], done: Callable[[Any], bool]) -> Any:
    """Look until what is seen satisfies ``done``."""
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        seen = look()
        if done(seen):
            return seen
        assert time.monotonic() < until, f"still {seen}"
        time.sleep(0.02)


def model(**container: Any) -> dict[str, Any]:
    """An AWS::SageMaker::Model in multi-model mode."""
    primary = {"Image": IMAGE, "Mode": "MultiModel", "ModelDataUrl": "s3://bucket/prefix/", **container}
    return {
        "Type": "AWS::SageMaker::Model",
        "Properties": {"ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]}, "PrimaryContainer": primary},
    }


def config(**variant: Any) -> dict[str, Any]:
    """An AWS::SageMaker::EndpointConfig with one variant of the resource ``Model``."""
    properties = {
        "VariantName": "main",
        "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
        "InstanceType": "ml.g4dn.xlarge",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1,
        **variant,
    }
    return {"Type": "AWS::SageMaker::EndpointConfig", "Properties": {"ProductionVariants": [properties]}}


def serving(name: str, *, container: dict[str, Any] | None = None, **variant: Any) -> dict[str, Any]:
    """A role, a model, a config and an endpoint called ``name``."""
    return {
        "Role": ROLE,
        "Model": model(**(container or {})),
        "Config": config(**variant),
        "Endpoint": {
            "Type": "AWS::SageMaker::Endpoint",
            "Properties": {
                "EndpointName": name,
                "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]},
            },
        },
    }


def make_role(emulator: Emulator) -> None:
    """The role ``ROLE_ARN``, which SageMaker may assume."""
    roles = emulator.client("iam")
    with contextlib.suppress(roles.exceptions.EntityAlreadyExistsException):
        roles.create_role(RoleName=ROLE_ARN.rpartition("/")[2], AssumeRolePolicyDocument=json.dumps(TRUST))


def make_config(emulator: Emulator, name: str, **variant: Any) -> None:
    """A model and a config called ``name``, through the API."""
    make_role(emulator)
    sagemaker = emulator.client("sagemaker")
    sagemaker.create_model(
        ModelName=name,
        ExecutionRoleArn=ROLE_ARN,
        PrimaryContainer={"Image": IMAGE, "Mode": "MultiModel", "ModelDataUrl": "s3://bucket/prefix/"},
    )
    properties = {"VariantName": "main", "ModelName": name, "InstanceType": "ml.g4dn.xlarge", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[{**properties, **variant}])


def make_function(emulator: Emulator, name: str, source: str, **variables: str) -> str:
    """A Lambda of one file; its ARN."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.py", textwrap.dedent(source))
    made = emulator.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.12",
        Handler="index.handler",
        Role=ROLE_ARN,
        Code={"ZipFile": archive.getvalue()},
        Environment={"Variables": variables},
        Timeout=30,
    )
    return str(made["FunctionArn"])


def parameter(value: Any = "1", **more: Any) -> dict[str, Any]:
    """An AWS::SSM::Parameter."""
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value, **more}}
