"""The installed wheel, and a local AWS for what is deployed with it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.project import Project
from tests.examples.installing import Installed, install
from tritonstack.local.aws import LocalAws
from tritonstack.local.processes import ProcessRecord

ACCOUNT = "aws://123456789012"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A virtual environment with the wheel and without the checkout."""
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The folder of the local AWS."""
    return Project(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="session")
def local_aws(home: Project, installed: Installed) -> Iterator[LocalAws]:
    """A running local AWS, bootstrapped in two regions."""
    home.run("up", "--port", "0", "--runtime-port", "0")
    record = json.loads((home.root / ".local" / "running.json").read_text())
    aws = LocalAws(
        emulator_port=record["emulator_port"],
        runtime_port=record["runtime_port"],
        emulator=ProcessRecord(**record["emulator"]),
        runtime=ProcessRecord(**record["runtime"]),
    )
    regions = [f"{ACCOUNT}/us-east-1", f"{ACCOUNT}/eu-west-1"]
    installed.run("cdk", "bootstrap", *regions, "--no-notices", folder=home.root, variables=aws.variables())
    yield aws
    home.run("down")
