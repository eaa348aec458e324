"""The words of ``--fail-on``: what of a report makes the command end with 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from tritonstack.errors import InputError, Problem
from tritonstack.review.access.openings import OpeningKind
from tritonstack.review.access.permissions import Direction
from tritonstack.review.change import Effect
from tritonstack.review.document import AmountEntry, EnvironmentEntry, MatchEntry, ReviewDocument


@dataclass(frozen=True)
class Word:
    """A word that a policy may have."""

    # sentences about an environment, by what was given after the colon
    matches: Callable[[EnvironmentEntry, str], Iterable[str]]
    form: str = ""  # how it is written, where it takes an argument
    argument: Callable[[str], bool] = lambda given: not given  # whether what was given after the colon is right


_STACKS = {
    Effect.REPLACED: "the stack {} is replaced by another stack",
    Effect.REMOVED: "the stack {} is no longer in the app",
}


def _effects(*effects: Effect) -> Callable[[EnvironmentEntry, str], Iterator[str]]:
    """Resources with these effects; where no type is given, also stacks."""

    def matches(environment: EnvironmentEntry, types: str) -> Iterator[str]:
        for stack in environment.stacks if not types else ():
            if stack.effect in effects and stack.effect in _STACKS:
                yield _STACKS[stack.effect].format(stack.stack_name_before)
        for each in environment.resources:
            if each.effect in effects and fnmatchcase(each.type, types or "*"):
                verb = "" if each.effect is Effect.MAY_BE_REPLACED else "is "
                yield f"{each.stack}: {each.path} ({each.type}) {verb}{each.effect.value}"

    return matches


def _traffic(environment: EnvironmentEntry, _given: str) -> Iterator[str]:
    for each in environment.traffic:
        if each.touched is not False:
            verb = "shifts, or its requests fail" if each.touched else "may shift"
            yield f"{each.stack}: traffic of {each.endpoint} {verb}"


def _findings(environment: EnvironmentEntry, _given: str) -> Iterator[str]:
    if not environment.findings_known and environment.effect not in {Effect.NEW, Effect.REMOVED}:
        yield "policy findings are not known: one side was synthesised without validation"
    yield from (f"{each.stack}: {each.path}: {each.rule}" for each in environment.findings if each.change == "new")


def _wider(environment: EnvironmentEntry, _given: str = "", *, unreasoned: bool = False) -> Iterator[str]:
    for each in environment.permissions:
        if each.kind == Direction.WIDER and (each.unreasoned or not unreasoned):
            broad = f": {'; '.join(each.wildcards)}" if unreasoned else ""
            yield f"{each.stack}: {each.principal} {each.statement}{broad}"


def _openings(environment: EnvironmentEntry, _given: str) -> Iterator[str]:
    for each in environment.openings:
        if each.kind == OpeningKind.OPENED:
            yield f"{each.stack}: {each.name} {each.sentence}"


_ROUNDING = 1e-9
"""USD an hour: amounts are binary fractions."""


def _cost(environment: EnvironmentEntry, given: str) -> Iterator[str]:
    """With unknown prices it does not match, but of a first endpoint: ``unknown-cost`` does."""
    cost, limit = environment.cost, float(given[1:].removesuffix("%"))

    def grows(old: AmountEntry, new: AmountEntry) -> bool:
        if old.usd_per_hour is None or new.usd_per_hour is None:
            return given.endswith("%") and old.usd_per_hour == 0
        more = old.usd_per_hour * limit / 100 if given.endswith("%") else limit
        return new.usd_per_hour - old.usd_per_hour > more + _ROUNDING

    if grows(cost.minimum_before, cost.minimum_after) or grows(cost.maximum_before, cost.maximum_after):
        changed = ", ".join(each.endpoint for each in environment.cost_table.rows if each.endpoint and each.changed)
        yield f"{cost.sentence} ({changed})"


def _unknown_cost(environment: EnvironmentEntry, _given: str) -> Iterator[str]:
    for each in environment.cost_table.rows:
        amounts = [one for one in (each.idle_after, each.most_after) if one is not None and one.unknown]
        if each.endpoint and each.changed and amounts:
            yield f"{each.endpoint}: {', '.join(dict.fromkeys(name for one in amounts for name in one.unknown))}"


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
    "vulnerable-release": Word(lambda environment, _given: environment.vulnerable_releases),
    "cost": Word(_cost, "cost:+N%|cost:+N", lambda given: re.fullmatch(r"\+\d+(\.\d+)?%?", given) is not None),
    "unknown-cost": Word(_unknown_cost),
    "finding": Word(_findings),
    "any": Word(lambda environment, _given: [] if environment.effect is None else [environment.sentence]),
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


def matches_of(document: ReviewDocument, words: Sequence[str]) -> tuple[MatchEntry, ...]:
    """Matches of a policy's words, by word, then by environment."""
    return tuple(
        MatchEntry(policy=given, environment=each.name, sentence=sentence)
        for given in words
        for each in document.environments
        for sentence in WORDS[given.partition(":")[0]].matches(each, given.partition(":")[2])
    )
