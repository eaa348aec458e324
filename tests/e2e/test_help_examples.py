"""Examples of help that need something deployed: each as it stands, on one small project and a local AWS.

The shell is as after ``eval "$(tritonstack local env)"``, so that examples of environment ``prod`` reach the local AWS.
"""

from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.test_examples import DEPLOYED, ELSEWHERE, example
from tests.e2e.project import PROGRAM, Project, environment_yaml
from tests.e2e.running import running
from tests.lint.onnx_files import node, write_graph
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]
END_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One example."""

    command: str
    says: str  # a text of its output
    before: tuple[str, ...] = ()  # commands that put in place what it needs
    code: int = 0
    goes_on: bool = False  # until Ctrl-C, which it gets in a terminal, once it has said that


ROWS = (
    Row(command="local deploy", says="deploy local/serving-*"),  # which bootstraps the account
    Row(command="preflight", says="0 will fail"),
    Row(command="invoke", says="probabilities"),
    Row(command="local demo", says="Served by a real Triton"),
    Row(command="capacity bench", says="100"),
    Row(command="local status", says="local-models", goes_on=True),
    Row(command="local dev", says="watching", goes_on=True),
    Row(command="prepare", before=("local deploy -e prod",), says="there already"),
    Row(command="outputs", says="outputs.json"),
    Row(command="verify", says="iris"),
    Row(command="proxy", says="KServe v2 at http://127.0.0.1:8000", goes_on=True),
    Row(command="publish", before=("update iris retrained.onnx", "build iris"), says="1 published"),
    Row(command="releases", before=("local deploy -e prod",), says="iris"),
    Row(command="rollback", says="iris"),
    Row(command="local destroy", says="destroy local (cdk destroy)"),
)
"""In this order, in one project: a row finds what those before it left."""


def test_every_example_that_names_this_test_is_in_its_table() -> None:
    named = {name for name, test in ELSEWHERE.items() if test == DEPLOYED}
    assert named == {row.command for row in ROWS}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, LocalAws]]:
    """A project with the model ``iris`` on endpoint ``models`` of environments ``local`` and ``prod``, and its AWS."""
    project = Project(tmp_path_factory.mktemp("reader"))
    write_model(project.root / "iris.onnx", "Softmax")
    write_model(project.root / "retrained.onnx", "Sigmoid")
    project.write("environments/local.yaml", environment_yaml(name="local", endpoints=[]).rstrip() + " []\n")
    project.run("add", "iris.onnx")  # onto endpoint models, which this makes
    local = (project.root / "environments/local.yaml").read_text()
    project.write("environments/prod.yaml", local.replace("environment: local", "environment: prod"))
    with running(project) as aws:
        yield project, aws


def write_model(path: Path, operator: str) -> None:
    """A model of the tensors that the example of ``invoke`` sends."""
    tensors = [{"name": name, "dtype": "FP32", "shape": ["N", 4]} for name in ("X", "probabilities")]
    nodes = [node(operator, ["X"], ["probabilities"])]
    write_graph(path, {"inputs": tensors[:1], "outputs": tensors[1:], "nodes": nodes})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command)
def test_an_example_works_on_a_deployed_project(shell: tuple[Project, LocalAws], row: Row) -> None:
    project, aws = shell
    for line in row.before:
        project.run(*shlex.split(line))
    words = shlex.split(example(row.command))
    if "--port" in words and is_taken(int(words[words.index("--port") + 1])):
        pytest.skip(f"the port of tritonstack {example(row.command)} is taken on this machine")
    command = [str(PROGRAM), *words]
    if row.goes_on:
        printed = until_interrupted(project, command, aws.variables(), says=row.says, code=row.code)
    else:
        done = project.execute(command, variables=aws.variables(), expect=row.code, timeout=900)
        printed = f"{done.stdout}{done.stderr}"
    print(f"$ tritonstack {example(row.command)}\n{printed}")
    assert row.says in printed
    assert "Traceback" not in printed


def is_taken(port: int) -> bool:
    """Whether another process listens at a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until_interrupted(project: Project, command: list[str], variables: dict[str, str], *, says: str, code: int) -> str:
    """What a command prints in a terminal, which gets Ctrl-C once it has printed ``says``."""
    terminal, inside = pty.openpty()
    environment = {**project.variables, **variables, "TERM": "xterm"}
    with subprocess.Popen(
        command, cwd=project.root, env=environment, stdin=inside, stdout=inside, stderr=inside, start_new_session=True
    ) as process:
        os.close(inside)
        printed, interrupted, deadline = b"", False, time.monotonic() + 300
        try:
            while time.monotonic() < deadline:
                if not interrupted and says.encode() in printed:
                    process.send_signal(signal.SIGINT)
                    interrupted, deadline = True, time.monotonic() + END_SECONDS
                if select.select([terminal], [], [], 0.2)[0]:
                    try:
                        printed += os.read(terminal, 1 << 16)
                    except OSError:  # nobody has the other end any more
                        break
            found = process.wait(timeout=1)
        finally:
            process.kill()
            os.close(terminal)
    text = printed.decode(errors="replace")
    assert found == code, f"exit code {found}, expected {code}\n{text}"
    return text
