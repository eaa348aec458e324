"""Each command's help ends with one example, which is run: here, or by the test that a table names."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import Result

from scripts.documentation.commands_page import command_of
from tests import command_line
from tests.docs.pages import code_blocks
from tests.docs.shell_commands import problem
from tests.test_cli import EVERY
from tests.tritonstack_capacity.sizing.test_capacity import PUBLISHED
from tritonstack.cli import project as project_commands
from tritonstack.cli.project import write_project
from tritonstack.paths import REPOSITORY

BEGINS = "example: tritonstack "
MODELS = REPOSITORY / "tests" / "adding" / "fixtures"
RUN = (
    *("init", "docs", "add", "update", "lint", "explain", "build", "pack", "schema", "clean", "builders", "snapshots"),
    *("review", "pipeline bootstrap", "capacity size", "capacity simulate", "capacity prices list", "local down"),
)
"""Commands whose examples run here, in this order, in one project: a reader's."""
STARTED = "tests/tritonstack_local/test_commands.py::test_the_examples_of_help_start_a_local_aws_and_print_its_log"
ROLES = "tests/tritonstack_local/emulator/test_iam_commands.py::test_the_examples_of_help_act_as_a_role"
DEPLOYED = "tests/e2e/test_help_examples.py::test_an_example_works_on_a_deployed_project"
ELSEWHERE = {
    "setup": "tests/cli/test_examples.py::test_the_example_of_setup_makes_the_environments_that_it_names",
    "prune": "tests/cli/test_session.py::test_the_example_of_prune_lists_what_it_would_delete",
    "remove": "tests/cli/test_remove.py::test_the_example_of_help_removes_a_model",
    "leftovers": "tests/cli/test_leftovers.py::test_the_example_of_help_deletes_after_its_question",
    "dashboard": "tests/cli/test_dashboard.py::test_the_example_of_help_writes_a_page",
    "capacity prices update": "tests/tritonstack_capacity/test_prices.py::test_the_example_of_help_writes_prices",
    "local up": STARTED,
    "local logs": STARTED,
    "local env": ROLES,
    "local iam report": ROLES,
    **dict.fromkeys(
        (
            *("preflight", "publish", "prepare", "outputs", "invoke", "proxy", "verify", "releases", "rollback"),
            *("capacity bench", "local status", "local deploy", "local dev", "local destroy", "local demo"),
        ),
        DEPLOYED,
    ),
}
"""Command → the test that runs its example over a fake of AWS, on parts of the local AWS, or on a deployed project."""
GROUPS = {name for name, command in EVERY.items() if isinstance(command, click.Group)}
PIPELINE = """\
name: line
account: "123456789012"
region: us-east-1
source:
  connection: arn:aws:codeconnections:us-east-1:123456789012:connection/11111111-2222-3333-4444-555555555555
  repository: a/b
stages: [{environment: local}]
"""


def example(name: str) -> str:
    """The command line at the end of a command's help, without the program."""
    context = click.Context(command_of(name), info_name=name, terminal_width=80)
    last = command_of(name).get_help(context).rstrip().splitlines()[-1].strip()
    assert last.startswith(BEGINS), f"{name} --help ends with «{last}», not with one line «{BEGINS}…»: set `epilog`"
    return last.removeprefix(BEGINS)


def run_example(name: str, *, typed: str = "") -> Result:
    """The example of a command in the test's own process, as it stands."""
    return command_line.run(*shlex.split(example(name)), typed=typed)


@pytest.mark.parametrize("name", EVERY)
def test_the_help_of_each_command_ends_with_an_example_of_it(name: str) -> None:
    words = shlex.split(example(name))
    assert words[: len(name.split())] == name.split()
    assert problem(("tritonstack", *words)) is None


@pytest.mark.parametrize("name", EVERY)
def test_each_example_is_run_by_one_test(name: str) -> None:
    if name in GROUPS:
        assert any(example(name).startswith(f"{other} ") or example(name) == other for other in EVERY if other != name)
        return
    assert (name in RUN) != (name in ELSEWHERE), (
        f"add {name} to RUN, or to ELSEWHERE with the test that runs its example"
    )
    if name in ELSEWHERE:
        file, _, function = ELSEWHERE[name].partition("::")
        assert f"def {function}(" in (REPOSITORY / file).read_text()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the files that the examples name, but for those that an example before them writes."""
    root = tmp_path_factory.mktemp("reader") / "my-project"
    write_project(root)
    shutil.copy(MODELS / "classifier.onnx", root / "iris.onnx")
    for name in ("model.onnx", "retrained.onnx"):
        shutil.copy(MODELS / "classifier.onnx", root / name)
    local = (root / "environments" / "local.yaml").read_text()
    for name in ("dev", "prod"):
        (root / "environments" / f"{name}.yaml").write_text(local.replace("environment: local", f"environment: {name}"))
    shutil.copy(PUBLISHED, root / "bench.csv")
    [scenario] = [block for block in code_blocks("docs/simulate.md") if block.file == "scenario.yaml"]
    (root / "scenario.yaml").write_text(scenario.text)
    tritonstack(root, ["add", "iris.onnx"])
    return root


def tritonstack(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """The command line as a reader runs it: nothing of the caller's AWS."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TRITONSTACK_"))}
    variables = {**kept, "PYTHONPATH": str(REPOSITORY), "CDK_VALIDATION": "false", "COLUMNS": "120"}
    variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [sys.executable, "-m", "tritonstack", *words]
    return subprocess.run(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", RUN)
def test_an_example_works_as_it_stands(name: str, project: Path) -> None:
    if name == "review":
        git = ["git", "-c", "user.name=reader", "-c", "user.email=reader@example.com"]
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "the project"]):
            subprocess.run([*git, *words], cwd=project, check=True, capture_output=True)
    if name == "pipeline bootstrap":  # a pipeline's synthesis, which `snapshots` would do, is for a clone
        (project / "pipeline.yaml").write_text(PIPELINE)
    ended = tritonstack(project, shlex.split(example(name)))
    assert ended.returncode == 0, f"tritonstack {example(name)}\n{ended.stdout}{ended.stderr}"


def test_the_example_of_setup_makes_the_environments_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installer is replaced: what it does takes gigabytes, and tests/scripts run it."""
    (tmp_path / "setup.py").write_text("import sys; print(sys.argv[1:], file=open(sys.argv[0] + '.log', 'w'))")
    monkeypatch.setattr(project_commands, "repository_path", lambda _name: tmp_path / "setup.py")
    assert run_example("setup").return_value == 0
    assert (tmp_path / "setup.py.log").read_text() == "['torch', 'node']\n"
