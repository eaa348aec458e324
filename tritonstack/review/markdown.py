"""The report as Markdown for a pull request: cut where GitHub would refuse it, with a sentence of what is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby

from tritonstack.review.change import Effect
from tritonstack.review.document import ReviewDocument
from tritonstack.review.entries import EnvironmentEntry, PropertyEntry, ResourceEntry, StackEntry, diff_lines
from tritonstack.review.entry_words import (
    COST,
    COST_COLUMNS,
    MatchGroup,
    cost_rows,
    file_words,
    finding_words,
    match_groups,
    part_lists,
    property_note,
    shown_traffic,
)
from tritonstack.review.post import MARKER
from tritonstack.review.report import Level

LIMIT = 65_536
"""Characters of a comment: a longer body is refused ("body is too long (maximum is 65536 characters)")."""
WHOLE = "in the HTML page and the JSON of the same run"
SHORT = 8
"""Lines: a longer difference is folded."""
SIGNS = {Level.NOTHING: "⚪", Level.PLAIN: "🔵", Level.LOOK: "🟡", Level.CLOSE: "🔴"}
"""Beside the words, never in their place."""
# What is cut first, where all of it is too long: what hurts least.
_RANKS = (
    Effect.TEMPLATE_ONLY,
    Effect.NEW,
    Effect.MAY_CHANGE,
    Effect.CHANGED,
    Effect.RENAMED,
    Effect.RETAINED,
    Effect.REMOVED,
    Effect.MAY_BE_REPLACED,
    Effect.REPLACED,
    Effect.REFUSED,
)
_KEPT = len(_RANKS)
# What tells an ARN, an action, a pattern or a reference from a word.
_NAME = re.compile(r"[*_\[]|\$\{|\w:+[\w*/]")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A piece of the report.

    Attributes:
        text: all of it.
        short: what stands there where the report is too long.
        about: what is then left out; empty where nothing is.
        rank: what is cut first is lowest.
    """

    text: str
    short: str | None = None
    about: str = ""
    rank: int = _KEPT


def markdown(document: ReviewDocument, *, limit: int = LIMIT, whole: str = WHOLE) -> str:
    """The report, of at most ``limit`` characters, counted as UTF-16 does.

    Args:
        document: the report.
        limit: the longest that is taken.
        whole: where all of it is, in words: what follows "is".
    """
    return _cut(
        [*_head(document), *(one for each in document.environments for one in _environment(each))], limit, whole
    )


def _head(document: ReviewDocument) -> Iterator[Block]:
    base = document.base
    named = "" if base.chosen else " (the default: none was named)"
    lines = [MARKER, "# What a deployment of this change does", ""]
    lines += ["| environment | | what happens |", "|---|---|---|"]
    for each in document.environments:
        phrases = "; ".join(
            f"**{text(one.text)}**" if one.level in {Level.LOOK, Level.CLOSE} else text(one.text)
            for one in each.verdict
        )
        lines.append(f"| {code(each.name)} | {SIGNS[each.level]} {each.level.value} | {phrases} |")
    lines += [
        "",
        f"Compared with the snapshots at {code(base.commit[:12])}, where this branch left {code(base.ref)}{named}.",
    ]
    lines += [f"{text(each)}" for each in document.notes]
    yield Block(text="\n".join([*lines, ""]))
    if document.matches:
        said = [line for word in match_groups(document) for line in _refused(word)]
        title = "## The policy refuses this"
        short = f"{title}\n\n" + ", ".join(code(each) for each in dict.fromkeys(one.policy for one in document.matches))
        yield Block(
            text="\n".join([title, "", *said, ""]),
            short=f"{short}\n",
            about="what each word of the policy matches",
            rank=_KEPT - 1,
        )


def _refused(word: MatchGroup) -> Iterator[str]:
    head = f"- {code(word.policy)} {text(word.environment)}"
    yield from (f"{head}: {text(each)}" for each in word.first)
    if word.rest:
        rest = "".join(f"\n  - {text(each)}" for each in word.rest)
        # An item that begins with the tag is HTML up to the empty line; behind words it would stand in a paragraph.
        named = f"<code>{escape(word.policy)}</code> {escape(word.environment)}"
        yield f"- <details><summary>{named}: {len(word.rest)} more</summary>\n{rest}\n\n  </details>\n"


def _environment(environment: EnvironmentEntry) -> Iterator[Block]:
    if environment.effect is None:
        return
    yield Block(text=f"## {code(environment.name)}\n")
    traffic = [f"- {code(each.endpoint)}: {text(' '.join(each.sentences))}" for each in shown_traffic(environment)]
    if traffic:
        yield Block(text="\n".join(["### Calls", "", *traffic, ""]))
    for title, lines in part_lists(environment):
        told = "\n".join(f"- {text(each)}" for each in lines)
        if len(lines) > SHORT:
            told = f"<details><summary>{len(lines)}</summary>\n\n{told}\n\n</details>"
        table = _cost_table(environment) if title == COST else ""
        listed = f"### {title}\n\n{table}{told}\n"
        yield Block(
            text=listed,
            short=f"### {title}: {len(lines)}\n",
            about=f"{title.lower()} of {environment.name}",
            rank=_KEPT - 1,
        )
    for effect, resources in groupby(environment.resources, key=lambda each: each.effect):
        yield from _group(environment.name, effect, tuple(resources))
    yield from _stacks(environment)
    findings = [f"- {text(each)}" for each in finding_words(environment)]
    if findings:
        yield Block(
            text="\n".join(["### Policy findings", "", *findings, ""]),
            short=f"### Policy findings: {len(findings)} change\n",
            about=f"policy findings of {environment.name}",
            rank=_KEPT - 1,
        )


