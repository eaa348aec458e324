"""Execution environments: for another Python, moved, packed alike every time, and nothing left of one that failed."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.archives.wheels import make_wheel
from tests.models.folders import make_environment_file
from tritonstack.archives import execution_environment
from tritonstack.archives.execution_environment import (
    TORCH_SITE,
    LocalEnvironment,
    PackedEnvironment,
    activate_script,
    kept_environment,
    local_environment,
    make_execution_environment,
)
from tritonstack.archives.programs import LOCAL_ENVIRONMENT, environment_version
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.recipe import ExecutionEnvironment

PART = ExecutionEnvironment(requirements="requirements.txt")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(autouse=True)
def _no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder; its lock file has a NumPy of ours, a wheel for each Python, and a package with a program."""
    wheels = tmp_path / "wheels"
    tags = ("cp310-cp310-manylinux_2_17_x86_64", "cp312-cp312-manylinux_2_17_x86_64")
    native = [make_wheel(wheels, "native", "1.0", tag=tag) for tag in tags]
    lines = [
        make_wheel(wheels, "numpy", "1.26.999"),
        make_wheel(wheels, "speaking", "2.0", script=True),
        f"{native[0]} {native[1].split(' ')[1]}",
    ]
    model = tmp_path / "model"
    model.mkdir()
    (model / "requirements.txt").write_text("# pinned\n" + " \\\n    --hash".join("\n".join(lines).split(" --hash")))
    return model


def make(folder: Path, target: Path, *, python: str = "3.10") -> PackedEnvironment:
    return make_execution_environment(folder / "requirements.txt", python=python, target=target)


def unpacked(packed: PackedEnvironment, place: Path) -> Path:
    with tarfile.open(packed.path) as archive:
        archive.extractall(place, filter="data")
    return place


@pytest.mark.parametrize("python", ["3.10", "3.12"])
def test_the_wheels_are_those_of_the_python_that_is_asked_for(folder: Path, tmp_path: Path, python: str) -> None:
    packed = make(folder, tmp_path / "env.tar.gz", python=python)
    site = unpacked(packed, tmp_path / "unpacked") / "lib" / f"python{python}" / "site-packages"
    assert f"cp{python.replace('.', '')}-" in (site / "native" / "__init__.py").read_text()
    assert packed.packages == {"native": "1.0", "numpy": "1.26.999", "speaking": "2.0"}
    described = json.loads((tmp_path / "unpacked/environment.json").read_text())
    assert described == {"python": packed.python, "packages": packed.packages}


def test_the_same_lock_file_gives_the_same_bytes_that_name_no_place(folder: Path, tmp_path: Path) -> None:
    first, second = (make(folder, tmp_path / name / "env.tar.gz") for name in ("one", "two"))
    assert first.path.read_bytes() == second.path.read_bytes()
    place = unpacked(first, tmp_path / "unpacked")
    said = [path for path in place.rglob("*") if path.is_file() and str(tmp_path).encode() in path.read_bytes()]
    assert not said
    assert [path.name for path in (place / "bin").iterdir()] == ["activate"]


def test_a_moved_environment_is_activated_as_the_backend_does_it(tmp_path: Path) -> None:
    site = tmp_path / "made" / "lib" / f"python{HERE}" / "site-packages"
    (site / "own").mkdir(parents=True)
    (site / "own" / "__init__.py").write_text("PLACE = __file__\n")
    (tmp_path / "made" / "bin").mkdir()
    (tmp_path / "made" / "bin" / "activate").write_text(activate_script(HERE))
    moved = (tmp_path / "made").rename(tmp_path / "elsewhere")
    for _ in range(2):  # an instance after the other
        said = activated(moved, "import own, sys; print(own.PLACE, sys.prefix)", python=Path(sys._base_executable))  # type: ignore[attr-defined]
        assert said.stdout.split() == [str(moved / site.relative_to(tmp_path / "made") / "own/__init__.py"), str(moved)]
        assert not said.stderr


def test_another_python_than_the_environments_is_said(tmp_path: Path) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "activate").write_text(activate_script("3.4"))
    said = activated(tmp_path / "env", "print('goes on')", python=Path(sys.executable))
    assert said.stdout == "goes on\n"
    assert "it is for Python 3.4, but " in said.stderr
    assert f"Python {HERE}." in said.stderr


