"""The table of releases and GPUs in the documentation is the one that the catalogue gives."""

from __future__ import annotations

import re

import pytest

from tritonstack.catalogue import load_catalogue
from tritonstack.engines.table import PATH, main, page

CATALOGUE = load_catalogue()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def test_the_committed_table_is_current() -> None:
    assert PATH.read_text(encoding="utf-8") == page(), "python -m tritonstack.engines.table --write"


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == page()


@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32", "graph"])
def test_every_release_has_options_or_a_reason_for_every_gpu(precision: str) -> None:
    table = page().split(f"## precision: {precision}\n")[1].split("\n## ")[0].strip().splitlines()
    gpus = _cells(table[0])[2:]
    assert set(gpus) == {row.gpu for row in CATALOGUE.instances.values()}
    assert [_cells(line)[0].strip("*") for line in table[2:]] == list(CATALOGUE.releases)
    for line in table[2:]:
        cells = _cells(line)[2:]
        assert len(cells) == len(gpus)
        assert all(re.fullmatch(r"[A-Z]|\d+(, \d+)*", cell) for cell in cells), line


def test_every_letter_and_number_is_explained() -> None:
    tables, legend = page().split("## Sets of options\n")
    used = {name for line in tables.splitlines() if line.startswith("|") for name in _cells(line)[2:]}
    letters = {name for name in used if re.fullmatch("[A-Z]", name)}
    numbers = {number for name in used if name[:1].isdigit() for number in name.split(", ")}
    assert letters == set(re.findall(r"^\*\*([A-Z])\*\*$", legend, flags=re.MULTILINE))
    assert numbers == set(re.findall(r"^(\d+)\. ", legend, flags=re.MULTILINE))


def test_releases_of_unknown_contents_stand_with_their_reason() -> None:
    for release, reason in CATALOGUE.release_table.images_without_a_row.items():
        assert f"| {release} | {reason} |" in page()
