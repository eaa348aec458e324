"""The words of ``--fail-on``: what of a report makes the command end with 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase

from tritonstack.errors import InputError, Problem
from tritonstack.review.access.openings import OpeningKind
from tritonstack.review.access.permissions import Direction, PermissionChange
from tritonstack.review.change import Effect, ResourceChange
from tritonstack.review.report import EnvironmentReport, Report, broad_without_reason, standing


@dataclass(frozen=True, kw_only=True)
class Match:
    """One match of a policy's word: the word as it was given, the environment, and what matches in a sentence."""

    policy: str
    environment: str
    sentence: str


@dataclass(frozen=True)
class Word:
    """A word that a policy may have."""

    # sentences about an environment, by what was given after the colon
    matches: Callable[[EnvironmentReport, str], Iterable[str]]
    form: str = ""  # how it is written, where it takes an argument
    argument: Callable[[str], bool] = lambda given: not given  # whether what was given after the colon is right


def _resources(report: EnvironmentReport, types: str) -> Iterator[tuple[str, ResourceChange]]:
    """Stack, path and type in words, and the change, of every resource whose type matches."""
    for stack in standing(report.changes.stacks):
        for each in stack.resources:
            if fnmatchcase(each.type, types or "*"):
                yield f"{stack.name}: {each.path} ({each.type})", each


def _effects(*effects: Effect) -> Callable[[EnvironmentReport, str], Iterator[str]]:
    def matches(report: EnvironmentReport, types: str) -> Iterator[str]:
        for name, each in _resources(report, types):
            if each.effect in effects:
                yield f"{name} {'' if each.effect is Effect.MAY_BE_REPLACED else 'is '}{each.effect.value}"

    return matches


def _replacement(report: EnvironmentReport, types: str) -> Iterator[str]:
    for each in report.changes.stacks if not types else ():
        if each.effect is Effect.REPLACED:
            yield f"the stack {each.stack_name_before} is replaced by another stack"
    yield from _effects(Effect.REPLACED, Effect.MAY_BE_REPLACED)(report, types)


def _removal(report: EnvironmentReport, types: str) -> Iterator[str]:
    for each in report.changes.stacks if not types else ():
        if each.effect is Effect.REMOVED:
            yield f"the stack {each.stack_name} is no longer in the app"
    yield from _effects(Effect.REMOVED, Effect.RETAINED)(report, types)


def _traffic(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for stack in standing(report.changes.stacks):
        for each in stack.traffic:
            if each.touched is not False:
                verb = "shifts, or its requests fail" if each.touched else "may shift"
                yield f"{stack.name}: traffic of {each.endpoint} {verb}"


def _findings(report: EnvironmentReport, _given: str) -> Iterator[str]:
    findings = report.changes.findings
    if not findings.known and report.changes.effect not in {Effect.NEW, Effect.REMOVED}:
        yield "policy findings are not known: one side was synthesised without validation"
    yield from (f"{each.stack}: {each.path}: {each.rule}" for each in findings.new)


def _wider(report: EnvironmentReport) -> Iterator[tuple[str, PermissionChange]]:
    for each in report.parts.permissions:
        if each.kind is Direction.WIDER:
            yield f"{each.stack}: {each.principal} {each.statement}", each


def _wildcards(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for sentence, each in _wider(report):
        if broad_without_reason(each):
            yield f"{sentence}: {'; '.join(each.wildcards)}"


def _openings(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for each in report.parts.openings:
        if each.kind is OpeningKind.OPENED:
            yield f"{each.stack}: {each.name} {each.sentence}"


def _cost(report: EnvironmentReport, given: str) -> Iterator[str]:
    """With unknown prices it does not match: ``unknown-cost`` does."""
    totals = report.parts.cost
    sides = (
        (totals.minimum_before.usd_per_hour, totals.minimum_after.usd_per_hour),
        (totals.maximum_before.usd_per_hour, totals.maximum_after.usd_per_hour),
    )
    if given.endswith("%"):
        more = bool(totals.grow_by_more(Decimal(given[1:-1])))
    else:
        more = any(old is not None and new is not None and new - old > Decimal(given[1:]) for old, new in sides)
    if more:
        yield f"{totals.sentence} ({', '.join(each.endpoint for each in report.parts.costs if each.changed)})"


def _unknown_cost(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for each in report.parts.costs:
        for reason in each.after.reasons if each.after is not None and each.changed else ():
            yield f"{each.endpoint}: {reason}"


def _is_type(given: str) -> bool:
    return not given or "::" in given or "*" in given


WORDS: Mapping[str, Word] = {
    "replacement": Word(_replacement, "replacement[:TYPE]", _is_type),
    "removal": Word(_removal, "removal[:TYPE]", _is_type),
    "refused": Word(_effects(Effect.REFUSED)),
    "traffic": Word(_traffic),
    "iam": Word(lambda report, _given: (sentence for sentence, _ in _wider(report))),
    "wildcard": Word(_wildcards),
    "opening": Word(_openings),
    "vulnerable-release": Word(lambda report, _given: report.parts.releases),
    "cost": Word(_cost, "cost:+N%|cost:+N", lambda given: re.fullmatch(r"\+\d+(\.\d+)?%?", given) is not None),
    "unknown-cost": Word(_unknown_cost),
    "finding": Word(_findings),
    "any": Word(lambda report, _given: [] if report.changes.effect is None else [report.verdict]),
}
"""What each matches: docs/review.md, "Policy"."""


def parse_fail_on(text: str) -> tuple[str, ...]:
    """The words of a policy, in the order given.

    Raises:
        InputError: unknown words, all of them at once, with those that are allowed.
    """

    def right(given: str) -> bool:
        name, colon, argument = given.partition(":")
        return name in WORDS and bool(argument) == bool(colon) and WORDS[name].argument(argument)

    given = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
    wrong = [each for each in given if not right(each)]
    if wrong or not given:
        raise InputError([Problem(field="--fail-on", found=", ".join(wrong) or "no word", allowed=allowed_words())])
    return given


def allowed_words() -> str:
    """Every word, as it is written."""
    return ", ".join(word.form or name for name, word in WORDS.items())


def matches_of(report: Report, words: Sequence[str]) -> tuple[Match, ...]:
    """What the words of a policy match, by word, then by environment."""
    return tuple(
        Match(policy=given, environment=each.name, sentence=sentence)
        for given in words
        for each in report.environments
        for sentence in WORDS[given.partition(":")[0]].matches(each, given.partition(":")[2])
    )
