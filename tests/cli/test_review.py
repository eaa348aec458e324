"""``tritonstack review``: in small repositories, without AWS variables and without a network, and what it compares."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from benchmarks.review import changed_project
from tests.review.pipelines import (
    ACCEPTED,
    ACCESS,
    GROUP,
    OPEN,
    OWN,
    app_requests,
    make_pipeline_project,
    write_pipeline,
)
from tests.review.projects import git, make_project, variables
from tests.review.reports import ALL, READ, policy
from tests.review.small import resource
from tests.stacks.app_process import ROOT
from tritonstack.cli.review import Sides, base_of, sides_of
from tritonstack.cli.root import root
from tritonstack.errors import InputError, TritonstackError
from tritonstack.review.change import Level
from tritonstack.review.document import ReviewDocument
from tritonstack.review.fail_on import matches_of, parse_fail_on
from tritonstack.review.report import document_of


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("review") / "project")


def process(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tritonstack", "review", *arguments]
    return subprocess.run(command, env=variables(project), capture_output=True, text=True, check=False)


def review(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in this process."""
    kept = variables(project, COLUMNS="160")
    env = {name: kept.get(name) for name in (*os.environ, *kept)}
    ended = CliRunner().invoke(root, ["review", *arguments], env=env, standalone_mode=False)
    error = ended.exception
    if error is not None and not isinstance(error, TritonstackError):
        raise error
    code, said = (ended.return_value, "") if error is None else (error.exit_code, str(error))
    return subprocess.CompletedProcess(arguments, code, ended.stdout, ended.stderr + said)


def test_a_review_needs_no_credentials_and_no_network_and_writes_every_form(made: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"new/review.{ending}" for ending in ("json", "md", "html")]
    options = [f"--{form}={file}" for form, file in zip(("output", "markdown", "html"), files, strict=True)]
    first = process(made, *options)
    assert first.returncode == 0, first.stderr
    assert "look closely" in first.stdout
    assert "ml.g5.2xlarge" in first.stdout
    texts = [file.read_bytes() for file in files]
    document = json.loads(texts[0])
    jsonschema.validate(document, json.loads((ROOT / "schemas/review.schema.json").read_text()))
    commit = git(made, "rev-parse", "main").strip()
    assert document["base"] == {"ref": "main", "commit": commit, "chosen": False}
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} == {file.name for file in files}
    # The same input, elsewhere: the same bytes, and no word of where it ran.
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(made, elsewhere)
    again = process(elsewhere, *options)
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
    assert lines == ["--fail-on replacement:AWS::S3::*: dev: serving: Bucket (AWS::S3::Bucket) is replaced"]


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


def test_the_costs_of_an_environment_are_printed_without_comparing_anything(made: Path, tmp_path: Path) -> None:
    """With the prices of its file; no base is looked for."""
    elsewhere = tmp_path / "project"
    shutil.copytree(made, elsewhere, ignore=shutil.ignore_patterns(".git"))
    file = elsewhere / "environments" / "dev.yaml"
    file.write_text(file.read_text() + "prices: {ml.g5.2xlarge: 2}\n")
    every, one = review(elsewhere, "--costs"), review(elsewhere, "--costs", "-e", "dev")
    assert (every.returncode, one.returncode) == (0, 0), every.stderr + one.stderr
    assert every.stdout == one.stdout
    rows = [line.split() for line in one.stdout.splitlines()]
    assert ["all", "2.00", "2.00"] in rows
    assert ["USD/month", "730", "hours", "1,460", "1,460"] in rows


@pytest.mark.parametrize(
    ("arguments", "found"), [(["--costs", "-e", "nowhere"], "nowhere"), (["--costs", "--fail-on", "any"], "--fail-on")]
)
def test_costs_of_no_environment_or_of_a_comparison_are_refused(made: Path, arguments: list[str], found: str) -> None:
    ended = review(made, *arguments, "--no-synth", str(made / "assembly"))
    assert ended.returncode == 2
    assert f"found:   {found}" in ended.stderr


# What it says of a change of the pipeline, and when it looks at the pipeline at all.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_pipeline_project(tmp_path / "project")


def sides(project: Path, *, assembly: Path | None = None) -> Sides:
    base, committed = base_of("main", project)
    return sides_of(base, committed, project=project, assembly=assembly)


def reviewed(project: Path, *, assembly: Path | None = None) -> ReviewDocument:
    base, _ = base_of("main", project)
    made = sides(project, assembly=assembly)
    return document_of(made.before, made.after, base=base, notes=made.notes)


def verdicts(report: ReviewDocument) -> dict[str, str]:
    return {each.name: each.sentence for each in report.environments}


def matched(report: ReviewDocument, words: str) -> list[str]:
    return [f"{each.environment}: {each.sentence}" for each in matches_of(report, parse_fail_on(words))]


BROAD = "action s3:* (every action of s3) — no reason is written; resource * (everything) — no reason is written"
NOTHING = "every template is as it was"


def test_where_nothing_changes_the_pipeline_is_synthesised_once_without_validation(project: Path) -> None:
    report = reviewed(project)
    assert verdicts(report) == {"dev": NOTHING, "pipeline": NOTHING}
    assert matched(report, "any,finding") == []
    assert app_requests(project) == ["assembly true", "pipeline false"]


