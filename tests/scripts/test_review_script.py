"""``scripts/review.sh`` in a small repository, and the workflow that runs it. GitHub's ``gh`` is a stand-in."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.review.projects import make_project, variables
from tests.stacks.app_process import ROOT
from tritonstack.review.views.markdown import MARKER

WORKFLOW = ROOT / ".github" / "workflows" / "review.yml"
SCRIPT = ROOT / "scripts" / "review.sh"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = make_project(tmp_path_factory.mktemp("script") / "project")
    (project / "model_repos").mkdir()
    return project


def script(project: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    given = {**variables(project), "PYTHON": sys.executable, **more}
    del given["TRITONSTACK_PROJECT"]
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments], cwd=project, env=given, capture_output=True, text=True, check=False
    )


def test_it_lints_reviews_and_says_where_the_report_lies(made: Path) -> None:
    """Started in a folder of the project, too."""
    ended = script(made / "model_repos", "--base", "main", "lint", "review")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "== lint" in ended.stdout
    assert "the report lies in" in ended.stdout
    assert sorted(each.name for each in (made / ".local/review").iterdir()) == [
        "review.html",
        "review.json",
        "review.md",
    ]


def test_on_github_actions_a_policy_that_matches_ends_with_1_and_fills_the_summary(made: Path, tmp_path: Path) -> None:
    summary, out = tmp_path / "summary.md", tmp_path / "r"
    given = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    options = ("--fail-on", "removal", "--out", str(out))
    ended = script(made, *options, "review", **given)
    assert ended.returncode == 1, ended.stderr
    assert "review ended with 1" in ended.stdout
    assert "`removal` dev: serving: Queue" in (out / "review.md").read_text()
    assert summary.read_text().startswith(MARKER)


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--base"], ["deploy"]])
def test_wrong_arguments_end_with_2(made: Path, arguments: list[str]) -> None:
    ended = script(made, *arguments)
    assert ended.returncode == 2
    assert "scripts/review.sh" in ended.stderr


def workflow() -> dict[Any, Any]:
    document: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text())
    return document


def steps() -> list[tuple[str, dict[str, Any]]]:
    return [(name, step) for name, job in workflow()["jobs"].items() for step in job["steps"]]


def test_the_workflow_runs_for_pull_requests_with_the_least_permissions() -> None:
    document = workflow()
    # YAML 1.1 reads the key `on` as true.
    assert list(document[True]) == ["pull_request"]
    assert document["permissions"] == {}
    granted = {name: job["permissions"] for name, job in document["jobs"].items()}
    assert granted == {
        "test": {"contents": "read"},
        "review": {"contents": "read"},
        "comment": {"pull-requests": "write"},
    }


def test_every_action_is_pinned_to_a_commit_and_says_its_version() -> None:
    used = re.findall(r"uses: (\S+)(.*)", WORKFLOW.read_text())
    assert len(used) == sum("uses" in step for _, step in steps()) > 3
    for name, comment in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


def test_no_checkout_keeps_a_token_no_pull_request_text_reaches_a_shell_forks_get_no_comment() -> None:
    for _, step in steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        assert "${{" not in step.get("run", "")
    assert [name for name, step in steps() if "token" in str(step.get("env", ""))] == ["comment"]
    assert "secrets." not in WORKFLOW.read_text()
    assert "github.event.pull_request.head.repo.full_name == github.repository" in workflow()["jobs"]["comment"]["if"]


def test_each_command_of_the_workflow_is_there_and_takes_its_arguments(made: Path, tmp_path: Path) -> None:
    runs = {(name, step["run"]) for name, step in steps() if "run" in step}
    texts = "\n".join(run for _, run in runs)
    targets = re.findall(r"^make (\w+)$", texts, flags=re.M)
    assert targets == ["setup"]
    assert re.search(r"^setup:", (ROOT / "Makefile").read_text(), flags=re.M)
    assert "python3 scripts/setup.py main" in texts
    for program in re.findall(r"^(?:scripts|\.ci)/\S+", texts, flags=re.M):
        assert (ROOT / program).stat().st_mode & 0o111, program
    for _, run in runs:
        checked = subprocess.run(["bash", "-n"], input=run, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr
    [review] = [run for name, run in runs if name == "review" and "review.sh" in run]
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    given = {**variables(made), "PYTHON": sys.executable, "BASE": "main", "FAIL_ON": "", "RUN": "https://example.com/1"}
    # bash -e: as GitHub starts it.
    ran = subprocess.run(
        ["bash", "-e", "-c", review], cwd=tmp_path, env=given, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "report" / "review.md").is_file()


@pytest.mark.parametrize(
    ("found", "written"),
    [
        ("", "--method POST repos/owner/name/issues/7/comments"),
        ("41\n42\n", "--method PATCH repos/owner/name/issues/comments/41"),
    ],
)
def test_the_comment_is_written_once_and_then_rewritten_in_place(tmp_path: Path, found: str, written: str) -> None:
    [comment] = [step["run"] for name, step in steps() if name == "comment" and "run" in step]
    gh = tmp_path / "gh"
    gh.write_text(f'#!/bin/sh\necho "$*" >> asked\ncase $* in *--jq*) printf "{found}";; esac\n')
    gh.chmod(0o755)
    given = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GH_REPO": "owner/name", "PULL_REQUEST": "7"}
    subprocess.run(["bash", "-e", "-c", comment], cwd=tmp_path, env=given, check=True)
    searched, _, asked = (tmp_path / "asked").read_text().rpartition("api --silent ")
    assert "--paginate repos/owner/name/issues/7/comments" in searched
    assert 'select(.user.login == "github-actions[bot]")' in searched, "comments of other accounts are left alone"
    assert f'startswith("{MARKER}")' in searched
    assert asked == f"{written} --field body=@report/review.md\n"
