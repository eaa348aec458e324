"""Which of two fleets takes the next call while an update shifts traffic."""

from __future__ import annotations

from dataclasses import dataclass

_ROUNDING = 1e-9


@dataclass
class Split:
    """Gives the new fleet its share of the calls, evenly: at a quarter, every fourth call.

    SageMaker spreads calls over instances; with one container a fleet, the share decides. Without chance a test can
    count, and a small canary gets its first call as early as it can.

    Attributes:
        share: of the new fleet, 0 to 1.
    """

    share: float = 0.0
    _owed: float = 0.0

    def next_is_new(self) -> bool:
        """Whether the next call goes to the new fleet; ``count`` it once it does."""
        return self._owed + self.share >= 1 - _ROUNDING

    def count(self) -> None:
        """A call went where ``next_is_new`` said."""
        new = self.next_is_new()
        self._owed += self.share - (1 if new else 0)

    def end(self) -> None:
        """There is one fleet again."""
        self.share = self._owed = 0.0
