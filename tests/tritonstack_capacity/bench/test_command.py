"""The command's options: valid combinations, all wrong ones reported at once, and the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cases import cases
from tests.tritonstack_capacity.bench.documents import document, point, result
from tritonstack.errors import InputError
from tritonstack_capacity.bench.document import BenchDocument
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.commands import bench as bench_module
from tritonstack_capacity.commands.bench import command
from tritonstack_capacity.commands.bench_view import show

FOUND = document(result("plain", point(users=1, per_minute=1000, p95=60)))


def bench(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, standalone_mode=False)


def refused(*arguments: str) -> list[str]:
    """The fields that are refused."""
    error = bench(*arguments).exception
    assert isinstance(error, InputError), repr(error)
    return [problem.field for problem in error.problems]


ANALYSER = ("digits", "--generator", "perf-analyzer")
BY_CLIENT = ("--warm-up", "30", "--timeout", "5", "--rounds", "7", "--seed", "3")


@cases("arguments, field")
def test_options_that_would_be_ignored_are_refused(arguments: tuple[str, ...], field: str) -> None:
    assert refused(*arguments)[0] == field


def test_options_of_the_own_client_and_of_perf_analyzer_are_accepted(
    ran: list[tuple[BenchSettings, bool]],
) -> None:
    bench("digits", *BY_CLIENT, "--users", "600", "--output", "y", "--generator", "client")
    options = ("--seconds", "1", "--max-rounds", "5", "--stable-within", "20", "--percentile", "99")
    bench(*ANALYSER, "--users", "512", *options, "--most-under-way", "512")

    assert [(one.timing.warm_up, one.rule.most) for one, _ in ran] == [(30, 10), (2, 5)]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[BenchSettings, bool]]:
    """What would be measured, and whether on the local AWS; it comes to ``FOUND``."""
    found: list[tuple[BenchSettings, bool]] = []

    def run(settings: BenchSettings, *, local: bool, folder: Path | None, as_json: bool) -> BenchDocument:
        del folder, as_json
        found.append((settings, local))
        return FOUND

    monkeypatch.setattr(bench_module, "_run", run)
    return found


@pytest.mark.parametrize(("failed", "code"), [(False, 0), (True, 1)])
def test_the_exit_code_is_1_where_something_failed(failed: bool, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = FOUND.results[0].model_copy(update={"failed": failed})
    found = FOUND.model_copy(update={"results": [FOUND.results[0], one]})
    monkeypatch.setattr(bench_module, "_run", lambda *_, **__: found)

    assert bench("digits").return_value == code


def test_the_terminal_shows_the_table_of_the_page_and_its_notes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    failing = point(users=1, per_minute=1000, p95=60, failed=7)
    show(document(result("[b]", failing, ended_by="failed: no")), tmp_path)

    options = capsys.readouterr().out
    [row] = [line.split() for line in options.splitlines() if "1 user" in line]
    assert (row[0], "7" in row) == ("[b]", True)
    assert "[b] (binary): failed: no" in options
    assert f"{tmp_path}: results.json" in options
