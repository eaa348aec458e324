"""Names of directories and of tensors: which of them come through."""

from __future__ import annotations

from tests.differential.bases import CHAIN, DOUBLE
from tests.differential.repository import Change, Mutation, move, swap


def _called(name: str) -> tuple[Change, ...]:
    """Give the model's directory, and the configuration in it, another name."""
    return (move("double", name), swap('"double"', f'"{name}"', file=f"{name}/config.pbtxt"))


NAMES = (
    Mutation("directory-with-a-leading-dash", DOUBLE, _called("-double")),
    Mutation("directory-with-a-leading-dot", DOUBLE, _called(".double")),
    Mutation("directory-with-a-plus", DOUBLE, _called("dou+ble")),
    Mutation("directory-with-an-at-sign", DOUBLE, _called("dou@ble")),
    Mutation("directory-with-an-equals-sign", DOUBLE, _called("dou=ble")),
    Mutation("directory-with-a-comma", DOUBLE, _called("dou,ble")),
    Mutation("directory-with-a-colon", DOUBLE, _called("dou:ble")),
    Mutation("directory-with-a-percent-sign", DOUBLE, _called("dou%ble")),
    Mutation("directory-with-a-tilde", DOUBLE, _called("~double")),
    Mutation("directory-of-digits", DOUBLE, _called("123")),
    Mutation("directory-with-brackets", DOUBLE, _called("dou[b]le")),
    Mutation("directory-with-a-leading-hash", DOUBLE, _called("#double")),
    Mutation("directory-with-braces", DOUBLE, _called("dou{b}le")),
    Mutation("directory-with-a-question-mark", DOUBLE, _called("dou?ble")),
    Mutation(
        "step-with-a-dash-and-a-dot",
        CHAIN,
        (move("two", "t-w.o"), swap('"two"', '"t-w.o"', file="t-w.o/config.pbtxt"), swap('"two"', '"t-w.o"')),
    ),
    Mutation("tensor-with-a-space", DOUBLE, swap('name: "x"', 'name: "a b/c:d"')),
    Mutation("tensor-with-a-nul", DOUBLE, swap('name: "x"', 'name: "a\\0b"')),
    Mutation("tensor-with-a-long-name", DOUBLE, swap('name: "x"', 'name: "' + "x" * 5000 + '"')),
    Mutation("tensor-with-a-newline", DOUBLE, swap('name: "x"', 'name: "a\\nb"')),
)
