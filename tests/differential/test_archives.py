"""Archives of every layout, packed and unpacked, in both modes: what a container does not serve, the linter refuses."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.server import Server, start_single
from tests.differential.tables import LAYOUTS, Mode, Mutation, lint_errors
from tritonstack.untrusted.unpacking import unpack

_EACH = [pytest.param(packed, modes, id=packed.name) for packed, modes in LAYOUTS]
_LOADED = [pytest.param(packed, modes[True], id=packed.name) for packed, modes in LAYOUTS if modes[True].asked]
Modes = dict[bool, Mode]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A multi-model container for all of them."""
    with Server.running(tmp_path_factory.mktemp("container")) as server:
        yield server


def _pack(packed: Mutation, folder: Path) -> Path:
    """The archive, packed as the walkthroughs do: every member below ``./``."""
    packed.write(folder / "repository")
    archive = folder / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "repository", arcname=".")
    return archive


@pytest.mark.parametrize(("packed", "modes"), _EACH)
@pytest.mark.parametrize("multi_model", [True, False])
def test_the_linter_refuses_an_archive_for_the_modes_that_do_not_serve_it(
    packed: Mutation, modes: Modes, tmp_path: Path, *, multi_model: bool
) -> None:
    mode = modes[multi_model]
    assert mode.rule or (mode.says == "" and mode.asked)
    unpack(_pack(packed, tmp_path), tmp_path / "unpacked")
    errors = lint_errors(tmp_path / "unpacked", multi_model=multi_model)
    assert mode.rule in errors if mode.rule else errors == set()


@pytest.mark.long
@pytest.mark.parametrize(("packed", "mode"), _LOADED)
def test_a_multi_model_container_treats_an_archive_as_in_the_table(
    packed: Mutation, mode: Mode, tmp_path: Path, server: Server
) -> None:
    archive = _pack(packed, tmp_path)

    def lay_out(folder: Path) -> None:
        folder.parent.mkdir(parents=True)
        unpack(archive, folder)

    response, _ = server.load_laid_out(lay_out)
    assert response.accepted == (mode.says == "")
    assert mode.says in response.output


@pytest.mark.long
@pytest.mark.parametrize(("packed", "modes"), _EACH)
def test_a_single_model_container_treats_an_archive_as_in_the_table(
    packed: Mutation, modes: Modes, tmp_path: Path
) -> None:
    unpack(_pack(packed, tmp_path), tmp_path / "unpacked")
    response = start_single(tmp_path / "unpacked", tmp_path / "container")
    assert response.accepted == (modes[False].says == "")
    assert modes[False].says in response.output
