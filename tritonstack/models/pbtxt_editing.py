"""Fields of ``config.pbtxt`` replaced in its text, whose other fields, comments and order stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from tritonstack.models.pbtxt import Token, tokens

_OPENING, _CLOSING = frozenset("{<["), frozenset("}>]")


def with_fields(text: str, fields: Mapping[str, str]) -> str:
    """The text with other top-level fields: name → what stands in place of all its occurrences, or at the end.

    ``text`` is one that :func:`tritonstack.models.pbtxt.parse` reads.
    """
    left, parts, at = dict(fields), [], 0
    for name, start, end in _spans(text):
        if name not in fields:
            continue
        new = left.pop(name, "").rstrip("\n")
        line = text.rfind("\n", 0, start) + 1
        is_line = not new and not text[line:start].strip() and text[end : end + 1] == "\n"
        parts += [text[at : line if is_line else start], new]
        at = end + is_line
    changed = "".join([*parts, text[at:]])
    added = "\n".join(new.rstrip("\n") for new in left.values() if new)
    return f"{changed.rstrip()}\n{added}\n" if added else changed


def _spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of each field of the outermost message, its separator included."""
    lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    found = list(tokens(text))

    def start(token: Token) -> int:
        return lines[token.line - 1] + token.column - 1

    at = 0
    while found[at].kind != "end":
        first, last = found[at], _end(found, at)
        yield first.text, start(first), start(found[last]) + len(found[last].text)
        at = last + 1


def _end(found: Sequence[Token], at: int) -> int:
    """Where the field ends whose name is token ``at``: at the last token of its value, or the separator behind it."""
    at += 1
    at += found[at].text == ":"
    if found[at].kind == "mark" and found[at].text in _OPENING:
        depth = 0
        while True:
            is_mark = found[at].kind == "mark"
            depth += (is_mark and found[at].text in _OPENING) - (is_mark and found[at].text in _CLOSING)
            if depth == 0:
                break
            at += 1
    else:
        at += found[at].kind == "mark"  # a minus
        while found[at].kind == found[at + 1].kind == "string":  # side by side they are one
            at += 1
    behind = found[at + 1]
    return at + (behind.kind == "mark" and behind.text in ",;")