def test_a_change_of_the_pipelines_own_stack_is_reviewed_as_an_environments_is(project: Path) -> None:
    own = {
        **OWN,
        "Policy": policy(READ, ALL),
        "Build": resource("AWS::CodeBuild::Project", {"Name": "other-build", "ServiceRole": "arn:role"}),
        "Group": resource("AWS::EC2::SecurityGroup", {**GROUP, "SecurityGroupIngress": OPEN}),
    }
    write_pipeline(project / ".local" / "pipeline", own, found=True)
    report = reviewed(project)
    dev, pipeline = report.environments
    assert dev.level is Level.NOTHING
    assert (pipeline.name, pipeline.level) == ("pipeline", Level.CLOSE)
    assert matched(report, "replacement,iam,wildcard,opening,finding") == [
        "pipeline: pipeline: Build (AWS::CodeBuild::Project) is replaced",
        "pipeline: pipeline: Role may now: s3:* on *",
        f"pipeline: pipeline: Role may now: s3:* on *: {BROAD}",
        "pipeline: pipeline: Group lets in tcp 22 from 0.0.0.0/0 (every IPv4 address)",
        "pipeline: pipeline: Build: AwsSolutions-CB4",
    ]
    assert app_requests(project) == ["assembly true", "pipeline false", "pipeline true"]


def test_what_it_may_in_an_environment_is_told_of_that_environment(project: Path) -> None:
    write_pipeline(project / ".local" / "pipeline", access={**ACCESS, "Policy": policy(READ, ALL)})
    report = reviewed(project)
    assert verdicts(report)["pipeline"] == NOTHING
    assert matched(report, "iam") == ["dev: pipeline-access: Role may now: s3:* on *"]
    assert matched(report, "finding") == []


def test_an_acceptance_alone_is_a_change(project: Path) -> None:
    write_pipeline(project / ".local" / "pipeline", accepted={**ACCEPTED, "AwsSolutions-S2": "It is so."})
    only = "only the acceptance of policy findings changes"
    assert verdicts(reviewed(project)) == {"dev": only, "pipeline": only}


def test_a_pipeline_that_comes_is_new_and_one_that_goes_stays_deployed(tmp_path: Path, project: Path) -> None:
    without = make_pipeline_project(tmp_path / "without", committed=False)
    assert verdicts(reviewed(without)) == {"dev": NOTHING}
    assert app_requests(without) == ["assembly true"]
    (without / "pipeline.yaml").write_text("name: tritonstack\n")
    came = reviewed(without)
    assert verdicts(came)["pipeline"].startswith("a new pipeline of 1 stack; ")
    assert matched(came, "iam")[0].startswith("dev: pipeline-access: Role new: ")
    (project / "pipeline.yaml").unlink()
    told = verdicts(reviewed(project))
    assert told["pipeline"] == "the app no longer has it: no deployment removes its 1 stack"
    assert told["dev"].startswith("the app no longer has dev-pipeline-access, which no deployment removes")


def test_an_assembly_without_a_pipeline_compares_the_environments_alone_and_says_so(project: Path) -> None:
    report = reviewed(project, assembly=project / ".local" / "assembly")
    assert verdicts(report) == {"dev": NOTHING}
    [note] = report.notes
    assert note.endswith("was synthesised without -c pipeline=true: what pipeline.yaml makes is not compared.")
    both = reviewed(project, assembly=project / ".local" / "pipeline")
    assert (verdicts(both), both.notes) == ({"dev": NOTHING, "pipeline": NOTHING}, ())


def test_wrong_settings_of_the_pipeline_are_told(project: Path) -> None:
    (project / "pipeline.yaml").write_text("wrong: true\n")
    with pytest.raises(InputError, match="found:   wrong"):
        sides(project)


def test_the_command_tells_the_pipeline(project: Path) -> None:
    wide = {"Policy": policy(READ, ALL)}
    write_pipeline(project / ".local" / "pipeline", {**OWN, **wide}, {**ACCESS, **wide})
    (project / "pipeline.yaml").write_text("name: tritonstack\nregion: us-east-1\nemail: []\n")
    git(project, "commit", "-qam", "change")
    ran = review(project, "--base", "main")
    assert ran.returncode == 0, ran.stderr
    assert "  pipeline-access/Role may now: s3:* on *. Wildcards: " in ran.stdout


@pytest.mark.long
def test_the_committed_pipeline_is_reviewed_by_its_own_app(tmp_path: Path) -> None:
    """A clone of this repository as it is committed, whose pipeline somebody is told of by mail."""
    project = changed_project(tmp_path / "project")
    git(project, "checkout", "-q", "--", "environments")
    file = project / "pipeline.yaml"
    file.write_text(f"{file.read_text()}\nemail: [team@example.com]\n")
    base, committed = base_of("HEAD", project)
    made = sides_of(base, committed, project=project, assembly=None)
    told = verdicts(document_of(made.before, made.after, base=base, notes=made.notes))
    assert told.pop("pipeline") == "1 new"
    assert set(told.values()) == {NOTHING}
    assert made.notes == ()
    assert made.after.environments["pipeline"].findings is not None
