"""Models of one's own, of each kind that people bring: from a file to a response by commands of the wheel alone.

Prints a table of the kinds; TRITONSTACK_OWN_MODELS names a page that is written with it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.e2e.guard import guarded
from tests.e2e.project import REPOSITORY, Project
from tests.environments import needs
from tests.examples.installing import Installed, install
from tritonstack.paths import environment_python

HERE = Path(__file__).parent
PAGE_VARIABLE = "TRITONSTACK_OWN_MODELS"
LINKED = (".envs/backends", ".envs/emulator", ".envs/exporters", ".envs/torch", ".envs/triton", "node_modules")
"""What `tritonstack setup` would install once more, 2 GB: links to the checkout's stand for it."""
FIRST, SECOND = 36, 37
"""Seeds of the models' two versions."""
REPLACED = ("lightgbm-onnx", "cnn-onnx", "python-packages")
REMOVED = "recurrent"
TOLERANCE = 1e-4
"""Of each value, for FP32 by another library; by its magnitude where that is over 1."""
pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(2400), needs("torch", "trainers")]


@dataclass
class Kind:
    """One row of ``kinds.yaml``, and what became of it."""

    name: str
    what: str
    add: list[str]
    model: str
    refused: bool = False
    typed: list[str] = field(default_factory=list)  # commands, without those that all kinds share
    by_hand: str = ""  # what git finds changed before a command, which no command had changed
    seconds: float = 0.0
    failure: str = "not tried"

    @property
    def row(self) -> tuple[str, ...]:
        """Cells of the table."""
        commands = "<br>".join(f"`{each}`" for each in self.typed)
        lines = len(self.by_hand.splitlines())
        return (self.what, commands, str(lines), f"{self.seconds:.0f} s", "right" if not self.failure else self.failure)


@dataclass
class User:
    """A shell in the folder of a project, with the wheel's environment active; what it typed is timed."""

    installed: Installed
    folder: Path
    seconds: float = 0.0

    def types(self, line: str, *, expect: int = 0) -> str:
        """What one command line prints on either stream."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TRITONSTACK_"))}
        path = [self.installed.folder / "bin", REPOSITORY / "node_modules/.bin"]
        variables = {
            **{name: value for name, value in kept.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
            "PATH": os.pathsep.join([*map(str, path), kept["PATH"]]),
            "HF_HUB_OFFLINE": "1",
            "CDK_VALIDATION": "false",
            "TRITONSTACK_PORT": "0",
            "TRITONSTACK_RUNTIME_PORT": "0",
            "COLUMNS": "120",
            **{f"GIT_{who}_NAME": "reader" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "reader@example.com" for who in ("AUTHOR", "COMMITTER")},
        }
        started = time.monotonic()
        ended = subprocess.run(
            shlex.split(line), cwd=self.folder, env=variables, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900, check=False,
        )  # fmt: skip
        self.seconds += time.monotonic() - started
        assert ended.returncode == expect, f"$ {line}\nexit code {ended.returncode}\n{ended.stdout}"
        print(f"$ {line}\n{ended.stdout}")
        return ended.stdout

    def commits(self, message: str) -> None:
        """Commit what the command before this has changed: what git finds changed later was changed by hand."""
        self.types("git add -A")
        self.types(f"git commit -q --allow-empty -m {shlex.quote(message)}")


def kinds() -> dict[str, Kind]:
    """The rows of ``kinds.yaml``."""
    return {name: Kind(name=name, **row) for name, row in yaml.safe_load((HERE / "kinds.yaml").read_text()).items()}


def make(folder: Path, seed: int, *names: str) -> Path:
    """Models of these kinds, or all, in ``folder``."""
    python = environment_python("trainers")
    command = [str(python), str(HERE / "make_models.py"), str(folder), str(seed), *names]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        command, env={**variables, "HF_HUB_OFFLINE": "1"}, text=True, stdin=subprocess.DEVNULL, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    return folder


def compare(response: dict[str, Any], known: dict[str, Any]) -> str:
    """Why a response is not what the model's own library computes; an empty text where it is."""
    given = {each["name"]: each for each in response["outputs"]}
    for expected in known["outputs"]:
        name = expected["name"]
        if name not in given:
            return f"no output {name}, but {', '.join(given)}"
        found = given[name]
        if (found["shape"], found["datatype"]) != (expected["shape"], expected["datatype"]):
            return f"{name}: {found['datatype']} {found['shape']}, expected {expected['datatype']} {expected['shape']}"
        if expected["datatype"] == "BYTES":
            if found["data"] != expected["data"]:
                return f"{name}: {found['data']}, expected {expected['data']}"
        elif not np.allclose(found["data"], expected["data"], rtol=TOLERANCE, atol=TOLERANCE):
            return f"{name}: {found['data'][:4]}, expected {expected['data'][:4]}"
    return ""


