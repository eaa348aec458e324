"""IAM's patterns: whether all that one matches is matched by another.

``*`` is any text, ``?`` any one sign. A reference (``${Bucket.Arn}``) is one sign of its own that only ``*`` and itself
match: what it will be is known when it is deployed.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SIGNS = re.compile(r"\$\{[^}]*\}|.", re.DOTALL)


@lru_cache(maxsize=65536)
def covers(wide: str, narrow: str) -> bool:
    """Whether every text that ``narrow`` matches is matched by ``wide``. Never True without being so."""
    if wide in (narrow, "*"):
        return True
    if "*" not in wide and "?" not in wide:
        return False
    return _covers(_signs(wide), _signs(narrow))


@lru_cache(maxsize=65536)
def may_meet(one: str, other: str) -> bool:
    """Whether some text is, or may be, matched by both. A reference may be any text."""
    first = ["*" if each.startswith("${") else each for each in _signs(one)]
    second = ["*" if each.startswith("${") else each for each in _signs(other)]
    reached = {(0, 0)}
    open_places = [(0, 0)]
    while open_places:
        mine, theirs = open_places.pop()
        for place in _steps(first, second, mine, theirs):
            if place not in reached:
                reached.add(place)
                open_places.append(place)
    return (len(first), len(second)) in reached


def is_wild(text: str) -> bool:
    """Whether a text holds a wildcard outside its references."""
    return any(each in {"*", "?"} for each in _signs(text))


def _steps(first: list[str], second: list[str], mine: int, theirs: int) -> list[tuple[int, int]]:
    """Where two patterns may stand after one step on a text that both match."""
    steps = []
    mine_star = mine < len(first) and first[mine] == "*"
    theirs_star = theirs < len(second) and second[theirs] == "*"
    if mine_star:
        steps.append((mine + 1, theirs))
    if theirs_star:
        steps.append((mine, theirs + 1))
    if mine < len(first) and theirs < len(second):
        if mine_star:
            steps.append((mine, theirs + 1))
        if theirs_star:
            steps.append((mine + 1, theirs))
        if "?" in (first[mine], second[theirs]) or first[mine] == second[theirs]:
            steps.append((mine + 1, theirs + 1))
    return steps


def _signs(text: str) -> list[str]:
    """The signs of a pattern; of wildcards in a row the ``?`` first and one ``*``, which is the same."""
    parts = _SIGNS.findall(text)
    signs: list[str] = []
    for part in parts:
        if part == "*" and signs and signs[-1] == "*":
            continue
        if part == "?" and signs and signs[-1] == "*":
            signs[-1:] = ["?", "*"]
        else:
            signs.append(part)
    return signs


def _covers(wide: list[str], narrow: list[str]) -> bool:
    """The usual greedy match of a glob, with the narrow pattern's signs as the text."""
    place = taken = 0
    star, from_star = -1, 0
    while taken < len(narrow):
        sign = narrow[taken]
        if place < len(wide) and wide[place] == "*":
            star, from_star = place, taken
            place += 1
        elif place < len(wide) and _one(wide[place], sign):
            place, taken = place + 1, taken + 1
        elif star >= 0:
            from_star += 1
            place, taken = star + 1, from_star
        else:
            return False
    return all(each == "*" for each in wide[place:])


def _one(wide: str, sign: str) -> bool:
    """Whether one sign is matched by one that is no ``*``."""
    return wide == sign or (wide == "?" and sign != "*" and not sign.startswith("${"))
