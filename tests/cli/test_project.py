"""A project of one's own: its files, what is refused, what its app synthesises; and how its environments are made."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tests.docs.shell_commands import commands, problem
from tests.stacks.app_process import files_under
from tritonstack import VERSION, extensions
from tritonstack.cli import project
from tritonstack.cli.docs import find_page
from tritonstack.cli.root import root
from tritonstack.cli.schema import schema_text
from tritonstack.errors import InputError
from tritonstack.paths import repository_path


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A new project."""
    result = CliRunner().invoke(root, ["init", str(tmp_path / "my-serving")], standalone_mode=False)
    assert (result.exception, result.exit_code) == (None, 0)
    return tmp_path / "my-serving"


def test_a_project_has_few_files_and_those_that_the_repository_has_too_are_derived_from_them(made: Path) -> None:
    assert len(files_under(made)) < 17
    assert len((made / "app.py").read_text().splitlines()) < 12
    ours = json.loads(repository_path("cdk.json").read_text())
    assert json.loads((made / "cdk.json").read_text()) == {**ours, "app": "python3 app.py"}
    assert json.loads((made / "package.json").read_text())["devDependencies"] == {"aws-cdk": "2.1148.1"}
    own, *pins = (made / "requirements.txt").read_text().split()
    assert own == f"./wheels/tritonstack-{VERSION}-py3-none-any.whl[cdk,local]"
    assert len(pins) == 4
    assert all("==" in each for each in pins)
    assert (made / "README.md").read_text().startswith("# my-serving\n")
    assert len((made / "README.md").read_text().splitlines()) < 60
    assert {"pull_request"} == set(yaml.safe_load((made / ".github/workflows/pull-request.yml").read_text())[True])


URL = "https://packages.example.com/tritonstack-9.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, f"tritonstack[cdk,local]=={VERSION}"),
        (URL, f"tritonstack[cdk,local] @ {URL}"),
        ("file://{folder}/tritonstack-9.0-py3-none-any.whl", "./wheels/tritonstack-9.0-py3-none-any.whl[cdk,local]"),
    ],
    ids=["an index", "a URL", "a file"],
)
def test_a_project_installs_from_where_the_command_came_from_and_a_file_comes_along(
    origin: str | None, requirement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "tritonstack-9.0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    monkeypatch.setattr(project, "CHECKOUT", None)
    for module in (project, extensions):
        monkeypatch.setattr(module, "installed_from", lambda: origin and origin.format(folder=tmp_path))
    project.write_project(tmp_path / "new")
    assert (tmp_path / "new" / "requirements.txt").read_text().splitlines()[0] == requirement
    copied = tmp_path / "new" / "wheels" / wheel.name
    assert copied.is_file() is requirement.startswith("./")
    assert extensions.install_command("local").startswith("pip install ")


def test_a_clone_s_command_says_how_the_wheel_comes_into_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "CHECKOUT", tmp_path / "clone")
    said = CliRunner().invoke(root, ["init", str(tmp_path / "new")]).stdout
    assert f"make -C {tmp_path}/clone wheel && mkdir -p {tmp_path}/new/wheels && cp {tmp_path}/clone/dist/" in said
    (tmp_path / "clone" / "dist").mkdir(parents=True)
    (tmp_path / "clone" / "dist" / f"tritonstack-{VERSION}-py3-none-any.whl").touch()
    said = CliRunner().invoke(root, ["init", str(tmp_path / "second")]).stdout
    assert "make -C" not in said
    assert [each.name for each in (tmp_path / "second" / "wheels").iterdir()] == [
        f"tritonstack-{VERSION}-py3-none-any.whl"
    ]


def test_first_lines_for_editors_name_schemas_that_the_project_has(made: Path) -> None:
    named = {
        file: line.partition("$schema=")[2]
        for file in made.rglob("*.yaml")
        for line in file.read_text().splitlines()
        if line.startswith("# yaml-language-server:")
    }
    assert [file.name for file in named] == ["local.yaml"]
    assert [each for file, each in named.items() if not (file.parent / each).is_file()] == []
    for name in project.EDITED:
        assert (made / "schemas" / f"{name}.schema.json").read_text() == schema_text(name)


