"""``tritonstack dashboard``: the page says whose figures it has."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.test_examples import run_example
from tests.config.environment_file import write_environment
from tests.fake_aws import AwsError, FakeAws, Response
from tritonstack.cli import dashboard

NOTHING: dict[str, Response] = {
    "ssm.GetParameter": AwsError("ParameterNotFound"),
    "cloudwatch.GetMetricData": {"MetricDataResults": []},
}


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("http://127.0.0.1:4566", "the local AWS"),
        (None, "CloudWatch, us-east-1"),
        ("https://x.test", "CloudWatch, us-"),
    ],
)
def test_the_source_is_where_the_shell_points_whatever_the_environment_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None, source: str
) -> None:
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments", header="environment: dev", name="dev")
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    if url is not None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setattr(dashboard, "session_of", lambda _settings: FakeAws(responses=NOTHING))
    result = CliRunner().invoke(dashboard.command, ["-e", "dev"], standalone_mode=False, catch_exceptions=False)
    assert f"from {source}" in Path(result.stdout.strip()).read_text()


def test_the_example_of_help_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments")
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(dashboard, "session_of", lambda _settings: FakeAws(responses=NOTHING))
    assert Path(run_example("dashboard").stdout.strip()).is_file()
