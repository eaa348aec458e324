"""The report as Markdown for a pull request: cut where GitHub would reject it, with where all of it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from tritonstack.errors import visible
from tritonstack.review.change import Effect, Level
from tritonstack.review.document import EnvironmentEntry, PropertyEntry, ResourceEntry, ReviewDocument, StackEntry
from tritonstack.review.views import wording
from tritonstack.review.views.wording import MatchGroup

MARKER = "<!-- tritonstack review -->"
"""The first line of a report, by which the workflow finds its comment."""
LIMIT = 65_536
"""Characters of a comment: a longer body is rejected ("body is too long (maximum is 65536 characters)")."""
WHOLE = "in the HTML page and the JSON of the same run"
SHORT = 8
"""Lines: a longer difference is folded."""
SIGNS = {Level.NOTHING: "⚪", Level.PLAIN: "🔵", Level.LOOK: "🟡", Level.CLOSE: "🔴"}
_RANKS = tuple(reversed(Effect))
"""Cut first where the report is too long: what hurts least."""
_LAST = len(_RANKS)
KEPT = "\n\t\u2060"
"""Signs that stay: line ends, which names lose before, tabs, and the joiner that :func:`text` puts behind ``@``."""
_TYPE = re.compile(r"[A-Za-z0-9]+(?:::[A-Za-z0-9]+)*")
# An ARN, an action, a pattern or a reference, not a word.
_NAME = re.compile(r"[*_\[]|\$\{|\w:+[\w*/]")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A piece of the report."""

    text: str  # all of it
    short: str | None = None  # takes its place where the report is too long; None: it stays whole
    rank: int = _LAST  # the lowest is cut first


def markdown(document: ReviewDocument, *, whole: str = WHOLE) -> str:
    """The report, of at most ``LIMIT`` characters in UTF-16. ``whole``: where all of it is, after "All of it is"."""
    blocks = [*_head(document), *(one for each in document.environments for one in _environment(each))]
    return _cut([_shown(each) for each in blocks], whole)


def _shown(block: Block) -> Block:
    """A fenced block in which untrusted names and values cannot end a line, move the cursor or reverse text.

    GitHub treats every Unicode line end as one, and it would end the fence.
    """
    short = None if block.short is None else visible(block.short, keep=KEPT)
    return replace(block, text=visible(block.text, keep=KEPT), short=short)


def _head(document: ReviewDocument) -> Iterator[Block]:
    base = document.base
    named = "" if base.chosen else " (the default: none was named)"
    lines = [MARKER, "# What a deployment of this change does", ""]
    lines += ["| environment | | what happens |", "|---|---|---|"]
    for row in _rows(document.environments):
        phrases = "; ".join(
            f"**{text(one.text)}**" if one.level in {Level.LOOK, Level.CLOSE} else text(one.text)
            for one in row[0].verdict
        )
        names = ", ".join(code(each.name) for each in row)
        lines.append(f"| {names} | {SIGNS[row[0].level]} {row[0].level.value} | {phrases} |")
    compared = (
        f"Compared with the snapshots at {code(base.commit[:12])}, where this branch left {code(base.ref)}{named}."
    )
    yield Block(text="\n".join([*lines, "", compared, *map(text, document.notes), ""]))
    if document.matches:
        title = "## The policy rejects this"
        words = ", ".join(code(each) for each in dict.fromkeys(one.policy for one in document.matches))
        yield Block(
            text="\n".join(
                [title, "", *(line for word in wording.match_groups(document) for line in _rejected(word)), ""]
            ),
            short=f"{title}\n\n{words}\n",
            rank=_LAST - 1,
        )


def _rows(environments: Sequence[EnvironmentEntry]) -> Iterator[list[EnvironmentEntry]]:
    """A row for each environment that changes, and one for all the others."""
    yield from ([each] for each in environments if each.level is not Level.NOTHING)
    still = [each for each in environments if each.level is Level.NOTHING]
    if still:
        yield still


