"""The local AWS as other parts find and use it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from botocore.config import Config

from tests.local_keys import KEYS
from tests.tritonstack_local.fake_parts import FakeParts, kill, record_of
from tests.tritonstack_local.http_fake import responding
from tritonstack.errors import InputError, WorkFailedError
from tritonstack_local import aws as local_aws
from tritonstack_local.aws import LocalAws, find_local_aws, require_local_aws, sdk_variables
from tritonstack_local.processes import ProcessRecord, RunningRecord, write_record


def aws_at(port: int) -> LocalAws:
    """A local AWS whose two ports are one."""
    me = record_of(os.getpid())
    return LocalAws(emulator_port=port, runtime_port=port, keys=KEYS, emulator=me, runtime=me)


def test_without_a_record_and_with_one_of_what_ended_long_ago_none_is_running(parts: FakeParts) -> None:
    assert find_local_aws() is None
    for _ in range(2):
        with pytest.raises(InputError, match=r"(?s)no local AWS is running.*tritonstack local up"):
            require_local_aws()
        gone = ProcessRecord(pid=os.getpid(), started=1.0, log="")
        write_record(
            parts.paths, RunningRecord(emulator_port=1, runtime_port=2, keys=KEYS, emulator=gone, runtime=gone)
        )


def test_a_starting_endpoint_is_shown_as_starting(parts: FakeParts) -> None:
    with subprocess.Popen(["sleep", "600"]) as emulator:
        write_record(
            parts.paths, RunningRecord(emulator_port=1, runtime_port=2, keys=KEYS, emulator=record_of(emulator.pid))
        )
        assert find_local_aws() is None
        with pytest.raises(InputError, match="the local AWS is starting"):
            require_local_aws()
        emulator.kill()


@pytest.mark.parametrize(("part", "name"), [("emulator", "the AWS emulator"), ("runtime", "the SageMaker runtime")])
def test_an_ended_processs_message_begins_with_what_to_do_and_shows_five_whole_lines(
    parts: FakeParts, part: str, name: str
) -> None:
    record = getattr(parts.up(), part)
    kill(record)
    Path(record.log).write_text("".join(f"{number} {'x' * 500}\n" for number in range(1000)))
    with pytest.raises(WorkFailedError) as raised:
        require_local_aws()
    lines = str(raised.value).splitlines()
    assert lines[0] == f"{name} of the local AWS has ended."
    assert lines[1].startswith("  do: ")
    assert "tritonstack local up" in lines[1]
    assert record.log in lines[2]
    assert lines[3:] == [f"{number} {'x' * 500}" for number in range(995, 1000)]


def test_the_variables_name_both_urls_the_drawn_credentials_and_no_file_of_the_person(tmp_path: Path) -> None:
    variables = aws_at(4566).variables()
    assert variables == sdk_variables(
        emulator_url="http://127.0.0.1:4566", runtime_url="http://127.0.0.1:4566", keys=KEYS
    )
    assert variables["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"] == "http://127.0.0.1:4566"
    assert variables["AWS_CONFIG_FILE"] == variables["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull
    assert variables["AWS_EC2_METADATA_DISABLED"] == "true"


def test_clients_ignore_a_person_s_proxies_profile_and_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "HTTP_PROXY": "http://127.0.0.1:1",
        "http_proxy": "http://127.0.0.1:1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "AKIAREAL",
        "AWS_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)
    with responding(b"pong") as (port, seen):
        for config in (None, Config(read_timeout=3)):
            client = aws_at(port).session().client("sagemaker-runtime", config=config)
            assert client.meta.region_name == "us-east-1"
            assert client.invoke_endpoint(EndpointName="one", Body=b"")["Body"].read() == b"pong"
    assert seen == ["POST /endpoints/one/invocations HTTP/1.1"] * 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_PROFILE", "nope"),
        ("AWS_CONFIG_FILE", "{folder}/config"),
        ("AWS_SHARED_CREDENTIALS_FILE", "{folder}/config"),
        ("AWS_RETRY_MODE", "nope"),
        ("AWS_USE_FIPS_ENDPOINT", "true"),
    ],
)
def test_no_aws_setting_of_the_shell_breaks_a_client(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("no configuration [")
    monkeypatch.setenv(name, value.format(folder=tmp_path))
    local_aws._session.cache_clear()
    with responding(b"pong") as (port, _):
        client = aws_at(port).client("sagemaker-runtime")
        assert client.invoke_endpoint(EndpointName="one", Body=b"")["Body"].read() == b"pong"


@pytest.mark.parametrize(("status", "content"), [(500, b"{}"), (200, b"<html>")])
def test_a_runtime_that_returns_nonsense_is_a_message_with_what_to_do(status: int, content: bytes) -> None:
    with (
        responding(content, status=status) as (port, _),
        pytest.raises(WorkFailedError, match=r"(?s)does not respond at .*do: .*tritonstack local down"),
    ):
        aws_at(port).runtime_status()
