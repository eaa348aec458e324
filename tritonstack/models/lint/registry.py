"""Lint rules as data, their pages ``rules/<id>.md``, findings, and the reports that a run of the linter gives."""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field

from tritonstack.errors import Problem

# A page names each file in a line of its own, its content in a fenced block below:
#
#     `path`:                    the whole file
#     `path`, added:             text at the end of the base's file
#     `path`, instead of `old`:  text in place of another in the base's file
#     Without `path`.            the base's file is not there
#     Folder `path`.             an empty folder
#
# A block's language is the kind of content: ``onnx-graph`` (YAML, from which a test makes an ONNX file), ``size``
# (bytes of a sparse file), ``tar.gz`` (names of empty files in an archive), ``link`` (the target of a symbolic link),
# ``torchscript`` (version and expression), ``dali-pipeline`` (operators), anything else: the text itself.


_HEAD = re.compile(r"^`(?P<path>[^`]+)`(?P<how>|, added|, instead of `(?P<old>[^`]+)`):$")
_WITHOUT = re.compile(r"^Without `(?P<path>[^`]+)`\.$")
_FOLDER_LINE = re.compile(r"^Folder `(?P<path>[^`]+?)/?`\.$")


@dataclass(frozen=True)
class ExampleFile:
    """One file of an example: its text, and the language of the block that shows it."""

    text: str
    language: str = ""


@dataclass(frozen=True)
class Example:
    """A small repository: files by their path, and empty folders."""

    files: Mapping[str, ExampleFile]
    folders: frozenset[str]


def read_example(markdown: str, base: Example) -> Example:
    """The repository that a section shows, as a change of ``base``. Raises ValueError where it cannot be read."""
    files, folders = dict(base.files), set(base.folders)
    lines = iter(markdown.splitlines())
    for line in lines:
        if match := _WITHOUT.match(line):
            if match["path"] not in files:
                raise ValueError(f"no file {match['path']} to leave out")
            del files[match["path"]]
        elif match := _FOLDER_LINE.match(line):
            folders.add(match["path"])
        elif match := _HEAD.match(line):
            content = _block(lines, match["path"])
            files[match["path"]] = _changed(files.get(match["path"]), content, how=match["how"], old=match["old"])
        elif line.startswith("```"):
            raise ValueError("a block without a line that names its file")
    return Example(files, frozenset(folders))


def _block(lines: Iterator[str], path: str) -> ExampleFile:
    """The fenced block that comes next."""
    opening = next((line for line in lines if line.strip()), "")
    if not opening.startswith("```"):
        raise ValueError(f"no block for {path}")
    content: list[str] = []
    for line in lines:
        if line == "```":
            return ExampleFile("".join(f"{each}\n" for each in content), opening.removeprefix("```").strip())
        content.append(line)
    raise ValueError(f"the block of {path} does not end")


def _changed(before: ExampleFile | None, content: ExampleFile, *, how: str, old: str | None) -> ExampleFile:
    if not how:
        return content
    if before is None:
        raise ValueError("the base has no such file to change")
    if old is None:
        return ExampleFile(before.text + content.text, before.language)
    if old not in before.text:
        raise ValueError(f"the base's file has no {old!r}")
    return ExampleFile(before.text.replace(old, content.text.rstrip("\n"), 1), before.language)


Level = Literal["error", "warning"]
Category = Literal["triton-core", "ensemble", "python-backend", "backend", "sagemaker", "house"]

CATEGORIES: Mapping[Category, str] = {
    "triton-core": "Triton's core refuses it when the model is loaded.",
    "ensemble": "Triton's ensemble scheduler refuses it, or the models that it needs are not there.",
    "python-backend": "Triton's Python backend refuses it.",
    "backend": "Another backend (ONNX Runtime, TensorRT, PyTorch, DALI) refuses it or ignores it.",
    "sagemaker": "Triton takes it; SageMaker, or the front end that it talks to, does not, or misreads it.",
    "house": "Both take it; it is a mistake all the same, or this project needs it otherwise.",
}
"""Category → what a finding of it means."""

_FIELDS = {"level", "category", "title", "source", "base", "endpoint", "good_endpoint", "also"}


class RuleFileError(ValueError):
    """A file below ``rules/`` is not as it has to be. A mistake in this package, never in its input."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule.

    Attributes:
        id: words joined by hyphens, unique: the name of its file.
        level: ``error`` or ``warning``.
        category: see :data:`CATEGORIES`.
        title: what the rule asks for or forbids, in one line.
        sources: where that was read: upstream source or documentation.
        text: what, why, and what to do.
        bad: a small repository that breaks the rule.
        good: one that keeps it.
        base: the repository that both examples change; empty where they are whole.
        endpoint: fields of the endpoint that both examples are linted for; empty for none.
        good_endpoint: those in which the good example's differs.
        also: other rules that nothing can break this one without breaking.
    """

    id: str
    level: Level
    category: Category
    title: str
    sources: tuple[str, ...]
    text: str
    bad: Example
    good: Example
    base: str
    endpoint: Mapping[str, Any]
    good_endpoint: Mapping[str, Any]
    also: frozenset[str]


