"""The page of trtexec's options covers every release and GPU of the catalogue once, with the options of a build."""

from __future__ import annotations

from functools import cache

import pytest

from scripts.documentation.engines_page import SHAPES, engines_page
from tritonstack.catalogue import load_catalogue
from tritonstack.engines.trtexec import engine_options, engine_problems
from tritonstack.models.runtime_options import Engine

CATALOGUE = load_catalogue()
RELEASES = list(CATALOGUE.releases)
GPUS = {row.gpu for row in CATALOGUE.instances.values()}


@cache
def page() -> str:
    return engines_page()


def rows_of(section: str) -> list[list[str]]:
    table = page().split(f"## {section}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:3] in SOME]


SOME = {f"| {release[0]}" for release in RELEASES}
"""How a row begins that begins with a release."""


def covered(row: list[str]) -> set[tuple[str, str]]:
    """The pairs of release and GPU that a row is about."""
    first, _, last = row[0].partition(" to ")
    releases = RELEASES[RELEASES.index(first) : RELEASES.index(last or first) + 1]
    named, but, others = row[2].partition("all but ")
    gpus = GPUS if named == "all" else GPUS - set(others.split(", ")) if but else set(named.split(", "))
    assert gpus <= GPUS
    return {(release, gpu) for release in releases for gpu in gpus}


@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32", "graph"])
def test_every_release_and_gpu_has_one_row_with_the_options_of_a_build_or_a_refusal(precision: str) -> None:
    rows = rows_of(f"precision: {precision}")
    pairs = [(pair, row) for row in rows for pair in covered(row)]
    assert sorted(pair for pair, _ in pairs) == sorted((release, gpu) for release in RELEASES for gpu in GPUS)
    engine = Engine.model_validate({"shapes": SHAPES, "precision": precision})
    for (release, gpu), row in pairs:
        if engine_problems(engine, release=release, gpu=gpu):
            assert row[3].startswith("refused: "), (release, gpu)
        else:
            given = engine_options(engine, release=release, gpu=gpu)
            shown = row[3].replace("`", "").split()
            assert shown, (release, gpu)
            assert set(shown) <= set(given), (release, gpu)


def test_releases_of_unknown_contents_stand_with_their_reason() -> None:
    unknown = CATALOGUE.images_without_a_row
    assert unknown
    shown = {each: row[1] for row in rows_of("Releases that are refused for every GPU") for each in row[0].split(", ")}
    assert shown == unknown
