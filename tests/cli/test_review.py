"""``tritonstack review``: in a small repository, without AWS variables and without a network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.review.projects import git, make_project, variables
from tests.stacks.app_process import ROOT


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("review") / "project")


def review(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tritonstack", "review", *arguments]
    return subprocess.run(
        command, cwd=project, env=variables(project, COLUMNS="160"), capture_output=True, text=True, check=False
    )


def test_a_review_needs_no_credentials_and_no_network_and_writes_every_form(made: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"new/review.{ending}" for ending in ("json", "md", "html")]
    options = [f"--{form}={file}" for form, file in zip(("json", "markdown", "html"), files, strict=True)]
    first = review(made, *options)
    assert first.returncode == 0, first.stderr
    assert "look closely" in first.stdout
    assert "ml.g5.2xlarge" in first.stdout
    texts = [file.read_bytes() for file in files]
    document = json.loads(texts[0])
    jsonschema.validate(document, json.loads((ROOT / "schemas/review.schema.json").read_text()))
    commit = git(made, "rev-parse", "main").strip()
    assert document["base"] == {"ref": "main", "commit": commit, "chosen": False}
    assert [file.name for file in sorted(tmp_path.rglob("*")) if file.is_file()] == [
        "review.html",
        "review.json",
        "review.md",
    ]
    # The same input, elsewhere: the same bytes, and no word of where it ran.
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(made, elsewhere)
    again = review(elsewhere, *options)
    assert again.returncode == 0, again.stderr
    assert [file.read_bytes() for file in files] == texts
    assert not any(str(made.parent).encode() in text for text in texts)


def test_what_is_compared_are_the_snapshots_of_the_base_not_those_of_the_branch(made: Path, tmp_path: Path) -> None:
    branch = tmp_path / "branch"
    shutil.copytree(made, branch)
    shutil.rmtree(branch / "snapshots")
    assert "look closely" in review(branch, "--base", "main").stdout


def test_a_policy_that_matches_ends_with_1_and_a_line_each(made: Path) -> None:
    ended = review(made, "--no-synth", str(made / "assembly"), "--fail-on", "replacement:AWS::S3::*,refused")
    assert ended.returncode == 1
    lines = [line for line in ended.stderr.splitlines() if line.startswith("--fail-on")]
    assert lines == [
        "--fail-on replacement:AWS::S3::*: dev: serving: Bucket (AWS::S3::Bucket) is replaced",
    ]


def test_wrong_input_ends_with_2_and_says_what_is_allowed(made: Path, tmp_path: Path) -> None:
    ended = review(made, "--fail-on", "nonsense")
    assert ended.returncode == 2
    assert "found:   nonsense" in ended.stderr
    assert "replacement[:TYPE], removal[:TYPE]" in ended.stderr
    ended = review(made, "--base", "nowhere", "--no-synth", str(made / "assembly"))
    assert (ended.returncode, "nowhere" in ended.stderr) == (2, True)
    (tmp_path / "environments").mkdir()
    ended = review(tmp_path, "--no-synth", str(made / "assembly"))
    assert (ended.returncode, "no git repository" in ended.stderr) == (2, True)


def test_annotations_stand_on_the_lines_that_changed(made: Path) -> None:
    ended = review(made, "--no-synth", str(made / "assembly"), "--annotations")
    [line] = [each for each in ended.stdout.splitlines() if each.startswith("::")]
    assert line.startswith("::warning file=environments/dev.yaml,line=7,endLine=7,title=review%3A dev::")
    assert "traffic of dev-digits shifts" in line


def test_the_costs_of_an_environment_are_printed_without_comparing_anything(made: Path, tmp_path: Path) -> None:
    """With the prices of its file; no base is looked for."""
    elsewhere = tmp_path / "project"
    shutil.copytree(made, elsewhere, ignore=shutil.ignore_patterns(".git"))
    file = elsewhere / "environments" / "dev.yaml"
    file.write_text(file.read_text() + "prices: {ml.g5.2xlarge: 2}\n")
    every, one = review(elsewhere, "--costs"), review(elsewhere, "--costs", "dev")
    assert (every.returncode, one.returncode) == (0, 0), every.stderr + one.stderr
    assert every.stdout == one.stdout
    rows = [line.split() for line in one.stdout.splitlines()]
    assert ["all", "2.00", "2.00"] in rows
    assert ["USD/month", "730", "hours", "1,460", "1,460"] in rows


@pytest.mark.parametrize(
    ("arguments", "found"), [(["--costs", "nowhere"], "nowhere"), (["--costs", "dev", "--fail-on", "any"], "--fail-on")]
)
def test_costs_of_no_environment_or_of_a_comparison_are_refused(made: Path, arguments: list[str], found: str) -> None:
    ended = review(made, *arguments, "--no-synth", str(made / "assembly"))
    assert ended.returncode == 2
    assert f"found:   {found}" in ended.stderr
