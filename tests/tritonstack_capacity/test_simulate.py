"""``tritonstack capacity simulate``: what it prints, its files and its exit codes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.tritonstack_capacity.simulation.test_scenario_file import GOOD, written
from tritonstack.errors import InputError
from tritonstack.paths import REPOSITORY
from tritonstack_capacity import LimitMissedError
from tritonstack_capacity.commands import simulate

SCALED = GOOD.replace(
    "arrivals:", "scaling: {minimum: 1, maximum: 3, invocations_per_instance: 300}\nlatency_limit_ms: 900\narrivals:"
).replace("duration_minutes: 10", "duration_minutes: 40")


def run(folder: Path, *arguments: str, text: str = GOOD) -> Result:
    return CliRunner().invoke(simulate.command, [str(written(folder, text)), *arguments])


def test_the_result_is_printed_with_what_it_assumes(tmp_path: Path) -> None:
    result = run(tmp_path, text=SCALED)
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    for part in (
        "requests of 4 models in 40.0 min",
        "a loaded model (hit)",
        "requests of loaded models",
        "the limit of 900 ms is kept",
        "instances: 1 to",
        "USD for",
        "estimated in the long run (all models fit)",
        "do not split the models over two endpoints",
        "hit ratio by size of an instance",
        "routing (SageMaker does not publish it in full): a model's requests go to an instance that has it loaded",
    ):
        assert part in words


def test_the_json_is_the_same_for_a_seed_and_another_for_another(tmp_path: Path) -> None:
    first, again, other = (run(tmp_path, "--json", "--seed", seed, text=SCALED).output for seed in ("3", "3", "4"))
    assert first == again != other
    document = json.loads(first)
    calls = document["calls"]
    parts = ("hits", "waited_for_a_load", "loaded_from_disk", "downloaded")
    assert sum(calls[part] for part in parts) == calls["counted"] == calls["simulated"]
    assert document["latency_limit"] == {"ms": 900, "kept": True}
    assert document["instances"]["changes"][0] == {"seconds": 0.0, "serving": 1, "paid": 1}
    assert document["cost_usd"]["total"] > 0
    assert document["seed"] == 3


def test_the_files_hold_the_result_and_a_page_that_needs_nothing_else(tmp_path: Path) -> None:
    result = run(
        tmp_path, "--output", str(tmp_path / "out" / "a.json"), "--html", str(tmp_path / "a.html"), text=SCALED
    )
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out" / "a.json").read_text())["models"] == 4
    page = (tmp_path / "a.html").read_text()
    HTMLParser().feed(page)
    assert page.count('role="img"') == page.count("<figure") == 8
    assert not re.findall(r"(?:src|href)=|url\(|https?://", page)
    assert "nan" not in page
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.html", "out", "scenario.yaml"]


def test_a_trace_takes_the_place_of_the_curve(tmp_path: Path) -> None:
    trace = written(tmp_path, "time_seconds,model\n1,large\n2,large\n", name="t.csv")
    document = json.loads(run(tmp_path, "--trace", str(trace), "--json").output)
    assert document["calls"]["simulated"] == 2
    assert document["calls"]["hits"] == 0
    assert document["split"] is None


def test_a_limit_that_is_missed_ends_with_1_after_the_result(tmp_path: Path) -> None:
    slow = SCALED.replace("latency_limit_ms: 900", "latency_limit_ms: 21").replace(
        "per_minute: 600", "per_minute: 9000"
    )
    slow = slow.replace("duration_minutes: 40", "duration_minutes: 5")
    result = run(tmp_path, text=slow)
    assert "the limit of 21 ms is not kept" in " ".join(result.output.split())
    assert isinstance(result.exception, LimitMissedError)
    assert result.exception.exit_code == 1
    assert "latency_limit_ms" in str(result.exception)
    assert "The GPUs are what is late" in str(result.exception)


def test_wrong_scenarios_end_with_two(tmp_path: Path) -> None:
    result = run(tmp_path, text=GOOD.replace("per_minute: 600", "per_minute: -1"))
    assert isinstance(result.exception, InputError)
    assert "scenario.yaml:5" in str(result.exception)
    missing = CliRunner().invoke(simulate.command, [str(tmp_path / "none.yaml")])
    assert isinstance(missing.exception, InputError)
    assert "No such file" in str(missing.exception)


def test_the_documented_scenario_and_commands_run_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs" / "simulate.md").read_text(encoding="utf-8")
    scenarios = dict(re.findall(r"```yaml (\S+)\n(.*?)```", page, flags=re.DOTALL))
    assert sorted(scenarios) == ["deployed.yaml", "scenario.yaml"]
    [commands] = re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(REPOSITORY))  # whose environment the second scenario names
    for name, scenario in scenarios.items():
        written(tmp_path, scenario, name=name)
    for line in commands.splitlines():
        program, group, name, *arguments = line.split()
        assert (program, group, name) == ("tritonstack", "capacity", "simulate")
        result = CliRunner().invoke(simulate.command, arguments)
        assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "result.json").read_text())
    assert (document["latency_limit"]["kept"], document["split"]["worth_while"]) == (True, False)
    assert (tmp_path / "result.html").is_file()
