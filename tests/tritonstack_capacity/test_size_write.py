"""``tritonstack capacity size --write``: the file afterwards, what is printed, and what is refused."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.catalogue.test_prices import own_prices
from tests.tritonstack_capacity.sizing.test_capacity import PUBLISHED
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.paths import REPOSITORY
from tritonstack_capacity.commands import size
from tritonstack_capacity.sizing.measurements import NEEDED

BEFORE = "    scaling: {minimum: 2, maximum: 8, invocations_per_instance: 3000, gpu_utilization: 70}   # calls a minute"
AFTER = "    scaling: {minimum: 2, maximum: 19, invocations_per_instance: 1596, gpu_utilization: 70}   # calls a minute"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the environment files, which is also the working folder."""
    shutil.copytree(REPOSITORY / "tests/digits_environments", tmp_path / "environments")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, load: str = "30000", limit: str = "900", measurements: Path = PUBLISHED) -> Result:
    given = ["--measurements", str(measurements), "--load", load, "--latency-ms", limit, *arguments]
    return CliRunner().invoke(size.command, given)


def said(result: Result) -> str:
    assert isinstance(result.exception, InputError), result.output
    assert result.exception.exit_code == 2
    return str(result.exception)


def test_the_file_is_edited_and_the_diff_and_each_reason_are_printed(project: Path) -> None:
    file = project / "environments" / "prod.yaml"
    before = file.read_bytes().decode()
    assert BEFORE in before
    result = run("--write", "environments/prod.yaml")
    assert result.exit_code == 0, result.output
    assert file.read_bytes().decode() == before.replace(BEFORE, AFTER)
    assert f"\n-{BEFORE}" in result.output
    assert f"\n+{AFTER}" in result.output
    assert "yes, cheapest" in result.output
    words = " ".join(result.output.split())
    assert "digits in environments/prod.yaml, if it serves trt-db-ig on ml.g4dn.xlarge" in words
    assert "0.5 of what was measured: 3192 calls a minute" in words
    assert "--load, 30000 calls a minute at 1596 an instance" in words
    assert "counts the calls of all its models together" in words
    assert "gpu_utilization: 70 stays" in words
    assert "at the maximum: 13.99 USD an hour" in words
    assert "tritonstack preflight prod asks whether the account's quota allows 19 instances" in words
    assert result.output.endswith("environments/prod.yaml is written\n")


def test_a_second_run_changes_nothing_and_says_so(project: Path) -> None:
    run("--write", "environments/prod.yaml")
    file = project / "environments" / "prod.yaml"
    written = file.read_bytes()
    moment = file.stat().st_mtime_ns
    result = run("--write", "environments/prod.yaml")
    assert result.exit_code == 0
    assert result.output.endswith("environments/prod.yaml says so already: nothing to write\n")
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (written, moment)


def test_diff_prints_the_same_and_leaves_the_file(project: Path) -> None:
    before = (project / "environments" / "prod.yaml").read_bytes()
    result = run("--write", "environments/prod.yaml", "--diff")
    assert f"\n+{AFTER}" in result.output
    assert result.output.endswith("--diff: environments/prod.yaml stays as it is\n")
    assert (project / "environments" / "prod.yaml").read_bytes() == before