def _rejected(word: MatchGroup) -> Iterator[str]:
    head = f"- {code(word.policy)} {text(word.environment)}"
    yield from (f"{head}: {text(each)}" for each in word.first)
    if word.rest:
        rest = "".join(f"\n  - {text(each)}" for each in word.rest)
        # An item that begins with the tag is HTML up to the empty line; behind words it would be in a paragraph.
        named = f"<code>{escape(' '.join(word.policy.split()))}</code> {escape(' '.join(word.environment.split()))}"
        yield f"- <details><summary>{named}: {len(word.rest)} more</summary>\n{rest}\n\n  </details>\n"


def _environment(environment: EnvironmentEntry) -> Iterator[Block]:
    if not environment.has_changes:
        return
    yield Block(text=f"## {code(environment.name)} {SIGNS[environment.level]} {environment.level.value}\n")
    if environment.settings:
        yield Block(text="\n".join([*_settings(environment), ""]))
    for section in wording.sections(environment):
        lines = [f"- {text(each)}" for each in section.shown]
        folded = [f"- {text(each)}" for each in section.folded]
        lines, folded = [*_table(section.rows), *lines], [*_table(section.folded_rows), *folded]
        head = [f"### {section.title}", *lines, ""] if lines else []
        fold = _folded(section.fold if lines else f"{section.title}: {section.fold}", folded)
        yield Block(
            text="\n".join([*head, *fold]),
            short=None
            if section.title in {wording.TRAFFIC, wording.STACKS}
            else f"### {section.title}: left out here\n",
            rank=_LAST - 1,
        )
    yield from _resources(environment)
    beside = [line for stack in environment.stacks for line in _stack(stack)]
    if beside:
        yield Block(
            text="\n".join(_folded("Besides the resources: code, documents, outputs", beside)),
            short="Besides the resources: left out here\n",
            rank=0,
        )


def _settings(environment: EnvironmentEntry) -> Iterator[str]:
    """The settings that change, a row each."""
    yield f"| {code(environment.settings[0].file)} | before → after | | what this alone does |"
    yield "|---|---|---|---|"
    for each in environment.settings:
        sign = "" if each.level is None else SIGNS[each.level]
        values = f"{text(wording.setting_value(each.before))} → {text(wording.setting_value(each.after))}"
        yield f"| {code(each.path)} | {values} | {sign} | {text(wording.setting_effect(each))} |"
    if any(each.effect is None for each in environment.settings):
        yield from ("", wording.UNTRIED)


def _resources(environment: EnvironmentEntry) -> Iterator[Block]:
    """Resources with risky effects by name; every property folded."""
    groups = wording.resource_groups(environment)
    if not groups:
        return
    named = []
    for effect, resources, reason in wording.hurt_lines(environment):
        names = ", ".join(f"{code(f'{each.stack}/{each.path}')} {_type(each)}" for each in resources)
        named.append(f"- {effect.value}: {names}{f'. {text(reason)}' if reason else ''}")
    head = f"### Resources: {text(wording.resource_counts(environment))}"
    yield Block(text="\n".join([head, *named, ""]), short=head, rank=_LAST - 1)
    yield Block(text="<details><summary>Every property that changes</summary>\n")
    for effect, group in groups:
        yield Block(text=f"#### {effect.value[0].upper()}{effect.value[1:]}: {len(group)}\n")
        for number, each in enumerate(group):
            if each.only_follows and not group[number - 1].only_follows:
                yield Block(text=f"{effect.value[0].upper()}{effect.value[1:]} {wording.FOLLOWING}:\n")
            head = f"- {_resource(each)}\n"
            yield Block(text=head + _properties(each.properties), short=head, rank=_RANKS.index(effect))
    yield Block(text="</details>\n")


def _resource(resource: ResourceEntry) -> str:
    reasons = "".join(f" {text(one)}" for one in resource.sentences)
    return f"{code(f'{resource.stack}/{resource.path}')} {_type(resource)}{'.' if reasons else ''}{reasons}"


def _type(resource: ResourceEntry) -> str:
    """A resource's type as it is where it looks like one; a template may have any text there."""
    return resource.type if _TYPE.fullmatch(resource.type) else code(resource.type)


