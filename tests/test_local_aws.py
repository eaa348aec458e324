"""Which addresses are a local AWS's, and messages where none is installed or runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from tests.cases import cases
from tritonstack import extensions, local_aws
from tritonstack.errors import InputError
from tritonstack.local_aws import LOCAL_POLL_SECONDS, POLL_SECONDS, is_local, poll_seconds
from tritonstack.models.recipe import KIND_BACKENDS
from tritonstack_local.container.repository import STAND_INS


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A wheel without the extra ``local``."""
    monkeypatch.setattr(extensions, "find_spec", lambda _name: None)
    for name in [name for name in sys.modules if name.startswith("tritonstack_local.plugin")]:
        monkeypatch.delitem(sys.modules, name)
    local_aws.installed.cache_clear()
    yield
    local_aws.installed.cache_clear()


def test_it_is_found_by_its_entry_point() -> None:
    assert local_aws.installed() is not None


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