def test_a_terminal_sees_colours_and_a_pipe_a_patch(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    piped = run("--write", "environments/prod.yaml", "--diff").output
    assert "\x1b[" not in piped
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = run("--write", "environments/prod.yaml", "--diff").output
    assert f"\x1b[32m+{AFTER}" in shown
    assert f"\x1b[31m-{BEFORE}" in shown


def test_json_stays_json_with_the_diff_inside(project: Path) -> None:
    document = json.loads(run("--write", "environments/prod.yaml", "--json").stdout)
    edit = document["edit"]
    assert (edit["file"], edit["endpoint"], edit["written"]) == ("environments/prod.yaml", "digits", True)
    assert [(each["field"], each["before"], each["after"]) for each in edit["settings"]] == [
        ("scaling.minimum", 2, 2),
        ("scaling.maximum", 8, 19),
        ("scaling.invocations_per_instance", 3000, 1596),
    ]
    assert all(each["why"] for each in edit["settings"])
    assert f"\n+{AFTER}" in edit["diff"]
    assert document["scaling"]["maximum"] == 19
    assert len(document["rows"]) == 24
    again = json.loads(run("--write", "environments/prod.yaml", "--json").stdout)["edit"]
    assert (again["diff"], again["written"]) == ("", False)
    assert json.loads(run("--json").stdout)["edit"] is None


def test_a_refusal_leaves_json_on_the_one_stream_and_the_reason_on_the_other(project: Path) -> None:
    result = run("--write", "environments/prod.yaml", "--json", limit="500")
    assert json.loads(result.stdout)["edit"] is None
    assert "no endpoint on ml.g4dn.2xlarge" in said(result)


def test_the_files_own_region_and_prices_count(project: Path) -> None:
    file = project / "environments" / "prod.yaml"
    file.write_text(f"{file.read_text()}prices: {{ml.g4dn.xlarge: 9.0}}\n")
    document = json.loads(run("--write", "environments/prod.yaml", "--endpoint", "digits", "--json").stdout)
    assert document["recommended"]["instance_type"] == "ml.g4dn.2xlarge"
    assert (document["edit"]["configuration"], document["edit"]["instance_type"]) == ("trt-db-ig", "ml.g4dn.xlarge")
    assert document["scaling"]["instance_type"] == "ml.g4dn.xlarge"
    [note] = [each for each in document["edit"]["notes"] if each.startswith("cheapest of all")]
    assert note.startswith("cheapest of all: 23 x trt-db on ml.g4dn.2xlarge, 21.62 USD an hour")
    assert "left to you" in note
    assert "at the maximum: 171.00 USD an hour" in document["edit"]["notes"]


def test_the_price_list_beside_the_file_counts_wherever_the_command_runs(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_prices(project, 9.25)
    measured = project / "measured.csv"
    measured.write_text(f"{','.join(NEEDED)}\nplain,ml.g4dn.xlarge,600,80\n")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    file = str(project / "environments" / "prod.yaml")
    [row] = json.loads(run("--write", file, "--diff", "--json", measurements=measured).stdout)["rows"]
    assert row["usd_per_instance_hour"] == 9.25


def test_the_prices_of_another_environment_are_refused(project: Path) -> None:
    before = (project / "environments" / "prod.yaml").read_bytes()
    assert "dev, and --write environments/prod.yaml, which is prod" in said(
        run("--write", "environments/prod.yaml", "--environment", "dev")
    )
    assert (project / "environments" / "prod.yaml").read_bytes() == before
    assert run("--write", "environments/prod.yaml", "--environment", "prod").exit_code == 0


def test_a_day_decides_the_limits_and_what_it_costs(project: Path) -> None:
    loads = [2_500 if hour < 8 else 24_000 for hour in range(24)]
    lines = [f"{hour},{load}\n" for hour, load in enumerate(loads)]
    (project / "day.csv").write_text(f"hour,invocations_per_min\n{''.join(lines)}")
    edit = json.loads(
        run("--write", "environments/dev.yaml", "--daily-curve", "day.csv", "--json", load="24000").stdout
    )["edit"]
    assert {each["field"]: each["after"] for each in edit["settings"]} == {
        "scaling.minimum": 2,
        "scaling.maximum": 16,
        "scaling.requests_per_second": 53.2,
        "scaling.safety_factor": 0.5,
        "initial_instance_count": 2,
    }
    cost = "at the maximum: 11.78 USD an hour; a day: 200.30 USD scaled, 282.78 USD at the maximum all day"
    assert edit["notes"][0] == cost
    text = (project / "environments" / "dev.yaml").read_text()
    scaling = "    scaling: {minimum: 2, maximum: 16, requests_per_second: 53.2, safety_factor: 0.5}\n"
    assert f"    initial_instance_count: 2\n{scaling}" in text


def test_a_load_above_the_days_busiest_hour_keeps_its_maximum_and_the_reason_names_both(project: Path) -> None:
    lines = [f"{hour},{100 + 10 * hour}\n" for hour in range(24)]
    (project / "day.csv").write_text(f"hour,invocations_per_min\n{''.join(lines)}")
    edit = json.loads(run("--write", "environments/prod.yaml", "--daily-curve", "day.csv", "--json").stdout)["edit"]
    [maximum] = [each for each in edit["settings"] if each["field"] == "scaling.maximum"]
    assert maximum["after"] == 19
    assert maximum["why"] == "--load, 30000 calls a minute at 1596 an instance; the busiest hour has 330"
    assert "is above the busiest hour of --daily-curve, 330" in edit["notes"][0]


def test_with_a_day_the_endpoint_on_the_type_that_is_cheapest_by_the_day_is_written(project: Path) -> None:
    header = f"{','.join(NEEDED)},implied_hourly_price_usd"
    rows = ("big,ml.g4dn.12xlarge,10000,10,4", "small,ml.g4dn.xlarge,1000,10,0.41")
    (project / "measured.csv").write_text("\n".join((header, *rows)) + "\n")
    lines = [f"{hour},{10_000 if hour == 12 else 100}\n" for hour in range(24)]
    (project / "day.csv").write_text(f"hour,invocations_per_min\n{''.join(lines)}")
    given = ("--write", "environments/prod.yaml", "--diff", "--json")
    measurements = project / "measured.csv"
    with_day = run(*given, "--daily-curve", "day.csv", load="10000", measurements=measurements)
    assert json.loads(with_day.stdout)["edit"]["configuration"] == "small"
    without = run(*given, load="10000", measurements=measurements)
    assert "no endpoint on ml.g4dn.12xlarge" in said(without)


def test_a_folder_that_takes_no_file_is_told_by_the_users_file_with_what_to_do(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, _data: bytes) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    result = run("--write", "environments/prod.yaml")
    assert isinstance(result.exception, WorkFailedError)
    assert result.exception.exit_code == 1
    text = str(result.exception)
    assert text.startswith("environments/prod.yaml\n  found:   not written: Permission denied")
    assert f"Permission denied, in {project / 'environments'}, where" in text
    assert "print the edit with --diff and apply it yourself" in text
    assert ".prod.yaml." not in text


def test_what_else_scales_an_endpoint_is_said_and_stays(project: Path) -> None:
    file = project / "environments" / "prod.yaml"
    night = 'concurrency: 5, schedules: [{name: night, when: "cron(0 22 * * ? *)", minimum: 3}]'
    file.write_text(file.read_text().replace("gpu_utilization: 70", night))
    edit = json.loads(run("--write", "environments/prod.yaml", "--json").stdout)["edit"]
    assert "concurrency: 5 stays: of several targets, the one that asks for the most instances wins" in edit["notes"]
    assert "its schedules stay, and give other limits at their times: night" in edit["notes"]
    assert night in file.read_text()


def test_one_model_alone_needs_no_word_about_a_mix(project: Path) -> None:
    file = project / "environments" / "dev.yaml"
    text = (
        file.read_text().replace("multi-model", "single-model").replace("digits-onnx, digits-ensemble", "digits-onnx")
    )
    file.write_text(text)
    edit = json.loads(run("--write", "environments/dev.yaml", "--json").stdout)["edit"]
    assert edit["written"] is True
    assert not [each for each in edit["notes"] if "mix" in each]


def test_a_limit_that_nobody_keeps_writes_nothing(project: Path) -> None:
    before = (project / "environments" / "prod.yaml").read_bytes()
    result = run("--write", "environments/prod.yaml", limit="100")
    assert "278 ms or more" in said(result)
    assert "no row is within 100 ms" in result.output
    assert (project / "environments" / "prod.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("environments/pord.yaml", "Did you mean prod?"),
        ("environments", "found:   a directory\n  allowed: a YAML file"),
        ("measured.csv", "allowed: a mapping"),
        ("binary.yaml", "it is not UTF-8"),
        ("odd.yaml", "odd.yaml:2"),
    ],
)
def test_what_is_no_environment_file_is_refused_by_its_name(file: str, found: str, project: Path) -> None:
    shutil.copy(PUBLISHED, project / "measured.csv")
    (project / "binary.yaml").write_bytes(b"\xff\xfe")
    (project / "odd.yaml").write_text("on: [\n")
    text = said(run("--write", file))
    assert text.startswith(file)
    assert found in text


@pytest.mark.parametrize("options", [("--endpoint", "digits"), ("--configuration", "trt-db"), ("--diff",)])
def test_what_narrows_an_edit_needs_one(options: tuple[str, ...]) -> None:
    assert f"{options[0]}\n" in said(run(*options))
    assert "with --write FILE only" in said(run(*options))


def test_every_wrong_input_is_told_at_once(project: Path) -> None:
    text = said(
        run(
            *("--safety-factor", "NaN", "--daily-curve", "none.csv", "--write", "none.yaml"),
            load="30k",
            limit="500ms",
            measurements=Path("measured.csv"),
        )
    )
    for place in ("--load", "--latency-ms", "--safety-factor", "none.csv", "none.yaml", "measured.csv"):
        assert f"{place}\n  found:" in text
