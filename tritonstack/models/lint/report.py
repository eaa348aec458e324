"""What a run of the linter found, for people, for programs and for pull requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.registry import Category, Level, rule


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FindingEntry(_Part):
    """One finding."""

    file: str = Field(description="The file or folder, from the working directory where it is below it.")
    line: int = Field(ge=0, description="The line, from 1; 0 for the whole file.")
    column: int = Field(ge=0, description="The column, from 1; 0 where it is not known.")
    rule: str = Field(description="The rule's id; `tritonstack explain <id>` explains it.")
    title: str = Field(description="What the rule asks for or forbids.")
    level: Level = Field(description="error: refused, or served otherwise than meant; warning: it works, not as meant.")
    category: Category = Field(description="Who would refuse it: a part of Triton, SageMaker, or this project alone.")
    found: str = Field(description="What stands there.")
    allowed: str = Field(description="What may stand there.")
    advice: str = Field(description="What to do, where that does not follow; may be empty.")


class LintReport(_Part):
    """What `tritonstack lint --format json` prints."""

    format: Literal[1] = Field(1, description="Of the report itself.")
    folders: tuple[str, ...] = Field(description="The model folders that were checked.")
    errors: int = Field(ge=0, description="How many findings are errors.")
    warnings: int = Field(ge=0, description="How many findings are warnings.")
    findings: tuple[FindingEntry, ...] = Field(description="Every finding, by folder, file and line.")


def report_of(folders: Sequence[Path], findings: Sequence[Finding]) -> LintReport:
    """The findings about some folders as data."""
    errors = sum(finding.level == "error" for finding in findings)
    return LintReport(
        folders=tuple(shown(folder) for folder in folders),
        errors=errors,
        warnings=len(findings) - errors,
        findings=tuple(_entry(finding) for finding in findings),
    )


def annotation(finding: Finding) -> str:
    """A finding as a workflow command of GitHub Actions, which shows it beside the line in a pull request.

    Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands (setting an error or
    warning message).
    """
    places = {"file": shown(finding.file), "line": finding.line, "col": finding.column, "title": finding.rule}
    given = ",".join(f"{name}={_property(str(value))}" for name, value in places.items() if value)
    text = f"{finding.found}; allowed: {finding.allowed}{f'; {finding.advice}' if finding.advice else ''}"
    return f"::{finding.level} {given}::{_escaped(text)}"


def shown(path: Path) -> str:
    """A path as a person would name it: from the working directory where it is below it."""
    here, whole = Path.cwd(), path.absolute()
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else whole.as_posix()


def _entry(finding: Finding) -> FindingEntry:
    return FindingEntry(
        file=shown(finding.file),
        line=finding.line,
        column=finding.column,
        rule=finding.rule,
        title=rule(finding.rule).title,
        level=finding.level,
        category=finding.category,
        found=finding.found,
        allowed=finding.allowed,
        advice=finding.advice,
    )


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
