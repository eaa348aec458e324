"""A reader of texts of a small language, whose errors name the place."""

from __future__ import annotations

import re


class SyntaxProblemError(ValueError):
    """A text that is not of its language, or not of the part of it that is evaluated here; the text is the reason."""


class Reader:
    """A place in a text. Blanks before what is asked for are skipped; patterns are of ASCII's letters and digits."""

    def __init__(self, text: str, *, what: str) -> None:
        """``what``: what the text is, for messages."""
        self.text = text
        self._what = what
        self._at = 0

    def sees(self, regex: str) -> re.Match[str] | None:
        """What stands here; None where something else does."""
        self._at = len(self.text) - len(self.text[self._at :].lstrip())
        return re.compile(regex, re.ASCII).match(self.text, self._at)

    def take(self, regex: str) -> re.Match[str] | None:
        """What stands here, and go on behind it; None where something else does."""
        match = self.sees(regex)
        if match is not None:
            self._at = match.end()
        return match

    def need(self, regex: str, allowed: str) -> re.Match[str]:
        """What stands here. Raises SyntaxProblemError where something else does; ``allowed``: in words."""
        match = self.take(regex)
        if match is None:
            raise self.problem(f"{self._here()} where {allowed} is expected")
        return match

    def is_at_end(self) -> bool:
        """Whether nothing but blanks is left."""
        return self.sees(r"\Z") is not None

    def need_end(self, allowed: str) -> None:
        """Raises SyntaxProblemError where anything is left; ``allowed``: what could follow, in words."""
        if not self.is_at_end():
            raise self.problem(f"{self._here()} where {allowed} is expected")

    def problem(self, sentence: str) -> SyntaxProblemError:
        """An error with the whole text."""
        return SyntaxProblemError(f"{self._what} {self.text.strip()}: {sentence}")

    def _here(self) -> str:
        return self.text[self._at :].strip()[:20] or "the end"


def unescaped(quoted: str) -> str:
    """The content of a text in quotes, where a backslash escapes the next character."""
    return re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
