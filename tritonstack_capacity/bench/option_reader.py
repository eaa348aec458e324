"""What the command line's options say, and everything that is wrong with them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tritonstack.errors import Problem
from tritonstack_capacity.bench.load import Arrivals, Load, Phase, Rate, Users
from tritonstack_capacity.bench.payload import FORMATS, Format

MOST_USERS = 1000
MOST_PER_SECOND = 10_000.0
"""Calls a second: more than one process of this generator makes."""
_PHASE = re.compile(r"(\d+)(?:\+(\d+(?:\.\d+)?))?:(\d+(?:\.\d+)?)")


class OptionReader:
    """Reads what options say and keeps what is wrong with them."""

    def __init__(self, problems: Sequence[Problem] = ()) -> None:
        """``problems``: what was found before."""
        self.problems = list(problems)

    def refuse(self, field: str, *, found: str, allowed: str, advice: str = "") -> None:
        """Keep a problem."""
        self.problems.append(Problem(field=field, found=found, allowed=allowed, advice=advice))

    def above_zero(self, field: str, value: float | None) -> None:
        """Refuse a number that is none, or not above zero."""
        if value is not None and not 0 < value < math.inf:
            self.refuse(field, found=f"{value:g}", allowed="a number above zero")

    def users(self, text: str | None) -> tuple[Load, ...]:
        """``1,4,16``."""
        counts = self._numbers("--users", text)
        right = [each for each in counts if each.is_integer() and 1 <= each <= MOST_USERS]
        for each in counts:
            if each not in right:
                self.refuse("--users", found=f"{each:g}", allowed=f"whole numbers from 1 to {MOST_USERS}, as 1,4,16")
        return tuple(Users(count=int(each)) for each in right)

    def rates(self, text: str | None, arrivals: Arrivals) -> tuple[Load, ...]:
        """``10,50``: calls a second."""
        rates = self._numbers("--rate", text)
        right = [each for each in rates if 0 < each <= MOST_PER_SECOND]
        for each in rates:
            if each not in right:
                allowed = f"calls a second, above 0 and up to {MOST_PER_SECOND:g}, as 10,50"
                self.refuse("--rate", found=f"{each:g}", allowed=allowed)
        return tuple(Rate(per_second=each, arrivals=arrivals) for each in right)

    def phases(self, texts: Sequence[str]) -> tuple[Phase, ...]:
        """``2+2:1500``: two users, two more each minute, 1,500 seconds."""
        found = []
        for text in texts:
            parts = _PHASE.fullmatch(text)
            allowed = "users[+users a minute]:seconds, as 2+2:1500; at least one user and one second"
            if parts is None or int(parts[1]) < 1 or float(parts[3]) < 1:
                self.refuse("--phase", found=repr(text), allowed=allowed)
                continue
            phase = Phase(initial_users=int(parts[1]), users_per_minute=float(parts[2] or 0), seconds=float(parts[3]))
            if phase.initial_users + phase.users_per_minute * phase.seconds / 60 > MOST_USERS:
                self.refuse("--phase", found=repr(text), allowed=f"at most {MOST_USERS} users at its end")
            found.append(phase)
        return tuple(found)

    def formats(self, text: str) -> tuple[Format, ...]:
        """``binary``, ``json``, or ``both``."""
        return FORMATS if text == "both" else tuple(each for each in FORMATS if each == text)

    def _numbers(self, field: str, text: str | None) -> list[float]:
        if text is None:
            return []
        try:
            return list(dict.fromkeys(float(part) for part in text.split(",")))
        except ValueError:
            self.refuse(field, found=repr(text), allowed="numbers with commas between, as 1,4,16")
            return []
