"""The words of ``--fail-on``: what of a report makes the command end with 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase

from tritonstack.errors import InputError, Problem
from tritonstack.review.change import Effect, EnvironmentChange
from tritonstack.review.models import ModelKind
from tritonstack.review.opening_facts import OpeningKind
from tritonstack.review.permission_change import Direction
from tritonstack.review.report import EnvironmentReport, Report, broad_without_reason, standing


@dataclass(frozen=True, kw_only=True)
class Match:
    """One thing that a word of the policy matches.

    Attributes:
        policy: the word, as it was given.
        environment: where.
        sentence: what matches.
    """

    policy: str
    environment: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Word:
    """A word that a policy may have.

    Attributes:
        form: how it is written, where it takes more than itself; else empty.
        says: what it matches.
        matches: the sentences about an environment, by what was given after the colon.
        argument: whether what was given after the colon is right.
    """

    form: str = ""
    says: str
    matches: Callable[[EnvironmentReport, str], Iterator[str]]
    argument: Callable[[str], bool] = lambda given: not given


def _effects(*effects: Effect) -> Callable[[EnvironmentReport, str], Iterator[str]]:
    def matches(report: EnvironmentReport, types: str) -> Iterator[str]:
        for stack in standing(report.changes.stacks):
            for each in stack.resources:
                if each.effect in effects and fnmatchcase(each.type, types or "*"):
                    yield f"{stack.name}: {each.path} ({each.type}) {_is(each.effect)}"

    return matches


def _is(effect: Effect) -> str:
    may = {Effect.MAY_BE_REPLACED, Effect.MAY_CHANGE}
    return effect.value if effect in may else f"is {effect.value}"


def _replacement(report: EnvironmentReport, types: str) -> Iterator[str]:
    if not types:
        yield from _stacks(report.changes, Effect.REPLACED, "is replaced by another stack")
    yield from _effects(Effect.REPLACED, Effect.MAY_BE_REPLACED)(report, types)


def _removal(report: EnvironmentReport, types: str) -> Iterator[str]:
    if not types:
        yield from _stacks(report.changes, Effect.REMOVED, "is no longer in the app")
    yield from _effects(Effect.REMOVED, Effect.RETAINED)(report, types)


def _no_longer_kept(report: EnvironmentReport, types: str) -> Iterator[str]:
    for stack in standing(report.changes.stacks):
        for each in stack.resources:
            if each.no_longer_kept and fnmatchcase(each.type, types or "*"):
                when = " or ".join(each.no_longer_kept)
                yield f"{stack.name}: {each.path} ({each.type}) is no longer kept when {when}"


def _stacks(changes: EnvironmentChange, effect: Effect, words: str) -> Iterator[str]:
    yield from (f"the stack {each.stack_name_before} {words}" for each in changes.stacks if each.effect is effect)


def _traffic(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for stack in standing(report.changes.stacks):
        for each in stack.traffic:
            if each.touched is not False:
                yield f"{stack.name}: calls to {each.endpoint} {'move or end' if each.touched else 'may move'}"


def _findings(report: EnvironmentReport, _given: str) -> Iterator[str]:
    findings = report.changes.findings
    if not findings.known and report.changes.effect not in {Effect.NEW, Effect.REMOVED}:
        yield "policy findings are not known: one side was synthesised without validation"
    yield from (f"{each.stack}: {each.path}: {each.rule}" for each in findings.new)


def _acceptances(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for each in report.changes.findings.accepted:
        yield f"{each.stack}: {each.path}: {each.rule} is accepted: {each.accepted}"


def _any(report: EnvironmentReport, _given: str) -> Iterator[str]:
    if report.changes.effect is not None:
        yield report.verdict.sentence


def _iam(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for each in report.parts.permissions:
        if each.kind is Direction.WIDER:
            yield f"{each.stack}: {each.principal} {each.statement}"


def _wildcards(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for each in report.parts.permissions:
        if each.kind is Direction.WIDER and broad_without_reason(each):
            yield f"{each.stack}: {each.principal} {each.statement}: {'; '.join(each.wildcards)}"


def _openings(report: EnvironmentReport, _given: str) -> Iterator[str]:
    for each in report.parts.openings:
        if each.kind is OpeningKind.OPENED:
            yield f"{each.stack}: {each.name} {each.sentence}"


def _model_removal(report: EnvironmentReport, _given: str) -> Iterator[str]:
    yield from (each.sentence for each in report.parts.models if each.kind is ModelKind.REMOVED)


def _engines(report: EnvironmentReport, _given: str) -> Iterator[str]:
    yield from (each.sentence for each in report.parts.engines)


def _cost(report: EnvironmentReport, given: str) -> Iterator[str]:
    """Where prices are not known, it does not match: that is what ``unknown-cost`` is for."""
    totals = report.parts.cost
    if given.endswith("%"):
        if totals.grow_by_more(Decimal(given[1:-1])):
            yield totals.sentence
        return
    sides = (
        (totals.minimum_before.usd_per_hour, totals.minimum_after.usd_per_hour),
        (totals.maximum_before.usd_per_hour, totals.maximum_after.usd_per_hour),
    )
    if any(old is not None and new is not None and new - old > Decimal(given[1:]) for old, new in sides):
        yield totals.sentence


def _unknown_cost(report: EnvironmentReport, _given: str) -> Iterator[str]:
    """What is unknown and was not so before, or stands on an endpoint that changes."""
    for each in report.parts.costs:
        for reason in each.after.reasons if each.after is not None and each.changed else ():
            yield f"{each.endpoint}: {reason}"


def _vulnerable_releases(report: EnvironmentReport, given: str) -> Iterator[str]:
    yield from (each.sentence for each in report.parts.releases if each.added or given == "kept")


def _more(given: str) -> bool:
    return re.fullmatch(r"\+\d+(\.\d+)?%?", given) is not None


def _a_type(given: str) -> bool:
    return not given or "::" in given or "*" in given


WORDS: Mapping[str, Word] = {
    "replacement": Word(
        form="replacement[:TYPE]",
        says="a resource, or one of a TYPE such as AWS::S3::*, is or may be replaced",
        matches=_replacement,
        argument=_a_type,
    ),
    "removal": Word(
        form="removal[:TYPE]",
        says="a resource, or one of a TYPE, is removed or no longer managed",
        matches=_removal,
        argument=_a_type,
    ),
    "no-longer-kept": Word(
        form="no-longer-kept[:TYPE]",
        says="a resource, or one of a TYPE, is no longer kept when it is deleted or replaced: its data could be lost",
        matches=_no_longer_kept,
        argument=_a_type,
    ),
    "refused": Word(says="CloudFormation refuses the update of a resource", matches=_effects(Effect.REFUSED)),
    "traffic": Word(says="calls to an endpoint move, end, or may", matches=_traffic),
    "iam": Word(says="a permission widens", matches=_iam),
    "wildcard": Word(says="a permission widens by a wildcard that no written reason accepts", matches=_wildcards),
    "opening": Word(says="a network, data or a program's way out opens", matches=_openings),
    "model-removal": Word(says="an endpoint serves a model no longer", matches=_model_removal),
    "engine": Word(says="a TensorRT engine is to be built, or may be", matches=_engines),
    "vulnerable-release": Word(
        form="vulnerable-release[:kept]",
        says="an endpoint gets known vulnerabilities of Triton; with :kept also one that has had them",
        matches=_vulnerable_releases,
        argument=lambda given: given in {"", "kept"},
    ),
    "cost": Word(
        form="cost:+N%|cost:+N",
        says="the endpoints of an environment cost more than N % or N USD an hour more, at minimum or maximum",
        matches=_cost,
        argument=_more,
    ),
    "unknown-cost": Word(says="what an endpoint costs after its change is not known", matches=_unknown_cost),
    "finding": Word(says="a policy finding is new, or findings are not known", matches=_findings),
    "acceptance": Word(says="a policy finding is accepted from now on", matches=_acceptances),
    "any": Word(says="anything changes at all", matches=_any),
}


def parse_fail_on(text: str) -> tuple[str, ...]:
    """The words of a policy, in the order given.

    Raises:
        InputError: words that are none, all of them at once, with those that are allowed.
    """
    given = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
    wrong = [each for each in given if not _right(each)]
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


def _right(given: str) -> bool:
    name, colon, argument = given.partition(":")
    return name in WORDS and bool(argument) == bool(colon) and WORDS[name].argument(argument)