def _folded(summary: str, lines: Sequence[str]) -> list[str]:
    """Lines in a block that opens on demand; none where there are none."""
    return (
        [f"<details><summary>{escape(' '.join(summary.split()))}</summary>", "", *lines, "", "</details>", ""]
        if lines
        else []
    )


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows of costs, with an empty line below; nothing without rows."""
    columns = wording.COST_COLUMNS
    cells = [f"| {' | '.join(map(text, each))} |" for each in rows]
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *cells, ""] if cells else []


def _stack(stack: StackEntry) -> Iterator[str]:
    for each in stack.files:
        yield f"- {code(f'{stack.name}/{each.path}')}: {text(wording.file_words(each))}"
    for document in stack.documents:
        yield f"- {code(f'{stack.name}/{document.path}')}"
        yield _properties(document.members).rstrip("\n")
    if stack.template:
        yield f"- {code(stack.name)}: other parts of the template"
        yield _properties(stack.template).rstrip("\n")


def _properties(properties: Sequence[PropertyEntry]) -> str:
    """The differences in a fence inside a list's item, folded where they are long."""
    lines = []
    for each in properties:
        note = wording.property_note(each)
        lines.append(" ".join(f"@@ {each.name} @@ {note or ''}".split()))
        if each.follows is None:
            lines += [f"{line.sign} {line.text}".rstrip() for line in wording.diff_lines(each.before, each.after)]
    if not lines:
        return ""
    ticks = "`" * max(3, 1 + _longest_run(lines))
    listed = f"{ticks}diff\n" + "\n".join(lines) + f"\n{ticks}"
    if len(lines) > SHORT:
        noun = "property" if len(properties) == 1 else "properties"
        listed = f"<details><summary>{len(properties)} {noun}</summary>\n\n{listed}\n\n</details>"
    return "".join(f"  {line}" if line.strip() else line for line in f"\n{listed}\n\n".splitlines(keepends=True))


def _longest_run(lines: Iterable[str]) -> int:
    return max((len(run) for line in lines for run in re.findall("`+", line)), default=0)


def code(value: str) -> str:
    """A name as code, in a list or a cell of a table."""
    plain = " ".join(value.split()).replace("|", "\\|") or " "
    ticks = "`" * (1 + _longest_run([plain]))
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{ticks}{pad}{plain}{pad}{ticks}"


def text(value: str) -> str:
    """A sentence without Markdown's or GitHub's special characters (``@``, ``#``); names in it are code."""
    return " ".join(_word(each) for each in value.split())


def _word(word: str) -> str:
    """``s3:Get*,`` is code and a comma: escaped, it would be hard to read. Others are words."""
    opening = word[: len(word) - len(word.lstrip("("))]
    name = word[len(opening) :].rstrip(".,;:)")
    # In a table a bar ends the cell even in code, and a link stays one.
    if _NAME.search(name) and "|" not in name and not name.startswith(("http://", "https://")):
        return f"{opening}{code(name)}{word[len(opening) + len(name) :]}"
    plain = word.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", plain).replace("@", "@\u2060").replace("#", "#\u2060")


def _units(value: str) -> int:
    """Characters as GitHub counts them: in UTF-16."""
    return len(value.encode("utf-16-le")) // 2


def _cut(blocks: list[Block], whole: str) -> str:
    texts = [each.text.rstrip("\n") + "\n" for each in blocks]
    size = sum(_units(each) + 1 for each in texts) - 1
    if size <= LIMIT:
        return "\n".join(texts)
    end = f"\n**Cut, for a comment takes {LIMIT:,} characters.** All of it is {whole}.\n"
    size += _units(end)
    order = [number for number, each in enumerate(blocks) if each.short is not None]
    for number in sorted(order, key=lambda number: (blocks[number].rank, -number)):
        if size <= LIMIT:
            break
        short = (blocks[number].short or "").rstrip("\n") + "\n"
        size += _units(short) - _units(texts[number])
        texts[number] = short
    while len(texts) > 1 and size > LIMIT:
        size -= _units(texts.pop()) + 1
    if size > LIMIT:
        return f"{MARKER}\nThe report is too long for here. All of it is {whole}.\n"
    return "\n".join(texts) + end
