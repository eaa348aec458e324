"""What the linter says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonstack.errors import Problem
from tritonstack.models.lint.registry import Category, Level, rule


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """One finding. What the rule says of itself (level, category, explanation) stands in the rule's own file.

    Attributes:
        file: the file or folder it is about.
        line: the line in it, from 1; 0 for the whole file.
        column: the column in the line, from 1; 0 where it is not known.
        rule: the rule's id, words joined by hyphens: ``rules/<id>.md`` explains it.
        found: what stands there.
        allowed: what may stand there.
        advice: what to do, where that does not follow from ``allowed``.
    """

    file: Path
    line: int = 0
    column: int = 0
    rule: str
    found: str
    allowed: str
    advice: str = ""

    @property
    def level(self) -> Level:
        """``error``: Triton or SageMaker refuses it, or serves something else; ``warning``: it works, not as meant."""
        return rule(self.rule).level

    @property
    def category(self) -> Category:
        """Whose rule it is: what of Triton or SageMaker would refuse, or the house."""
        return rule(self.rule).category

    def __str__(self) -> str:
        numbers = [str(number) for number in (self.line, self.column) if number]
        place = ":".join([str(self.file), *numbers])
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
