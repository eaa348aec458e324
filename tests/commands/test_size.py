"""``tritonstack size``: what it prints, its JSON and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.sizing.test_capacity import PUBLISHED
from tritonstack.commands import size
from tritonstack.errors import InputError
from tritonstack.local.paths import REPOSITORY


def run(*arguments: str, measurements: Path = PUBLISHED) -> Result:
    return CliRunner().invoke(size.command, ["--measurements", str(measurements), *arguments])


def test_the_table_marks_the_cheapest_and_says_the_target() -> None:
    result = run("--load", "30000", "--latency-ms", "500")
    assert result.exit_code == 0
    assert "23 x trt-db on ml.g4dn.2xlarge, 21.62 USD an hour" in result.output
    assert result.output.count("yes, cheapest") == 1
    assert "a target of 667.5 invocations a minute and instance" in result.output


def test_the_json_holds_the_same_as_numbers() -> None:
    document = json.loads(run("--load", "30000", "--latency-ms", "500", "--json").output)
    assert document["recommended"] == {"configuration": "trt-db", "instance_type": "ml.g4dn.2xlarge"}
    assert len(document["rows"]) == 24
    assert document["rows"][13]["cost_per_hour"] == 21.62
    assert document["scaling"]["invocations_per_instance"] == 667.5


def test_a_limit_that_nobody_keeps_is_wrong_input_with_the_nearest_named() -> None:
    result = run("--load", "30000", "--latency-ms", "100")
    assert isinstance(result.exception, InputError)
    assert "278 ms or more, the latency of trt-db on ml.g4dn.12xlarge" in str(result.exception)
    assert "no row is within 100 ms" in result.output  # the table is there all the same


def test_prices_of_the_environment_file_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "environments").mkdir()
    text = (REPOSITORY / "environments/local.yaml").read_text()
    (tmp_path / "environments/local.yaml").write_text(f"{text}\nprices: {{ml.g4dn.2xlarge: 9.0}}\n")
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    document = json.loads(run("--load", "30000", "--latency-ms", "500", "--environment", "local", "--json").output)
    assert document["recommended"]["instance_type"] == "ml.g4dn.12xlarge"
    assert document["rows"][13]["price_source"] == "the environment file"


def test_options_that_are_no_numbers_are_refused() -> None:
    assert isinstance(run("--load", "many", "--latency-ms", "500").exception, InputError)
    assert isinstance(run("--load", "1", "--latency-ms", "5", "--safety-factor", "2").exception, InputError)
