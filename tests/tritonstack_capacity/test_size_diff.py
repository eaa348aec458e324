"""``tritonstack capacity size --diff``: what is printed where, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.catalogue.test_prices import own_prices
from tests.tritonstack_capacity.sizing.test_capacity import PUBLISHED
from tritonstack.errors import InputError
from tritonstack.paths import REPOSITORY
from tritonstack_capacity import LimitMissedError
from tritonstack_capacity.commands import size
from tritonstack_capacity.sizing.measurements import NEEDED

BEFORE = "    scaling: {minimum: 2, maximum: 8, invocations_per_instance: 3000, gpu_utilization: 70}   # calls a minute"
AFTER = "    scaling: {minimum: 2, maximum: 19, invocations_per_instance: 1596, gpu_utilization: 70}   # calls a minute"
PROD = ("--diff", "environments/prod.yaml")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the environment files, which is also the working folder."""
    shutil.copytree(REPOSITORY / "tests/digits_environments", tmp_path / "environments")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, load: str = "30000", limit: str = "900", measurements: Path = PUBLISHED) -> Result:
    given = ["--measurements", str(measurements), "--load", load, "--latency-ms", limit, *arguments]
    return CliRunner().invoke(size.command, given)


def refused(result: Result) -> str:
    assert isinstance(result.exception, InputError), result.output
    assert result.exception.exit_code == 2
    return str(result.exception)


def test_the_diff_is_all_of_standard_output_and_the_reasons_are_on_standard_error(project: Path) -> None:
    file = project / "environments" / "prod.yaml"
    before = file.read_text()
    result = run(*PROD)
    assert result.exit_code == 0, result.output
    assert file.read_text() == before
    subprocess.run(["git", "apply"], cwd=project, input=result.stdout.encode(), check=True)
    assert file.read_text() == before.replace(BEFORE, AFTER)
    words = " ".join(result.stderr.split())
    for part in (
        "yes, cheapest",
        "digits in environments/prod.yaml, if it serves trt-db-ig on ml.g4dn.xlarge",
        "0.5 of what was measured: 3192 invocations a minute",
        "--load, 30000 invocations a minute at 1596 an instance",
        "counts the invocations of all its models together",
        "at the maximum: 13.99 USD an hour",
    ):
        assert part in words
    again = run(*PROD)
    assert again.stdout == ""
    assert "has this scaling already" in again.stderr


def test_json_has_the_diff_inside(project: Path) -> None:
    document = json.loads(run(*PROD, "--json").stdout)
    found = document["edit"]
    assert (found["file"], found["endpoint"]) == ("environments/prod.yaml", "digits")
    assert [(each["field"], each["before"], each["after"]) for each in found["settings"]] == [
        ("scaling.minimum", 2, 2),
        ("scaling.maximum", 8, 19),
        ("scaling.invocations_per_instance", 3000, 1596),
    ]
    assert "" not in [each["why"] for each in found["settings"]]
    assert f"\n+{AFTER}" in found["diff"]
    assert document["scaling"]["maximum"] == 19
    assert json.loads(run("--json").stdout)["edit"] is None


def test_the_files_own_region_and_prices_count(project: Path) -> None:
    file = project / "environments" / "prod.yaml"
    file.write_text(f"{file.read_text()}prices: {{ml.g4dn.xlarge: 9.0}}\n")
    document = json.loads(run(*PROD, "--endpoint", "digits", "--json").stdout)
    assert document["recommended"]["instance_type"] == "ml.g4dn.2xlarge"
    assert (document["edit"]["configuration"], document["edit"]["instance_type"]) == ("trt-db-ig", "ml.g4dn.xlarge")
    [note] = [each for each in document["edit"]["notes"] if each.startswith("cheapest of all")]
    assert note.startswith("cheapest of all: 23 x trt-db on ml.g4dn.2xlarge, 21.62 USD an hour")
    assert "at the maximum: 171.00 USD an hour" in document["edit"]["notes"]


def test_the_price_list_in_the_file_s_folder_counts_wherever_the_command_runs(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_prices(project, 9.25)
    measured = project / "measured.csv"
    measured.write_text(f"{','.join(NEEDED)}\nplain,ml.g4dn.xlarge,600,80\n")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    file = str(project / "environments" / "prod.yaml")
    [row] = json.loads(run("--diff", file, "--json", measurements=measured).stdout)["rows"]
    assert row["usd_per_instance_hour"] == 9.25


def test_the_prices_of_another_environment_are_refused(project: Path) -> None:
    assert "dev with --diff environments/prod.yaml" in refused(run(*PROD, "--environment", "dev"))
    assert "with --diff FILE only" in refused(run("--endpoint", "digits"))


def test_a_limit_that_no_configuration_keeps_gives_no_diff(project: Path) -> None:
    result = run(*PROD, limit="100")
    assert isinstance(result.exception, LimitMissedError)
    assert result.exception.exit_code == 1
    assert "278 ms or more" in str(result.exception)
    assert "no row is within 100 ms" in result.stderr
    assert result.stdout == ""


def test_every_wrong_input_is_reported_at_once(project: Path) -> None:
    options = ("--safety-factor", "NaN", "--daily-curve", "none.csv", "--diff", "none.yaml")
    text = refused(run(*options, load="30k", limit="500ms", measurements=Path("measured.csv")))
    places = ("--load", "--latency-ms", "--safety-factor", "none.csv", "none.yaml", "measured.csv")
    assert [place for place in places if f"{place}\n  found:" not in text] == []
