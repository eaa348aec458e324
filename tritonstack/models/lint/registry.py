"""The rules of the linter as data: ``rules/<id>.md`` says of each what it is, why, and shows it broken and kept."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any, Literal, get_args

import yaml

from tritonstack.models.lint.example import Example, read_example

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
    """What a rule's page says below its front matter: explanation, bad example and good one, as Markdown."""
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
