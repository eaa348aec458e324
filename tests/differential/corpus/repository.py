"""A drawn repository, and what the kinds of them have in common."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.differential.corpus.configuration import Message, Word, text
from tests.models.folders import write

Files = dict[str, str | bytes]
"""Path → content; a path that ends with a slash is an empty folder."""

TYPES = ("FP32", "INT64", "INT32", "FP16")
RARELY, OFTEN = 0.15, 0.7
Value = TypeVar("Value")

PROGRAM = (
    "import triton_python_backend_utils as pb_utils\n\n\nclass TritonPythonModel:\n"
    "    def execute(self, requests):\n        return []\n"
)
ECHO = (
    "import triton_python_backend_utils as pb_utils\n\n\nclass TritonPythonModel:\n"
    "    def execute(self, requests):\n        return [pb_utils.InferenceResponse([]) for _ in requests]\n"
)
"""A program that answers a warm-up: each request has a response."""


def completing_program(lines: Sequence[str], *, decorator: str = "@staticmethod") -> str:
    """A program with an ``auto_complete_config`` of these lines, in which ``config`` is what it is given."""
    marked = f"    {decorator}\n" if decorator else ""
    body = "".join(f"        {line}\n" for line in lines)
    head = "class TritonPythonModel:\n"
    return PROGRAM.replace(head, f"{head}{marked}    def auto_complete_config(config):\n{body}\n")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One repository, of one kind."""

    name: str
    kind: str
    files: Mapping[str, str | bytes]

    def write(self, folder: Path) -> None:
        """Lay it out below an existing or new folder."""
        write(folder, self.files)


def drawn_name(draw: random.Random) -> str:
    """A model's name."""
    return "".join(draw.choice("abcdefgh") for _ in range(5))


def drawn_dims(draw: random.Random, *, least: int = 1) -> list[int]:
    """The dims of a tensor: ``least`` to three."""
    return [draw.choice([-1, 1, 2, 3, 5, 8]) for _ in range(draw.randint(least, 3))]


def tensor(name: str, kind: str, dims: list[int] | None, **more: object) -> Message:
    """An input or output; no ``data_type`` for an empty type, no ``dims`` for None."""
    found: Message = {"name": name} if name else {}
    found |= {"data_type": Word(f"TYPE_{kind}")} if kind else {}
    return found | ({} if dims is None else {"dims": dims}) | more


def seldom(draw: random.Random, usual: Value, *others: Value, chance: float = RARELY) -> Value:
    """Nearly always the usual value."""
    return draw.choice(others) if draw.random() < chance else usual


def plain_model(name: str, config: Message, *, program: str = PROGRAM) -> Files:
    """A Python model of these fields, with one input and one output unless they are given."""
    plain: Message = {
        "name": name,
        "backend": "python",
        "input": [tensor("x", "FP32", [4])],
        "output": [tensor("y", "FP32", [4])],
    }
    return {f"{name}/config.pbtxt": text(plain | config), f"{name}/1/model.py": program}
