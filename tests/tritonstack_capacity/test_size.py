"""``tritonstack capacity size``: what it prints, its JSON and its exit codes; docs/size.md shows what it prints."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cases import cases
from tests.tritonstack_capacity.sizing.test_capacity import PUBLISHED, published
from tritonstack.errors import InputError
from tritonstack.paths import REPOSITORY
from tritonstack_capacity.commands import size
from tritonstack_capacity.sizing.capacity import CapacityRow
from tritonstack_capacity.sizing.measurements import NEEDED

HEADER = ",".join(NEEDED)


def measured(folder: Path, *rows: str, header: str = HEADER) -> Path:
    file = folder / "measured.csv"
    file.write_text("\n".join((header, *rows)) + "\n")
    return file


def run(*arguments: str, measurements: Path = PUBLISHED) -> Result:
    return CliRunner().invoke(size.command, ["--measurements", str(measurements), *arguments])


def test_the_table_marks_the_cheapest_and_shows_the_target() -> None:
    result = run("--load", "30000", "--latency-ms", "500")
    assert result.exit_code == 0
    assert "23 x trt-db on ml.g4dn.2xlarge, 21.62 USD an hour" in result.output
    assert result.output.count("yes, cheapest") == 1
    assert "a target of 667.5 invocations a minute and instance" in result.output
    words = " ".join(result.output.split())
    assert "load x 2 trt-db on ml.g4dn.2xlarge 45 42.30" in words
    assert "measured rates x 0.7 trt-db on ml.g4dn.2xlarge 33 31.02" in words
    assert "limit from 783 ms trt-db-ig on ml.g4dn.xlarge 10 7.36" in words


def test_other_measurements_are_shown_beside_the_rows_of_the_same_configuration_and_type(tmp_path: Path) -> None:
    rows = ("db-trt (constructed),ml.g4dn.2xlarge,600,80", "trt-db,ml.g5.xlarge,600,80", "mine,ml.g4dn.xlarge,600,80")
    file = measured(tmp_path, *rows)
    given = ("--load", "30000", "--latency-ms", "500", "--beside", str(PUBLISHED))
    result = run(*given, measurements=file)
    assert result.exit_code == 0, result.output
    table = result.output.partition(f"measured | {PUBLISHED.name}")[2]
    lines = {line.split("  ")[0].strip(): line.split() for line in table.splitlines() if "ml.g" in line}
    assert lines["db-trt (constructed)"][2:] == [
        "ml.g4dn.2xlarge",
        "600",
        "|",
        "1335",
        "80",
        "|",
        "499",
        "50",
        "|",
        "23",
        "47.00",
        "|",
        "21.62",
        "yes",
        "|",
        "yes",
    ]
    assert "|" not in lines["trt-db"], "another instance type"
    assert "|" not in lines["mine"]
    found = json.loads(run(*given, "--json", measurements=file).output)["rows"]
    beside = {row["configuration"]: row["beside"] for row in found}
    assert (beside["trt-db"], beside["mine"]) == (None, None)
    assert (beside["db-trt (constructed)"]["configuration"], beside["db-trt (constructed)"]["instances"]) == (
        "trt-db",
        23,
    )
    plain = json.loads(run(*given[:4], "--json", measurements=file).output)["rows"]
    assert "beside" not in plain[0]


def test_a_file_beside_without_these_configurations_says_so_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    file = measured(tmp_path, "mine,ml.g4dn.xlarge,600,80")
    given = ("--load", "30000", "--latency-ms", "500")
    result = run(*given, "--beside", str(PUBLISHED), measurements=file)
    assert result.exit_code == 0
    assert f"{PUBLISHED.name} has none of these configurations and instance types" in " ".join(result.output.split())
    for other, part in ((tmp_path / "none.csv", "none.csv"), (measured_as(tmp_path, "a,b\n1,2\n"), "other.csv")):
        refused = run(*given, "--beside", str(other), measurements=file)
        assert isinstance(refused.exception, InputError)
        assert part in str(refused.exception)


def measured_as(folder: Path, text: str) -> Path:
    file = folder / "other.csv"
    file.write_text(text)
    return file


NO_NUMBERS = ["0", "-5", "NaN", "sNaN", "Infinity", "-inf", "1e400", "1e-400"]
NO_NUMBERS += ["30k", "30,000", "500ms", "8/s", "", "3_0000"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_a_load_and_a_limit_are_numbers_above_zero_without_a_unit(text: str) -> None:
    result = run("--load", text, "--latency-ms", text)
    assert isinstance(result.exception, InputError)
    assert [(each.field, each.found) for each in result.exception.problems] == [
        ("--load", text),
        ("--latency-ms", text),
    ]
    assert "without unit" in str(result.exception)
    assert result.output == ""


@pytest.mark.parametrize("text", ["0", "-0.5", "1.01", "NaN", "Infinity", "1e-9", "half"])
def test_a_safety_factor_is_a_share(text: str) -> None:
    result = run("--load", "30000", "--latency-ms", "500", "--safety-factor", text)
    assert isinstance(result.exception, InputError)
    assert [(each.field, each.found) for each in result.exception.problems] == [("--safety-factor", text)]


def test_an_unknown_price_is_reported_and_never_a_zero(tmp_path: Path) -> None:
    file = measured(tmp_path, "a,ml.unheard.xlarge,600,80")
    result = run("--load", "6000", "--latency-ms", "100", measurements=file)
    assert result.exit_code == 0
    [line] = [line.split() for line in result.output.splitlines() if line.split()[:1] == ["a"]]
    assert line == ["a", "ml.unheard.xlarge", "600", "80", "10", "unknown", "unknown", "yes"]
    assert "no recommendation: of the rows within 100 ms none has a price" in result.output
    assert "not compared, since their price is unknown: a on ml.unheard.xlarge" in result.output
    assert "prices: {ml.unheard.xlarge: <USD an hour>}" in result.output
    assert "0.00" not in result.output
    document = json.loads(run("--load", "6000", "--latency-ms", "100", "--json", measurements=file).output)
    [row] = document["rows"]
    assert (row["usd_per_instance_hour"], row["cost_per_hour"], row["cost_per_million"]) == (None, None, None)
    assert (document["recommended"], document["scaling"]) == (None, None)
    assert document["unpriced"] == [{"configuration": "a", "instance_type": "ml.unheard.xlarge"}]


def day_file(folder: Path, *, quiet: int, busy: int) -> str:
    """A curve of one busy hour."""
    file = folder / "day.csv"
    lines = (f"{hour},{busy if hour == 12 else quiet}\n" for hour in range(24))
    file.write_text(f"hour,invocations_per_min\n{''.join(lines)}")
    return str(file)


def big_and_small(folder: Path) -> Path:
    """The large instance is the cheaper one at 10,000 invocations a minute, and idle in a quiet hour."""
    rows = ("big,ml.g4dn.12xlarge,10000,10,4", "small,ml.g4dn.xlarge,1000,10,0.41")
    return measured(folder, *rows, header=f"{HEADER},implied_hourly_price_usd")


def test_a_day_decides_which_is_the_cheapest_and_the_cheapest_at_the_load_is_named_too(tmp_path: Path) -> None:
    given = ("--load", "10000", "--latency-ms", "500")
    day = ("--daily-curve", day_file(tmp_path, quiet=100, busy=10_000))
    words = " ".join(run(*given, *day, measurements=big_and_small(tmp_path)).output.split())
    assert "cheapest within 500 ms by the day: small on ml.g4dn.xlarge, 27.06 USD a day; --diff takes it" in words
    assert (
        "it is not the cheapest at 10000 invocations a minute: 1 x big on ml.g4dn.12xlarge, 4.00 USD an hour" in words
    )
    assert "but 192.00 USD a day" in words
    assert "how far this holds, by the cost at the load" in words

    document = json.loads(run(*given, *day, "--json", measurements=big_and_small(tmp_path)).output)
    assert [row["cost_per_day"] for row in document["rows"]] == [192, 27.06]
    assert (document["recommended"]["configuration"], document["recommended_by"]) == ("small", "day")
    assert document["cheapest_at_load"]["configuration"] == "big"
    assert document["scaling"]["configuration"] == "small"

    plain = json.loads(run(*given, "--json", measurements=big_and_small(tmp_path)).output)
    assert (plain["recommended"]["configuration"], plain["recommended_by"]) == ("big", "load")
    assert [row["cost_per_day"] for row in plain["rows"]] == [None, None]


@cases("busy, peak, expected")
def test_the_maximum_is_for_the_greater_of_the_load_and_the_days_busiest_hour(
    busy: int, peak: int, expected: str, tmp_path: Path
) -> None:
    given = ("--load", "30000", "--latency-ms", "500", "--daily-curve", day_file(tmp_path, quiet=100, busy=busy))
    scaling = json.loads(run(*given, "--json").output)["scaling"]
    target = scaling["invocations_per_instance"]
    assert (scaling["maximum_for_invocations_per_minute"], scaling["maximum"]) == (peak, math.ceil(peak / target))
    assert scaling["note"].startswith(expected)
    assert bool(scaling["note"]) == bool(expected)
    assert scaling["note"] in " ".join(run(*given).output.split())


PAGE = (REPOSITORY / "docs" / "size.md").read_text(encoding="utf-8")


def test_the_documented_commands_run_and_print_the_documented_diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(REPOSITORY / "environments", tmp_path / "environments")
    data = tmp_path / PUBLISHED.relative_to(REPOSITORY)
    data.parent.mkdir(parents=True)
    shutil.copy(PUBLISHED, data)
    monkeypatch.chdir(tmp_path)
    printed = ""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL) for line in block.splitlines()]
    assert len(lines) == 2
    for line in lines:
        program, group, name, *arguments = line.split()
        assert (program, group, name) == ("tritonstack", "capacity", "size")
        result = CliRunner().invoke(size.command, arguments)
        assert result.exit_code == 0, result.output
        printed += result.stdout
    [diff] = re.findall(r"```diff\n(.*?)```", PAGE, flags=re.DOTALL)
    assert f"\n{diff}" in printed


def test_the_documented_table_is_the_computed_one() -> None:
    table = published()
    shown = [line for line in PAGE.splitlines() if "| ml.g4dn" in line]
    assert shown == [_line(row, recommended=row is table.recommended) for row in table.rows]


def _line(row: CapacityRow, *, recommended: bool) -> str:
    measured = row.measurement
    cell = "**yes, cheapest**" if recommended else "yes" if row.meets_latency else "no"
    cells = (
        measured.configuration,
        measured.instance_type,
        str(measured.invocations_per_minute),
        str(measured.latency_ms),
        str(row.instances),
        f"{row.cost_per_hour:.2f}",
        f"{row.cost_per_million:.2f}",
        cell,
    )
    return f"| {' | '.join(cells)} |"


def test_figures_of_the_local_aws_say_what_they_cannot_answer_and_which_commands_can(tmp_path: Path) -> None:
    file = measured(tmp_path, "digits-json,this-machine,900,40", "digits-binary,this-machine,2400,12")
    result = run("--load", "6000", "--latency-ms", "100", measurements=file)
    assert result.exit_code == 0
    assert "no recommendation: every row was measured on this machine, not on an instance" in result.output
    answered = (
        "many GPU instances a load needs, with what latency and cost, only figures of a deployed endpoint can answer"
    )
    assert answered in result.output
    assert "capacity bench NAME -e ENVIRONMENT --to measured" in result.output
    assert "--measurements measured/measurements.csv --load 6000 --latency-ms 100 -e ENVIRONMENT" in result.output
    for line in ("none", "how far this holds", "prices update", "this-machine: <USD"):
        assert line not in result.output.replace("none has", "")
    missed = run("--load", "6000", "--latency-ms", "5", measurements=file).exception
    assert "measure on an instance: tritonstack capacity bench NAME -e ENVIRONMENT" in str(missed)


def test_beside_priced_rows_a_local_one_is_explained_and_the_others_are_compared(tmp_path: Path) -> None:
    file = measured(tmp_path, "local,this-machine,900,40", "trt,ml.g4dn.xlarge,2400,12")
    words = " ".join(run("--load", "6000", "--latency-ms", "100", measurements=file).output.split())
    assert "cheapest within 100 ms at 6000 invocations a minute: 3 x trt on ml.g4dn.xlarge" in words
    assert "this-machine: measured on the local AWS" in words
    assert "how far this holds" in words