def _cost_table(environment: EnvironmentEntry) -> str:
    rows = [f"| {' | '.join(map(text, cells))} |" for cells in cost_rows(environment.cost_table)]
    return "\n".join([f"| {' | '.join(COST_COLUMNS)} |", f"|{'---|' * len(COST_COLUMNS)}", *rows, "", ""])


def _group(environment: str, effect: Effect, resources: Sequence[ResourceEntry]) -> Iterator[Block]:
    yield Block(text=f"### {effect.value[0].upper()}{effect.value[1:]}: {len(resources)}\n")
    for each in resources:
        said = "".join(f" {text(one)}" for one in each.sentences)
        head = f"- {code(f'{each.stack}/{each.path}')} {each.type}{'.' if said else ''}{said}\n"
        yield Block(
            text=head + _indented(_properties(each.properties)),
            short=head,
            about=f"properties of {environment}/{each.stack}/{each.path}",
            rank=_RANKS.index(effect),
        )


def _stacks(environment: EnvironmentEntry) -> Iterator[Block]:
    lines = [one for stack in environment.stacks for one in _stack(stack)]
    if lines:
        yield Block(
            text="\n".join(["### Beside the resources", "", *lines, ""]),
            short="### Beside the resources: left out here\n",
            about=f"code, documents and outputs of {environment.name}",
            rank=0,
        )


def _stack(stack: StackEntry) -> Iterator[str]:
    for each in stack.files:
        yield f"- {code(f'{stack.name}/{each.path}')}: {text(file_words(each))}"
    for document in stack.documents:
        yield f"- {code(f'{stack.name}/{document.path}')}"
        yield _indented(_properties(document.members)).rstrip("\n")
    if stack.template:
        yield f"- {code(stack.name)}: other parts of the template"
        yield _indented(_properties(stack.template)).rstrip("\n")


def _properties(properties: Iterable[PropertyEntry]) -> str:
    """The differences in a fence, folded where they are long."""
    listed = list(properties)
    lines = [line for each in listed for line in _property(each)]
    if not lines:
        return ""
    ticks = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
    fence = "\n".join([f"{ticks}diff", *lines, ticks])
    if len(lines) <= SHORT:
        return f"\n{fence}\n\n"
    noun = "property" if len(listed) == 1 else "properties"
    return f"\n<details><summary>{len(listed)} {noun}</summary>\n\n{fence}\n\n</details>\n\n"


def _property(entry: PropertyEntry) -> Iterator[str]:
    note = property_note(entry)
    yield f"@@ {entry.name} @@{f' {note}' if note else ''}"
    if entry.follows is None:
        yield from (f"{each.sign} {each.text}".rstrip() for each in diff_lines(entry.before, entry.after))


def _indented(listed: str) -> str:
    """Inside the item of a list."""
    return "".join(f"  {line}" if line.strip() else line for line in listed.splitlines(keepends=True))


def code(value: str) -> str:
    """A name as it stands, in a list or a cell of a table."""
    plain = " ".join(value.split()).replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", plain)), default=0))
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{ticks}{pad}{plain}{pad}{ticks}"


def text(value: str) -> str:
    """A sentence whose signs mean nothing to Markdown, and that calls nobody by ``@``; names in it are code."""
    return " ".join(_word(each) for each in value.split())


def _word(word: str) -> str:
    """``s3:Get*,`` is code and a comma: escaped, it would be hard to read. Others are words."""
    opening = word[: len(word) - len(word.lstrip("("))]
    name = word[len(opening) :].rstrip(".,;:)")
    # In a table a bar ends the cell even in code, and a link is to stay one.
    if not _NAME.search(name) or "|" in name or name.startswith(("http://", "https://")):
        return _escaped(word)
    return f"{opening}{code(name)}{word[len(opening) + len(name) :]}"


def _escaped(word: str) -> str:
    plain = word.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", plain).replace("@", "@\u2060").replace("#", "#\u2060")


def _cut(blocks: Sequence[Block], limit: int, whole: str) -> str:
    left = list(blocks)
    order = sorted(
        (number for number, each in enumerate(left) if each.short is not None),
        key=lambda number: (left[number].rank, -number),
    )
    cut: list[str] = []
    for number in order:
        if _length(_joined(left, cut, whole)) <= limit:
            break
        block = left[number]
        cut.append(block.about)
        left[number] = replace(block, text=block.short or "")
    while _length(_joined(left, cut, whole)) > limit and len(left) > 1:
        left.pop()
        cut.append("")
    told = _joined(left, cut, whole)
    return told if _length(told) <= limit else f"{MARKER}\nThe report is too long for here. All of it is {whole}.\n"


def _joined(blocks: Iterable[Block], cut: Sequence[str], whole: str) -> str:
    told = "\n".join(each.text.rstrip("\n") + "\n" for each in blocks)
    if not cut:
        return told
    named = sorted({each for each in cut if each})
    listed = ", ".join(map(text, named[:5])) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
    rest = "" if all(cut) else ", and the last parts of it"
    return (
        f"{told}\n**Cut, for a comment takes {LIMIT:,} characters.** Left out: {listed}{rest}. All of it is {whole}.\n"
    )


def _length(told: str) -> int:
    return len(told.encode("utf-16-le")) // 2
