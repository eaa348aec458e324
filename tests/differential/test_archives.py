"""Archives of every layout, packed and unpacked, in both modes: what a container does not serve, the linter refuses."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.linter import BACKENDS
from tests.differential.server import Server, start_single
from tests.differential.tables.layouts import LAYOUTS, Layout, Mode
from tritonstack.models.lint import Target, lint_folder
from tritonstack.unpacking import unpack

_EACH = [pytest.param(layout, id=layout.packed.name) for layout in LAYOUTS]
_ASKED = [pytest.param(each, id=each.packed.name) for each in LAYOUTS if each.multi_model.says is not None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A multi-model container for all of them."""
    with Server.running(tmp_path_factory.mktemp("container")) as server:
        yield server


def _pack(layout: Layout, folder: Path) -> Path:
    """The archive, packed as the walkthroughs do: every member below ``./``."""
    layout.packed.write(folder / "repository")
    archive = folder / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "repository", arcname=".")
    return archive


def _errors(folder: Path, *, multi_model: bool) -> set[str]:
    target = Target(multi_model=multi_model, backends=frozenset(BACKENDS))
    return {finding.rule for finding in lint_folder(folder, target=target) if finding.level == "error"}


def _assert_linted(mode: Mode, errors: set[str]) -> None:
    assert mode.rule in errors if mode.rule else errors == set()


@pytest.mark.parametrize("layout", _EACH)
@pytest.mark.parametrize("multi_model", [True, False])
def test_the_linter_refuses_an_archive_for_the_modes_that_do_not_serve_it(
    layout: Layout, tmp_path: Path, *, multi_model: bool
) -> None:
    mode = layout.multi_model if multi_model else layout.single_model
    assert mode.rule or mode.says == ""
    unpack(_pack(layout, tmp_path), tmp_path / "unpacked")
    _assert_linted(mode, _errors(tmp_path / "unpacked", multi_model=multi_model))


@pytest.mark.long
@pytest.mark.parametrize("layout", _ASKED)
def test_a_multi_model_container_makes_of_an_archive_what_the_table_says(
    layout: Layout, tmp_path: Path, server: Server
) -> None:
    archive = _pack(layout, tmp_path)

    def lay_out(folder: Path) -> None:
        folder.parent.mkdir(parents=True)
        unpack(archive, folder)

    answer, _ = server.load_laid_out(lay_out)
    assert answer.accepted == (layout.multi_model.says == "")
    assert (layout.multi_model.says or "") in answer.told


@pytest.mark.long
@pytest.mark.parametrize("layout", _EACH)
def test_a_single_model_container_makes_of_an_archive_what_the_table_says(layout: Layout, tmp_path: Path) -> None:
    unpack(_pack(layout, tmp_path), tmp_path / "unpacked")
    answer = start_single(tmp_path / "unpacked", tmp_path / "container")
    assert answer.accepted == (layout.single_model.says == "")
    assert (layout.single_model.says or "") in answer.told