def rules() -> tuple[Rule, ...]:
    """Every rule, sorted by category and id."""
    order = list(CATEGORIES)
    found = [rule(name) for name in rule_ids()]
    return tuple(sorted(found, key=lambda each: (order.index(each.category), each.id)))


@functools.cache
def rule_ids() -> tuple[str, ...]:
    """The ids of every rule, sorted."""
    return tuple(sorted(path.name.removesuffix(".md") for path in _folder("rules").iterdir() if _is_page(path)))


@functools.cache
def rule(rule_id: str) -> Rule:
    """The rule called ``rule_id``.

    Raises:
        KeyError: there is none.
        RuleFileError: its file is not as it has to be.
    """
    if rule_id not in rule_ids():
        raise KeyError(rule_id)
    return parse_rule(rule_id, _folder("rules").joinpath(f"{rule_id}.md").read_text(encoding="utf-8"))


@functools.cache
def base(name: str) -> Example:
    """The repository that examples change, by the name of its file below ``bases/``; empty for no name."""
    if not name:
        return Example({}, frozenset())
    return read_example(_folder("bases").joinpath(f"{name}.md").read_text(encoding="utf-8"), Example({}, frozenset()))


def parse_rule(rule_id: str, page: str) -> Rule:
    """The rule that a page spells. Raises :class:`RuleFileError`."""
    parts = page.split("---\n", 2)
    if len(parts) != 3 or parts[0]:
        raise RuleFileError(f"{rule_id}: no front matter between two lines of ---")
    front = yaml.safe_load(parts[1])
    text, bad, good = _sections(rule_id, parts[2])
    if not isinstance(front, dict) or not {"level", "category", "title"} <= front.keys() <= _FIELDS:
        raise RuleFileError(f"{rule_id}: its fields are {sorted(_FIELDS)}, with level, category and title")
    if front["level"] not in get_args(Level) or front["category"] not in CATEGORIES:
        raise RuleFileError(f"{rule_id}: unknown level or category")
    sources = front.get("source", ())
    below = base(front.get("base", ""))
    try:
        examples = read_example(bad, below), read_example(good, below)
    except ValueError as error:
        raise RuleFileError(f"{rule_id}: {error}") from error
    return Rule(
        id=rule_id,
        level=front["level"],
        category=front["category"],
        title=front["title"],
        sources=(sources,) if isinstance(sources, str) else tuple(sources),
        text=text,
        bad=examples[0],
        good=examples[1],
        base=front.get("base", ""),
        endpoint=front.get("endpoint", {}),
        good_endpoint={**front.get("endpoint", {}), **front.get("good_endpoint", {})},
        also=frozenset(front.get("also", ())),
    )


def page_of(rule_id: str) -> str:
    """A rule's page without its front matter: explanation, bad example and good one, as Markdown."""
    page = _folder("rules").joinpath(f"{rule_id}.md").read_text(encoding="utf-8")
    return page.split("---\n", 2)[2].strip()


def base_page(name: str) -> str:
    """The files of a base repository, as Markdown."""
    return _folder("bases").joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def _sections(rule_id: str, body: str) -> tuple[str, str, str]:
    """Explanation, bad example and good example."""
    text, mark, rest = body.partition("\n## Bad\n")
    bad, second, good = rest.partition("\n## Good\n")
    if not (mark and second and text.strip()):
        raise RuleFileError(f"{rule_id}: an explanation, then ## Bad, then ## Good")
    return text.strip(), bad, good


def _folder(name: str) -> Traversable:
    return importlib.resources.files(__package__).joinpath(name)


def _is_page(path: Traversable) -> bool:
    return path.name.endswith(".md")


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """One finding. Level, category and explanation stand on the rule's page.

    Attributes:
        file: the file or folder it is about.
        line: the line in it, from 1; 0 for the whole file.
        column: the column in the line, from 1; 0 where it is not known.
        rule: the rule's id, words joined by hyphens: ``rules/<id>.md`` explains it.
        found: what stands there.
        allowed: what may stand there.
        advice: what to do, where that does not follow from ``allowed``.
    """

    file: Path
    line: int = 0
    column: int = 0
    rule: str
    found: str
    allowed: str
    advice: str = ""

    @property
    def level(self) -> Level:
        """``error``: Triton or SageMaker refuses it, or serves something else; ``warning``: it works, not as meant."""
        return rule(self.rule).level

    @property
    def category(self) -> Category:
        """Whose rule it is: what of Triton or SageMaker would refuse, or the house."""
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
    """A finding as a workflow command of GitHub Actions, which shows it next to the line in a pull request.

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
