"""Lint rules as data, their pages ``rules/<id>.md``, findings, and the reports that a run of the linter gives."""

from __future__ import annotations

import functools
import importlib.resources
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tritonstack.errors import Problem, workflow_command

Level = Literal["error", "warning", "note"]
"""``error``: refused, or served otherwise than meant; ``warning``: it works, not as meant; ``note``: nothing to do."""
Category = Literal["triton-core", "ensemble", "python-backend", "backend", "sagemaker", "house"]

CATEGORIES: Mapping[Category, str] = {
    "triton-core": "Triton's core refuses it when the model is loaded.",
    "ensemble": "Triton's ensemble scheduler refuses it, or the models that it needs are not there.",
    "python-backend": "Triton's Python backend refuses it.",
    "backend": "Another backend (ONNX Runtime, TensorRT, PyTorch, DALI, FIL) refuses it or ignores it.",
    "sagemaker": "Triton takes it; SageMaker, or the front end that it talks to, does not, or misreads it.",
    "house": "Both take it; it is a mistake all the same, or this project needs it otherwise.",
}
"""Category → what a finding of it means."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule."""

    id: str  # words joined by hyphens, unique: the name of its file
    level: Level
    category: Category  # see :data:`CATEGORIES`
    title: str  # what the rule requires or forbids, in one line
    allowed: str  # what may be there, and what to do, where both are the same for every finding; else empty
    advice: str
    sources: tuple[str, ...]  # where that was read: upstream source or documentation
    page: str  # explanation, bad example and good one, as Markdown
    base: str  # the repository that both examples change; empty where they are whole
    endpoint: Mapping[str, Any]  # fields of the endpoint that both examples are linted for; empty for none


def rules() -> tuple[Rule, ...]:
    """Every rule, sorted by category and id."""
    order = list(CATEGORIES)
    found = [rule(name) for name in rule_ids()]
    return tuple(sorted(found, key=lambda each: (order.index(each.category), each.id)))


@functools.cache
def rule_ids() -> tuple[str, ...]:
    """The ids of every rule, sorted."""
    pages = importlib.resources.files(__package__).joinpath("rules").iterdir()
    return tuple(sorted(path.name.removesuffix(".md") for path in pages if path.name.endswith(".md")))


@functools.cache
def rule(rule_id: str) -> Rule:
    """The rule called ``rule_id``. Raises KeyError where there is none."""
    if rule_id not in rule_ids():
        raise KeyError(rule_id)
    front, page = front_and_page(rule_id)
    sources = front.get("source", ())
    return Rule(
        id=rule_id,
        level=front["level"],
        category=front["category"],
        title=front["title"],
        allowed=front.get("allowed", ""),
        advice=front.get("advice", ""),
        sources=(sources,) if isinstance(sources, str) else tuple(sources),
        page=page,
        base=front.get("base", ""),
        endpoint=front.get("endpoint", {}),
    )


def front_and_page(rule_id: str) -> tuple[dict[str, Any], str]:
    """The fields between the two lines of ``---`` of a rule's file, and the page below them."""
    _, front, page = _read("rules", rule_id).split("---\n", 2)
    return yaml.safe_load(front), page.strip()


def base_page(name: str) -> str:
    """The files of a base repository, as Markdown."""
    return _read("bases", name).strip()


def _read(folder: str, name: str) -> str:
    return importlib.resources.files(__package__).joinpath(folder, f"{name}.md").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """One finding. Level, category and explanation are on the rule's page."""

    file: Path  # the file or folder it is about
    line: int = 0  # the line in it, from 1; 0 for the whole file
    column: int = 0  # the column in the line, from 1; 0: unknown
    rule: str  # the rule's id, words joined by hyphens: ``rules/<id>.md`` explains it
    found: str  # what is there
    allowed: str = ""  # what may be there; empty for what the rule's page has
    advice: str = ""  # what to do, where that does not follow from ``allowed``; likewise

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", self.allowed or rule(self.rule).allowed)
        object.__setattr__(self, "advice", self.advice or rule(self.rule).advice)

    @property
    def level(self) -> Level:
        """Severity: see :data:`Level`."""
        return rule(self.rule).level

    @property
    def title(self) -> str:
        """What the rule requires or forbids."""
        return rule(self.rule).title

    @property
    def category(self) -> Category:
        """Origin of the rule: the part of Triton or SageMaker that would refuse, or this project."""
        return rule(self.rule).category

    def __str__(self) -> str:
        numbers = [str(number) for number in (self.line, self.column) if number]
        place = ":".join([str(self.file), *numbers])
        text = f"{place}: {self.level}: {self.found}; allowed: {self.allowed}"
        return f"{text}; {self.advice} [{self.rule}]" if self.advice else f"{text} [{self.rule}]"

    def problem(self) -> Problem:
        """The finding as a problem of an :class:`InputError`."""
        return Problem(
            file=str(self.file),
            field=f"line {self.line}" if self.line else "",
            found=f"{self.found} [{self.rule}]",
            allowed=self.allowed,
            advice=self.advice,
        )


class FindingEntry(BaseModel):
    """One finding."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    file: Annotated[str, BeforeValidator(lambda path: shown(Path(path)))] = Field(
        description="The file or folder, from the working directory where it is below it."
    )
    line: int = Field(ge=0, description="The line, from 1; 0 for the whole file.")
    column: int = Field(ge=0, description="The column, from 1; 0 where it is not known.")
    rule: str = Field(description="The rule's id; `tritonstack explain <id>` explains it.")
    title: str = Field(description="What the rule asks for or forbids.")
    level: Level = Field(
        description="error: refused, or served otherwise than meant; warning: it works, not as meant; note: to know, "
        "with nothing to change."
    )
    category: Category = Field(description="Who would refuse it: a part of Triton, SageMaker, or this project alone.")
    found: str = Field(description="What is there.")
    allowed: str = Field(description="What may be there.")
    advice: str = Field(description="What to do, where that does not follow; may be empty.")


class LintReport(BaseModel):
    """Output of `tritonstack lint --json`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = Field(1, description="Of the report itself.")
    folders: tuple[str, ...] = Field(description="The model folders that were checked.")
    errors: int = Field(ge=0, description="How many findings are errors.")
    warnings: int = Field(ge=0, description="How many findings are warnings.")
    notes: int = Field(ge=0, description="How many findings are notes.")
    findings: tuple[FindingEntry, ...] = Field(description="Every finding, by folder, file and line.")


def report_of(folders: Sequence[Path], findings: Sequence[Finding]) -> LintReport:
    """The findings about some folders as data."""
    counts = Counter(finding.level for finding in findings)
    return LintReport(
        folders=tuple(shown(folder) for folder in folders),
        errors=counts["error"],
        warnings=counts["warning"],
        notes=counts["note"],
        findings=tuple(map(FindingEntry.model_validate, findings)),
    )


def annotation(finding: Finding) -> str:
    """A finding as a workflow command of GitHub Actions, which shows it next to the line in a pull request."""
    text = f"{finding.found}; allowed: {finding.allowed}{f'; {finding.advice}' if finding.advice else ''}"
    place = {"file": shown(finding.file), "line": finding.line, "col": finding.column, "title": finding.rule}
    return workflow_command("notice" if finding.level == "note" else finding.level, text, place)


def shown(path: Path) -> str:
    """A path as a person would name it: from the working directory where it is below it."""
    here, whole = Path.cwd(), path.absolute()
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else whole.as_posix()
