"""The installed wheel, and a local AWS for what is deployed with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.project import Project
from tests.e2e.running import running
from tests.examples.installing import Installed, install
from tritonstack_local.aws import LocalAws

ACCOUNT = "aws://123456789012"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A virtual environment with the wheel and without the checkout."""
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The folder of the local AWS."""
    return Project(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def local_aws(home: Project, installed: Installed) -> Iterator[LocalAws]:
    """A running local AWS, bootstrapped in two regions."""
    with running(home) as aws:
        regions = [f"{ACCOUNT}/us-east-1", f"{ACCOUNT}/eu-west-1"]
        installed.run("cdk", "bootstrap", *regions, "--no-notices", folder=home.root, variables=aws.variables())
        yield aws