def ask(user: User, kind: Kind, made: Path) -> str:
    """Invoke a model by the command line. Returns why its response is wrong, an empty text where it is right."""
    known = json.loads((made / f"{kind.name}.json").read_text())
    if "text" in known:
        line = f"tritonstack invoke {kind.model} --text {shlex.quote(known['text'])} --raw --json"
    else:
        request = made / f"{kind.name}-request.json"
        request.write_text(json.dumps({"inputs": known["inputs"]}))
        line = f"tritonstack invoke {kind.model} --input {shlex.quote(str(request))} --raw --json"
    return compare(json.loads(user.types(line)), known)


def add(user: User, kind: Kind, made: Path) -> None:
    """Give a kind's file to `tritonstack add`; where that refuses it, type the line that it prints."""
    folder = made / kind.name
    given = [str(folder / each) if (folder / each).exists() else each for each in kind.add]
    printed = user.types(shlex.join(["tritonstack", "add", *given]), expect=2 if kind.refused else 0)
    kind.typed.append(f"tritonstack add {shlex.join(kind.add)}")
    if not kind.refused:
        return
    (line,) = (each.partition("do:")[2].strip() for each in printed.splitlines() if each.strip().startswith("do:"))
    kind.typed.append(line.replace(f"{folder}/", "").replace(f"{user.folder}/", ""))
    make_environment, install_libraries, *convert_and_add = line.split(" && ")
    assert " -m venv " in make_environment
    assert "/pip install " in install_libraries
    # What pip would install once more, gigabytes, has been installed by `scripts/setup.py trainers`.
    environment = user.folder / shlex.split(make_environment)[-1]
    environment.parent.mkdir(parents=True, exist_ok=True)
    environment.symlink_to(environment_python("trainers").parents[1])
    for command in convert_and_add:
        user.types(command)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """Somebody with the wheel and a project that `tritonstack init` has just made; its local AWS ends with the test."""
    root = tmp_path_factory.mktemp("own-models")
    installed = install(root / "wheel")
    user = User(installed=installed, folder=root)
    user.types("tritonstack init serving --no-setup")
    project = root / "serving"
    (project / ".envs").mkdir()
    for name in (*LINKED, *(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / ".envs").glob("uv-*"))):
        (project / name).symlink_to(REPOSITORY / name)
    (project / ".envs/main").symlink_to(installed.folder)
    user.folder = project
    user.types("git init -q -b main")
    user.commits("tritonstack init")
    with guarded(Project(project)):
        try:
            yield user
        finally:
            user.types("tritonstack local down")


def test_every_kind_goes_from_file_to_response_by_commands_alone(
    user: User, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    made, rows = make(tmp_path, FIRST), kinds()
    for kind in rows.values():
        with subtests.test(kind=kind.name):
            user.seconds, kind.by_hand = 0.0, user.types("git status --porcelain")
            try:
                add(user, kind, made)
            except AssertionError as error:
                kind.failure = f"`add`: {str(error).splitlines()[0]}"
                raise
            finally:
                kind.seconds = user.seconds
                user.commits(f"add {kind.model}")
    user.seconds = 0.0
    user.types("tritonstack local deploy")
    user.types("tritonstack verify")
    deployed = user.seconds
    for kind in rows.values():
        with subtests.test(kind=kind.name, step="response"):
            user.seconds = 0.0
            kind.failure = ask(user, kind, made)
            kind.seconds += user.seconds
            assert not kind.failure
            assert not kind.by_hand
    table(rows, deployed)
    for name in REPLACED:
        with subtests.test(kind=name, step="second version"):
            kind, second = rows[name], make(tmp_path / "second", SECOND, name)
            user.types(shlex.join(["tritonstack", "update", kind.model, str(second / name / kind.add[0])]))
            user.commits(f"second version of {kind.model}")
    user.types(f"tritonstack remove {rows[REMOVED].model} --yes")
    user.types("tritonstack local deploy")
    for name in REPLACED:
        with subtests.test(kind=name, step="response of the second version"):
            assert ask(user, rows[name], tmp_path / "second") == ""
            assert ask(user, rows[name], made) != "", "the first version responds still"
    removed = user.types(f"tritonstack invoke {rows[REMOVED].model} --data '{{}}'", expect=2)
    assert rows[REMOVED].model in removed
    user.types("tritonstack verify")


def table(rows: dict[str, Kind], deployed: float) -> None:
    """Print the table; write the page where the variable names it."""
    head = ("Model", "Commands", "Lines by hand", "Time", "Response")
    cells = (head, ("---",) * len(head), *(each.row for each in rows.values()))
    lines = [f"| {' | '.join(each)} |" for each in cells]
    once = "`tritonstack local deploy`, with the start of the local AWS, and `tritonstack verify`"
    shared = f"{once}: {deployed:.0f} s for all {len(rows)}."
    print("\n".join([*lines, "", shared]))
    if page := os.environ.get(PAGE_VARIABLE):
        text = (HERE / "page.md").read_text()
        Path(page).write_text(text.replace("TABLE", "\n".join(lines)).replace("SHARED", shared))
