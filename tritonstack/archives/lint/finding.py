"""What the linter says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonstack.errors import Problem


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """One finding.

    Attributes:
        file: the file or folder it is about.
        line: the line in it, from 1; 0 for the whole file.
        rule: the rule's name, in words joined by hyphens.
        level: ``error``: Triton or SageMaker refuses it, or serves something else; ``warning``: it works, not as meant.
        found: what stands there.
        allowed: what may stand there.
        advice: what to do, where that does not follow from ``allowed``.
    """

    file: Path
    line: int = 0
    rule: str
    level: Literal["error", "warning"] = "error"
    found: str
    allowed: str
    advice: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else str(self.file)
        text = f"{place}: {self.level}: {self.found}; allowed: {self.allowed}"
        return f"{text}; {self.advice} [{self.rule}]" if self.advice else f"{text} [{self.rule}]"

    def problem(self) -> Problem:
        """The finding as a problem of an :class:`InputError`."""
        return Problem(
            file=str(self.file),
            field=f"line {self.line}" if self.line else "",
            found=f"{self.found} [{self.rule}]",
            allowed=self.allowed,
            advice=self.advice,
        )
