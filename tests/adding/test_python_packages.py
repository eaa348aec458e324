"""Packages of a Python model: found where they are stated or imported, and locked for all Pythons that it runs in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.archives.wheels import make_wheel
from tests.cases import cases
from tests.models.folders import write
from tritonstack.adding.python_packages import NeededPackages, lock_packages, needed_packages
from tritonstack.errors import InputError, WorkFailedError


@pytest.fixture(autouse=True)
def _no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))


def found(folder: Path, files: Mapping[str, str], packages: Sequence[str]) -> NeededPackages | None:
    """What a model folder with these files, in a folder that was given, needs."""
    model = folder / "given" / "model"
    write(model, files)
    programs = sorted(model.glob("1/**/*.py"))
    return needed_packages(model, within=model.parent, programs=programs, packages=packages)


@cases("files, packages, origin, lines")
def test_packages_are_those_that_are_stated_or_else_imported(
    tmp_path: Path, files: dict[str, str], packages: list[str], origin: str, lines: list[str]
) -> None:
    needed = found(tmp_path, files, packages)
    assert (needed.origin if needed else "") == origin
    assert (list(needed.lines) if needed else []) == lines


def test_a_module_without_a_known_package_is_refused_with_the_option_that_states_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"(?s)imports ours, theirs, and .*--package ours --package theirs"):
        found(tmp_path, {"1/model.py": "import ours, theirs, yaml\n"}, [])


def lock(tmp_path: Path, requirements: str, *, python: str = "3.10") -> str:
    """The lock file of a requirements file."""
    (tmp_path / "requirements.txt").write_text(requirements)
    needed = NeededPackages(file=tmp_path / "requirements.txt")
    lock_packages(needed, python=python, target=tmp_path / "lock.txt")
    return (tmp_path / "lock.txt").read_text()


def test_a_lock_file_has_hashes_numpy_1_and_no_place_of_this_machine(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    lines = [make_wheel(wheels, "native", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64")]
    lines += [make_wheel(wheels, "numpy", version) for version in ("1.26.4", "2.3.0")]
    text = lock(tmp_path, "native>=1\n", python="3.12")
    assert text.replace(" \\\n   ", "") == "\n".join(lines[:2]) + "\n"


def test_numpy_as_it_is_stated_stays(tmp_path: Path) -> None:
    for version in ("1.26.4", "2.3.0"):
        make_wheel(tmp_path / "wheels", "numpy", version)
    assert "numpy==2.3.0" in lock(tmp_path, "numpy>2\n")


def test_a_lock_file_with_numpy_is_taken_as_it_is(tmp_path: Path) -> None:
    line = make_wheel(tmp_path / "wheels", "numpy", "1.26.4")
    make_wheel(tmp_path / "wheels", "numpy", "1.26.5")
    assert lock(tmp_path, f"# locked elsewhere\n{line}\n") == f"# locked elsewhere\n{line}\n"


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize(
    "line",
    ["-r other.txt", "-e .", "--index-url http://elsewhere", "../mine", "mine @ file:///mine", "git+https://h/mine"],
)
def test_what_is_no_package_of_the_index_is_refused_with_its_line(tmp_path: Path, line: str, *, locked: bool) -> None:
    numpy = make_wheel(tmp_path / "wheels", "numpy", "1.26.4")
    with pytest.raises(InputError, match=r"line 2\n  found:   " + re.escape(line)):
        lock(tmp_path, f"{numpy if locked else 'numpy'}\n{line}\n")


def test_urls_of_a_pyproject_and_of_the_option_are_refused_and_its_sources_are_not_read(tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "numpy", "1.26.4")
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\ndependencies = ["mine @ https://h/mine.whl"]\n')
    with pytest.raises(InputError, match=r"project\.dependencies\n  found:   mine @"):
        lock_packages(NeededPackages(file=project), python="3.10", target=tmp_path / "lock.txt")
    with pytest.raises(InputError, match=r"--package\n  found:   --index-url"):
        lock_packages(NeededPackages(lines=("--index-url http://h",)), python="3.10", target=tmp_path / "lock.txt")
    sources = '[tool.uv.sources]\nnumpy = { url = "https://h/numpy.whl" }\n'
    project.write_text(f'[project]\ndependencies = ["numpy"]\n{sources}')
    lock_packages(NeededPackages(file=project), python="3.10", target=tmp_path / "lock.txt")
    assert "numpy==1.26.4" in (tmp_path / "lock.txt").read_text()


def test_a_package_that_is_not_there_is_named_with_where_it_comes_from(tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "numpy", "1.26.4")
    with pytest.raises(WorkFailedError, match=r"(?s)requirements.txt.* could not be locked; output of uv:.*absent"):
        lock(tmp_path, "absent\n")
