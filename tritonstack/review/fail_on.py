"""The words of ``--fail-on``: what of a report makes the command end with 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import partial

from tritonstack.errors import InputError, Problem
from tritonstack.review.access.openings import OpeningKind
from tritonstack.review.access.permissions import Direction
from tritonstack.review.change import Effect
from tritonstack.review.cost_table import CostTotals
from tritonstack.review.document import MatchEntry
from tritonstack.review.report import EnvironmentReport, Report


@dataclass(frozen=True)
class Word:
    """A word that a policy may have."""

    # sentences about an environment, by what was given after the colon
    matches: Callable[[EnvironmentReport, str], Iterable[str]]
    form: str = ""  # how it is written, where it takes an argument
    argument: Callable[[str], bool] = lambda given: not given  # whether what was given after the colon is right


_STACKS = {
    Effect.REPLACED: "the stack {} is replaced by another stack",
    Effect.REMOVED: "the stack {} is no longer in the app",
}


def _effects(*effects: Effect) -> Callable[[EnvironmentReport, str], Iterator[str]]:
    """Resources with these effects; where no type is given, also stacks."""

    def matches(report: EnvironmentReport, types: str) -> Iterator[str]:
        for stack in report.entry.stacks if not types else ():
            if stack.effect in effects and stack.effect in _STACKS:
                yield _STACKS[stack.effect].format(stack.stack_name_before)
        for each in report.entry.resources:
            if each.effect in effects and fnmatchcase(each.type, types or "*"):
                verb = "" if each.effect is Effect.MAY_BE_REPLACED else "is "
                yield f"{each.stack}: {each.path} ({each.type}) {verb}{each.effect.value}"

    return matches


def _traffic(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for each in report.entry.traffic:
        if each.touched is not False:
            verb = "shifts, or its requests fail" if each.touched else "may shift"
            yield f"{each.stack}: traffic of {each.endpoint} {verb}"


def _findings(report: EnvironmentReport, _given: str) -> Iterator[str]:
    entry = report.entry
    if not entry.findings_known and entry.effect not in {Effect.NEW, Effect.REMOVED}:
        yield "policy findings are not known: one side was synthesised without validation"
    yield from (f"{each.stack}: {each.path}: {each.rule}" for each in entry.findings if each.change == "new")


def _wider(report: EnvironmentReport, _given: str = "", *, unreasoned: bool = False) -> Iterator[str]:
    for each in report.entry.permissions:
        if each.kind == Direction.WIDER and (each.unreasoned or not unreasoned):
            broad = f": {'; '.join(each.wildcards)}" if unreasoned else ""
            yield f"{each.stack}: {each.principal} {each.statement}{broad}"


def _openings(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for each in report.entry.openings:
        if each.kind == OpeningKind.OPENED:
            yield f"{each.stack}: {each.name} {each.sentence}"


def _cost(report: EnvironmentReport, given: str) -> Iterator[str]:
    """With unknown prices it does not match: ``unknown-cost`` does."""
    totals = CostTotals.of(report.endpoint_costs)
    sides = (totals.idle_before, totals.idle_after), (totals.most_before, totals.most_after)
    if given.endswith("%"):
        more = bool(totals.grow_by_more(Decimal(given[1:-1])))
    else:
        ends = ((old.usd_per_hour, new.usd_per_hour) for old, new in sides)
        more = any(old is not None and new is not None and new - old > Decimal(given[1:]) for old, new in ends)
    if more:
        yield f"{totals.sentence} ({', '.join(each.endpoint for each in report.endpoint_costs if each.changed)})"


def _unknown_cost(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for each in report.endpoint_costs:
        for reason in each.after.reasons if each.after is not None and each.changed else ():
            yield f"{each.endpoint}: {reason}"


def _is_type(given: str) -> bool:
    return not given or "::" in given or "*" in given


WORDS: Mapping[str, Word] = {
    "replacement": Word(_effects(Effect.REPLACED, Effect.MAY_BE_REPLACED), "replacement[:TYPE]", _is_type),
    "removal": Word(_effects(Effect.REMOVED, Effect.RETAINED), "removal[:TYPE]", _is_type),
    "refused": Word(_effects(Effect.REFUSED)),
    "traffic": Word(_traffic),
    "iam": Word(_wider),
    "wildcard": Word(partial(_wider, unreasoned=True)),
    "opening": Word(_openings),
    "vulnerable-release": Word(lambda report, _given: report.releases),
    "cost": Word(_cost, "cost:+N%|cost:+N", lambda given: re.fullmatch(r"\+\d+(\.\d+)?%?", given) is not None),
    "unknown-cost": Word(_unknown_cost),
    "finding": Word(_findings),
    "any": Word(lambda report, _given: [] if report.entry.effect is None else [report.entry.sentence]),
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


def matches_of(report: Report, words: Sequence[str]) -> tuple[MatchEntry, ...]:
    """What the words of a policy match, by word, then by environment."""
    return tuple(
        MatchEntry(policy=given, environment=each.entry.name, sentence=sentence)
        for given in words
        for each in report.environments
        for sentence in WORDS[given.partition(":")[0]].matches(each, given.partition(":")[2])
    )