def activated(environment: Path, code: str, *, python: Path) -> subprocess.CompletedProcess[str]:
    """Run code as the backend runs its stub: bash sources ``activate``, python3 is looked for on PATH."""
    programs = environment.parent / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "python3").unlink(missing_ok=True)
    (programs / "python3").symlink_to(python)
    command = 'source "$1/bin/activate" && exec python3 -c "$2"'
    return subprocess.run(
        ["bash", "-c", command, "bash", str(environment), code],
        env={"PATH": f"{programs}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize("line", ["numpy", "numpy==1.26.999"])
def test_a_package_that_is_not_pinned_with_a_hash_is_refused_by_name(folder: Path, tmp_path: Path, line: str) -> None:
    (folder / "requirements.txt").write_text(f"{line}\n")
    with pytest.raises(WorkFailedError, match="numpy"):
        make(folder, tmp_path / "env.tar.gz")


def test_a_wheel_with_another_hash_stops_the_build_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "numpy", "1.26.999", script=True)
    with pytest.raises(WorkFailedError, match="numpy"):
        make(folder, tmp_path / "out" / "env.tar.gz")
    assert not list((tmp_path / "out").iterdir())


def test_a_python_without_wheels_stops_the_build_and_names_the_package(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkFailedError, match="native"):
        make(folder, tmp_path / "env.tar.gz", python="3.11")


def test_an_environment_without_numpy_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "requirements.txt").write_text(make_wheel(tmp_path / "wheels", "speaking", "2.0"))
    with pytest.raises(InputError, match="numpy"):
        make(model, tmp_path / "env.tar.gz")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The Pythons for which an environment was really made; each is a small file."""
    pythons: list[str] = []

    def make(_requirements: Path, *, python: str, target: Path, report: object, without: object) -> PackedEnvironment:
        del report, without
        pythons.append(python)
        target.parent.mkdir(exist_ok=True)
        return make_environment_file(target, python)

    monkeypatch.setattr(execution_environment, "make_execution_environment", make)
    return pythons


def kept(root: Path, python: str = "3.10") -> PackedEnvironment:
    """The environment of the folder ``t5`` in ``root``."""
    return kept_environment(root / "t5", PART, python=python, work=root / "exports", report=lambda _text: None)


def test_it_is_made_once_for_each_python_and_requirements_file(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "t5").mkdir()
    (tmp_path / "t5/requirements.txt").write_text("numpy==1.26.4\n")
    first = kept(tmp_path)
    assert first.path.name.startswith("t5.python-3.10.")
    assert kept(tmp_path) == first
    kept(tmp_path, "3.12")
    assert made == ["3.10", "3.12"]
    (tmp_path / "t5/requirements.txt").write_text("numpy==1.26.3\n")
    assert kept(tmp_path).path != first.path
    assert made == ["3.10", "3.12", "3.10"]


LOCAL = environment_version(LOCAL_ENVIRONMENT) or ""


def local(model: Path, monkeypatch: pytest.MonkeyPatch, *, torch_has: Collection[str] = ()) -> LocalEnvironment:
    """What the local Triton gets of a model folder; ``.envs/torch`` is there and has some packages."""
    monkeypatch.setattr(execution_environment, "_packages_of_torch", lambda: set(torch_has))
    monkeypatch.setattr(execution_environment, "require_environment", lambda _name: None)
    return local_environment(model, PART, work=model.parent / "exports", report=lambda _text: None)


@pytest.fixture
def with_torch(tmp_path: Path) -> Path:
    """A model folder whose lock file has PyTorch for CUDA, which no wheel here is, and a package of its own."""
    wheels, unavailable = tmp_path / "wheels", f"--hash=sha256:{64 * '0'}"
    lines = [
        make_wheel(wheels, "numpy", "1.26.999"),
        make_wheel(wheels, "speaking", "2.0"),
        *(f"{name} {unavailable}" for name in ("torch==2.7.1", "nvidia-nccl-cu12==2.26", "triton==3.3")),
        f"old==1 ; python_full_version < '3.11' {unavailable}",
        f"windows==1 ; sys_platform == 'win32' {unavailable}",
    ]
    (tmp_path / "model").mkdir()
    (tmp_path / "model/requirements.txt").write_text("\n".join(line.replace(" --", " \\\n    --") for line in lines))
    return tmp_path / "model"


def test_where_the_environment_of_pytorch_has_all_that_a_lock_file_names_it_stands_in(
    with_torch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert local(with_torch, monkeypatch, torch_has={"torch", "numpy", "speaking"}) == LocalEnvironment()


def test_else_the_other_packages_are_packed_for_the_local_python_and_find_that_pytorch(
    with_torch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = local(with_torch, monkeypatch, torch_has={"torch", "numpy"})
    assert found.packed is not None
    assert (found.packed.python, found.packed.packages) == (LOCAL, {"numpy": "1.26.999", "speaking": "2.0"})
    site = unpacked(found.packed, tmp_path / "unpacked") / f"lib/python{LOCAL}/site-packages"
    assert TORCH_SITE in (site / "tritonstack-torch.pth").read_text()


def test_a_package_compiled_for_the_locked_pytorch_is_named_and_the_environment_kept(
    with_torch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = make_wheel(tmp_path / "wheels", "torchvision", "0.22", library=b"\x7fELF\0libc10.so\0libtorch_cpu.so\0")
    with (with_torch / "requirements.txt").open("a") as file:
        file.write(f"\n{line}\n")
    for _ in range(2):  # made, then taken as it was made
        found = local(with_torch, monkeypatch, torch_has={"torch", "numpy"})
        assert found.packed is None
        assert (found.lacking or "").startswith("torchvision: compiled for the lock file's build of PyTorch")


def test_a_package_without_a_wheel_for_the_local_python_is_said_and_stops_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = local(folder, monkeypatch)  # its native wheels are for 3.10 and 3.12
    if LOCAL == "3.12":
        assert found.packed is not None
        return
    assert found.packed is None
    assert f"no environment for the local Triton's {LOCAL}" in (found.lacking or "")
    assert "native" in (found.lacking or "")


def test_a_wheel_with_another_hash_is_a_failure_and_no_reason_to_skip_the_proof(
    with_torch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(tmp_path / "wheels", "speaking", "2.0", script=True)
    with pytest.raises(WorkFailedError, match="speaking"):
        local(with_torch, monkeypatch, torch_has={"torch", "numpy"})


def test_packages_by_names_of_pytorchs_parts_are_packed_where_no_pytorch_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [make_wheel(tmp_path / "wheels", name, "1.0") for name in ("numpy", "triton")]
    (tmp_path / "model").mkdir()
    (tmp_path / "model/requirements.txt").write_text("\n".join(lines))
    found = local(tmp_path / "model", monkeypatch)
    assert found.packed is not None
    assert found.packed.packages == {"numpy": "1.0", "triton": "1.0"}
