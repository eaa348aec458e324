"""What is said beside the lines of a pull request that caused changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.review.projects import git, make_project
from tests.review.reports import PRICES, after, before
from tests.review.small import of, stack
from tritonstack.review.change import Level
from tritonstack.review.document import BaseEntry, ReviewDocument
from tritonstack.review.report import document_of
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.stored import changed_lines
from tritonstack.review.views.annotations import MOST, Annotation, annotations_of, commands_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def new_file(project: Path, name: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("new\n")
    git(project, "add", name)


def changed(project: Path, old: Snapshots, new: Snapshots) -> ReviewDocument:
    base = BaseEntry(ref="main", commit=git(project, "rev-parse", "main").strip(), chosen=True)
    return document_of(old, new, base=base, known=PRICES)


def rich(project: Path) -> ReviewDocument:
    return changed(project, of(stack(before(), name="serving-digits")), of(stack(after(), name="serving-digits")))


def test_a_line_of_the_settings_is_told_the_verdict(project: Path) -> None:
    [told] = annotations_of(rich(project), project=project)
    assert (told.file, told.line, told.end_line, told.title) == ("environments/dev.yaml", 7, 7, "review: dev")
    assert told.message.startswith("dev: 2 replaced; 1 removed; ")
    assert "0.75 → 1.50 USD/hour" in told.message


def test_an_environment_whose_file_is_gone_is_told_without_a_line(project: Path) -> None:
    (project / "environments" / "dev.yaml").unlink()
    lost = changed(project, of(stack(before(), name="serving-digits")), Snapshots(environments={}))
    [told] = annotations_of(lost, project=project)
    assert told.command.startswith("::warning title=review%3A dev::dev: the app no longer has it: ")


def test_a_change_that_no_known_file_causes_is_told_all_the_same(project: Path) -> None:
    git(project, "checkout", "-q", "main", "--", "environments")
    new_file(project, "elsewhere.txt")
    [told] = annotations_of(rich(project), project=project)
    assert (told.file, told.title) == ("", "review: dev")
    assert told.message.startswith("dev: 2 replaced; 1 removed; ")


def test_places_of_changes_are_those_of_the_working_tree(project: Path) -> None:
    (project / "a b.txt").write_text("1\n2\n3\n4\n")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "x")
    commit = git(project, "rev-parse", "HEAD").strip()
    (project / "a b.txt").write_text("1\n3\nx\ny\n")
    assert changed_lines(commit, repository=project) == {"a b.txt": ((1, 1), (3, 4))}


def test_a_command_keeps_to_its_line_whatever_it_says() -> None:
    given = Annotation(level=Level.CLOSE, file="a,b.py", line=1, end_line=2, title="a: b", message="100%\n::error::x")
    assert given.command == "::warning file=a%2Cb.py,line=1,endLine=2,title=a%3A b::100%25%0A::error::x"


def test_more_than_a_step_shows_are_counted() -> None:
    many = [Annotation(level=Level.LOOK, file="a", line=n, end_line=n, title="t", message="m") for n in range(1, 15)]
    told = list(commands_of(many))
    assert len(told) == MOST
    assert told[-1] == "::warning title=review::5 more lines cause changes; the report has all of them"
