"""docs/size.md: its commands run as they stand, and what it shows is what they print."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.tritonstack_capacity.sizing.test_capacity import PUBLISHED, published
from tritonstack.paths import REPOSITORY
from tritonstack_capacity.commands import size
from tritonstack_capacity.sizing.capacity import CapacityRow

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
    answer = "**yes, cheapest**" if recommended else "yes" if row.meets_latency else "no"
    cells = (
        measured.configuration,
        measured.instance_type,
        str(measured.invocations_per_minute),
        str(measured.latency_ms),
        str(row.instances),
        f"{row.cost_per_hour:.2f}",
        f"{row.cost_per_million:.2f}",
        answer,
    )
    return f"| {' | '.join(cells)} |"