def test_its_readme_names_pages_that_there_are_and_links_nothing_else(made: Path) -> None:
    text = (made / "README.md").read_text()
    named = re.findall(r"`tritonstack docs ([\w/-]+)`", text)
    assert len(named) == 3
    assert [find_page(each).name for each in named] == named
    assert "](" not in text


def test_its_readme_and_its_workflow_name_commands_and_options_that_there_are(made: Path) -> None:
    readme = re.findall(r"^\$ (.*)$", (made / "README.md").read_text(), re.MULTILINE)
    workflow = yaml.safe_load((made / ".github/workflows/pull-request.yml").read_text())
    steps = [each.get("run", "") for each in workflow["jobs"]["check"]["steps"]]
    found = [each for each in commands("\n".join([*readme, *steps])) if each[0] in ("cdk", "tritonstack")]
    assert {"add", "local", "review", "preflight", "snapshots"} <= {each[1] for each in found}
    assert [said for said in map(problem, found) if said] == []


def test_a_new_project_synthesises_the_bucket_of_its_environment_and_nothing_that_serves(made: Path) -> None:
    out = made / "cdk.out"
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))},
        "CDK_OUTDIR": str(out), "CDK_VALIDATION": "false", "CDK_CONTEXT_JSON": "{}",
    }  # fmt: skip
    command = [sys.executable, "app.py"]
    ran = subprocess.run(command, cwd=made, env=variables, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    [template] = [name for name in files_under(out) if name.endswith(".template.json")]
    assert template.startswith("assembly-local/localartifacts")


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ({"notes.txt": "", "src/a.py": ""}, "in it already: notes.txt, src"),
        ({".gitignore": "", ".github/CODEOWNERS": ""}, "in it already: .github, .gitignore"),
        (None, "a file"),
    ],
)
def test_a_folder_that_is_not_empty_is_refused_with_all_that_is_in_it(
    there: dict[str, str] | None, found: str, tmp_path: Path
) -> None:
    folder = tmp_path / "my-serving"
    if there is None:
        folder.touch()
        folder /= "inside"
    for name, text in (there or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    before = files_under(tmp_path)
    with pytest.raises(InputError) as refused:
        project.write_project(folder)
    assert [each.found for each in refused.value.problems] == [found]
    assert files_under(tmp_path) == before


def test_a_repository_without_a_file_and_a_virtual_environment_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".venv").mkdir()
    assert "app.py" in project.write_project(tmp_path)


def test_what_the_app_needs_and_is_not_installed_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "_installed", lambda name: None if name == "cdk-nag" else "1.0")
    with pytest.raises(InputError, match=r"(?s)not installed: cdk-nag.*pip install 'tritonstack\[cdk,local\]'"):
        project.write_project(tmp_path / "new")
    assert not (tmp_path / "new").exists()


SCRIPT = "import pathlib, sys\npathlib.Path(sys.argv[2], 'asked').write_text(' '.join(sys.argv[3:]))\n"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project over an installed wheel, whose set-up script writes down what it is asked for."""
    (tmp_path / "setup.py").write_text(SCRIPT)
    monkeypatch.setattr(project, "CHECKOUT", None)
    monkeypatch.setattr(project, "repository_path", lambda _name: tmp_path / "setup.py")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "asked"),
    [((), "emulator triton backends exporters node"), (("torch", "dali"), "torch dali")],
)
def test_an_installed_wheel_makes_environments_in_the_project_and_is_itself_the_main_one(
    names: tuple[str, ...], asked: str, wheel: Path
) -> None:
    assert project.make_environments(names, root=wheel) == 0
    assert (wheel / "asked").read_text() == asked
    assert (wheel / ".envs" / "main").readlink() == Path(sys.prefix)


def test_a_set_up_that_failed_ends_with_its_code_and_the_next_one_can_be_run(wheel: Path) -> None:
    (wheel / "setup.py").write_text("raise SystemExit(2)")
    assert project.make_environments((), root=wheel) == 2
    assert not (wheel / ".envs").exists()


def test_unknown_environments_are_refused_all_at_once(wheel: Path) -> None:
    with pytest.raises(InputError) as refused:
        project.make_environments(("torhc", "node", "main"), root=wheel)
    assert [each.found for each in refused.value.problems] == ["torhc", "main"]
    assert "torch" in refused.value.problems[0].allowed
