"""Making the environments: what is refused, what is made anew, what is left alone."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from aws_cdk.cloud_assembly_schema import MetadataEntry

SCRIPT = Path(__file__).parents[2] / "scripts" / "setup.py"


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, over a project in a temporary folder."""
    spec = importlib.util.spec_from_file_location("setup_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    requirements = tmp_path / "requirements"
    requirements.mkdir()
    for name in (*module.VIRTUAL, *module.PROGRAMS):
        (requirements / f"{name}.txt").write_text(f"{name}==1\n")
    (tmp_path / "package-lock.json").write_text("{}")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "ENVS", tmp_path / ".envs")
    monkeypatch.setattr(module, "REQUIREMENTS", requirements)
    monkeypatch.setattr(module, "check_machine", lambda _names: None)
    return module


@pytest.fixture
def made(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is made; nothing is installed."""
    names: list[str] = []

    def make(name: str, folder: Path) -> None:
        assert not folder.exists()
        folder.mkdir(parents=True)
        names.append(name)

    monkeypatch.setattr(setup, "make_virtual", make)
    monkeypatch.setattr(setup, "make_program", make)
    monkeypatch.setattr(setup, "make_node", make)
    monkeypatch.setattr(setup, "server_python", setup.own_python)
    return names


def test_each_named_environment_is_made_once(setup: ModuleType, made: list[str]) -> None:
    names = ["main", "triton", "perf-analyzer", "backends", "node"]
    assert setup.main(names) == 0
    assert made == names
    assert setup.main(names) == 0
    assert made == names


def test_a_changed_lock_file_makes_its_environment_anew_and_no_other(setup: ModuleType, made: list[str]) -> None:
    setup.main(["main", "emulator"])
    (setup.REQUIREMENTS / "emulator.txt").write_text("emulator==2\n")
    setup.main(["main", "emulator"])
    assert made == ["main", "emulator", "emulator"]


def test_another_interpreter_or_another_folder_makes_it_anew(
    setup: ModuleType, made: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lock = setup.REQUIREMENTS / "main.txt"
    before = setup.fingerprint(lock, "3.11.2")
    assert setup.fingerprint(lock, "3.12.1") != before
    monkeypatch.setattr(setup, "ROOT", tmp_path / "moved")
    assert setup.fingerprint(lock, "3.11.2") != before


def test_what_an_interrupted_run_left_half_made_is_made_anew(
    setup: ModuleType, made: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = setup.make_virtual

    def interrupted(_name: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(setup, "make_virtual", interrupted)
    assert setup.main(["main"]) == 130
    assert "interrupted" in capsys.readouterr().err
    monkeypatch.setattr(setup, "make_virtual", whole)
    assert setup.main(["main"]) == 0
    assert not (setup.ENVS / "main" / "half").exists()


@pytest.mark.parametrize("names", [["nothing"], ["main", "nothing", "more"], [], ["lock", "main"]])
def test_a_wrong_name_is_refused_before_anything_is_made(
    setup: ModuleType, made: list[str], names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup.main(names) == 2
    assert "there are main, emulator" in capsys.readouterr().err
    assert made == []


def test_every_wrong_name_is_named(setup: ModuleType, made: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    setup.main(["one", "main", "two"])
    assert "'one' or 'two'" in capsys.readouterr().err


def test_a_program_that_fails_is_named_with_its_exit_code(
    setup: ModuleType, made: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_name: str, _folder: Path) -> None:
        subprocess.run([sys.executable, "-c", "raise SystemExit(3)"], check=True)

    monkeypatch.setattr(setup, "make_node", fail)
    assert setup.main(["node"]) == 1
    assert "ended with 3" in capsys.readouterr().err
    assert not (setup.ROOT / "node_modules" / setup.STAMP).exists()


def test_a_full_disk_is_a_message(
    setup: ModuleType, made: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_name: str, folder: Path) -> None:
        raise OSError(28, "No space left on device", str(folder))

    monkeypatch.setattr(setup, "make_program", fail)
    assert setup.main(["triton"]) == 1
    assert capsys.readouterr().err.strip() == f"setup: {setup.ENVS / 'triton'}: No space left on device"


def test_the_program_runs_the_project_from_where_it_lies(setup: ModuleType, tmp_path: Path) -> None:
    """Also where the folder's path has a space: a `#!` line cannot hold one."""
    folder = tmp_path / "a folder" / "main"
    (folder / "bin").mkdir(parents=True)
    site = folder / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (folder / "bin" / "python").write_text(
        f"#!/bin/sh\nexec {sys.executable} -c \"print('ran', *__import__('sys').argv[1:])\" \"$@\"\n"
    )
    (folder / "bin" / "python").chmod(0o755)
    setup.add_project(folder)
    program = folder / "bin" / "tritonstack"
    result = subprocess.run([str(program), "up", "two words"], capture_output=True, text=True, check=True)
    assert result.stdout == f"ran {program} up two words\n"
    assert (site / "tritonstack-here.pth").read_text() == f"{setup.ROOT}\n"
    compile(program.read_text(), str(program), "exec")


def test_the_file_that_two_packages_bring_is_the_one_that_the_cdk_was_made_with() -> None:
    """Of aws-cdk-cloud-assembly-schema's, the kernel knows no type: reading an annotation's metadata would fail."""
    found = vars(MetadataEntry)["__jsii_type__"]
    assert found == "aws-cdk-lib.cloud_assembly_schema.MetadataEntry"


def test_the_cdk_is_written_after_what_overwrites_it_and_nothing_else_is_written_twice(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(setup, "uv_pip", lambda *arguments: told.append(arguments))
    monkeypatch.setattr(setup, "server_python", setup.own_python)
    monkeypatch.setattr(setup, "add_project", lambda _folder: None)
    monkeypatch.setattr(setup.subprocess, "run", lambda *_arguments, **_options: None)
    setup.make_virtual("main", tmp_path / "main")
    first, second = told
    assert "--reinstall-package" not in first
    assert second[second.index("--reinstall-package") + 1] == "aws-cdk-lib"
    assert set(first) < set(second)
    setup.make_virtual("emulator", tmp_path / "emulator")
    assert len(told) == 3


def test_folders_of_wheels_that_pip_is_told_of_are_told_to_uv(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/one /two")
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    assert setup.uv_variables()["UV_FIND_LINKS"] == "/one,/two"


def test_pytorch_is_the_cpu_build_of_a_folder_of_wheels_or_of_its_own_index(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", f"/nowhere {tmp_path}")
    assert setup.torch_build() == ["--torch-backend", "cpu"]
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").touch()
    assert setup.torch_build() == []
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert setup.torch_build() == ["--torch-backend", "cpu"]


def test_an_interpreter_that_does_not_answer_is_none(setup: ModuleType, tmp_path: Path) -> None:
    placeholder = tmp_path / "python3.12"
    placeholder.write_text("#!/bin/sh\nexit 127\n")
    placeholder.chmod(0o755)
    assert setup.describe(str(placeholder)) is None
    own = setup.describe(sys.executable)
    assert own is not None
    assert own.version == setup.OWN_VERSION


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (("aarch64", "linux", ("glibc", "2.39")), "Linux on x86-64 needed"),
        (("x86_64", "darwin", ("", "")), "Linux on x86-64 needed"),
        (("x86_64", "linux", ("glibc", "2.31")), "glibc 2.31 found"),
        (("x86_64", "linux", ("", "")), "another C library found"),
        (("x86_64", "linux", ("glibc", "2.35")), None),
    ],
)
def test_a_machine_for_which_there_is_no_server_is_told_so(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, found: tuple[str, str, tuple[str, str]], words: str | None
) -> None:
    machine, system, library = found
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("platform.libc_ver", lambda: library)
    monkeypatch.setattr("sys.platform", system)
    problems = setup.server_problems()
    assert [words in problem for problem in problems] == ([] if words is None else [True])


def test_node_is_asked_for_where_it_is_missing_or_old(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not both are on PATH" in setup.node_problems()[0]
    for name in ("node", "npm"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho v18.19.0\n")
        program.chmod(0o755)
    assert "Node v18.19.0 found" in setup.node_problems()[0]
    (tmp_path / "node").write_text("#!/bin/sh\necho v22.1.0\n")
    assert setup.node_problems() == []
