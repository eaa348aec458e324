"""Which addresses are a local AWS's, and messages where none is installed or runs."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from tests.cases import cases
from tests.local_keys import KEYS
from tritonstack import extensions, local_aws
from tritonstack.aws.session import AccountSession
from tritonstack.cli.project import LOCAL_NAMES, OTHER_NAMES
from tritonstack.cli.root import GROUPS
from tritonstack.errors import InputError
from tritonstack.local_aws import (
    LOCAL_POLL_SECONDS,
    POLL_SECONDS,
    LocalAwsPackage,
    LocalSession,
    RunningLocalAws,
    is_local,
    poll_seconds,
)
from tritonstack.models.recipe import KIND_BACKENDS
from tritonstack.paths import repository_path
from tritonstack_local.aws import LocalAws
from tritonstack_local.cli import COMMANDS
from tritonstack_local.container.proof import NEEDED_ENVIRONMENTS
from tritonstack_local.container.repository import STAND_INS, TritonFiles
from tritonstack_local.processes import ProcessRecord


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A wheel without the extra ``local``."""
    monkeypatch.setattr(extensions, "find_spec", lambda _name: None)
    for name in [name for name in sys.modules if name.startswith("tritonstack_local.plugin")]:
        monkeypatch.delitem(sys.modules, name)
    local_aws.installed.cache_clear()
    yield
    local_aws.installed.cache_clear()


def test_it_is_found_by_its_entry_points() -> None:
    assert local_aws.installed() is not None
    assert "local" in extensions.extensions(GROUPS)  # by which `tritonstack setup` finds what to make


def here() -> LocalAws:
    """A local AWS whose record names this process."""
    me = ProcessRecord(pid=os.getpid(), started=0.0, log="")
    return LocalAws(emulator_port=4566, runtime_port=4567, keys=KEYS, emulator=me, runtime=me)


def test_installed_package_has_what_the_library_uses_of_it() -> None:
    """Nothing else compares the two: the package is found by its name, and no type checker follows an entry point."""
    for protocol, found in (
        (LocalAwsPackage, local_aws.require_package()),
        (RunningLocalAws, here()),
        (LocalSession, here().session()),
    ):
        for name, member in vars(protocol).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                declared = list(inspect.signature(member).parameters.values())[1:]  # without self
                given = list(inspect.signature(getattr(found, name)).parameters.values())
                assert [(each.name, each.kind) for each in given] == [(each.name, each.kind) for each in declared], name
            elif isinstance(member, property):
                assert hasattr(found, name), name


def test_session_of_the_local_aws_is_told_from_one_of_an_account() -> None:
    assert isinstance(here().session(), LocalSession)
    assert not isinstance(boto3.Session(region_name="us-east-1"), LocalSession)
    assert not isinstance(AccountSession("us-east-1"), LocalSession)


def test_variables_of_local_env_make_every_client_local(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in here().variables().items():
        monkeypatch.setenv(name, value)
    session = AccountSession(None)
    for service in ("cloudformation", "codebuild", "s3", "sagemaker", "sagemaker-runtime", "ssm", "sts"):
        assert is_local(session.client(service)), service


def test_local_commands_that_the_library_names_in_messages_exist() -> None:
    folders = ("tritonstack", "tritonstack_capacity", "constructs_lib", "stacks", "lambda")
    sources = [path.read_text() for folder in folders for path in repository_path(folder).rglob("*.py")]
    named = {name for source in sources for name in re.findall(r"tritonstack local ([a-z]+)", source)}
    assert "up" in named
    assert named <= COMMANDS.keys()


def test_setup_makes_the_environments_that_the_local_aws_runs_in() -> None:
    sources = [path.read_text() for path in repository_path("tritonstack_local").rglob("*.py")]
    named = {name for source in sources for name in re.findall(r'environment_python\("([a-z-]+)"\)', source)}
    files = {path.relative_to("/envs").parts[0] for path in vars(TritonFiles.of_repository(Path("/envs"))).values()}
    assert named >= {"main", "emulator"}
    assert named | files | set(NEEDED_ENVIRONMENTS.values()) <= {"main", *LOCAL_NAMES, *OTHER_NAMES}


def test_its_triton_has_a_backend_for_every_kind_that_a_build_proves() -> None:
    assert set(KIND_BACKENDS.values()) == {"python", "ensemble", *STAND_INS}


def test_without_it_none_runs_and_what_needs_one_says_how_to_install_it(not_installed: None) -> None:
    assert local_aws.find_local_aws() is None
    with pytest.raises(InputError, match=r"pip install 'tritonstack\[local\]'"):
        local_aws.require_local_aws()


CONFIG = """
[default]
region = us-east-1
[profile here]
endpoint_url = http://[::1]:4566
[profile one-service]
services = local
[services local]
ssm =
  endpoint_url = http://127.0.0.2:4566
"""


@cases("variables, local")
def test_the_endpoint_url_decides(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, local: bool
) -> None:
    config = tmp_path / "config"
    config.write_text(CONFIG)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    client = boto3.Session(region_name="us-east-1").client("ssm")
    assert is_local(client) is local
    assert poll_seconds(client) == (LOCAL_POLL_SECONDS if local else POLL_SECONDS)
