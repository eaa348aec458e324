"""What a review says about an opening: of a network, of data, of what runs in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OpeningKind(StrEnum):
    """What happens to it."""

    OPENED = "opened"
    CLOSED = "closed"
    OTHER = "other"
    """Changed, and neither side holds the other."""


@dataclass(frozen=True, kw_only=True)
class OpeningChange:
    """One opening.

    Attributes:
        kind: what happens to it.
        stack: the stack's name in its environment.
        name: what is open or closed: a construct path, or the name of a resource that is not of the app.
        sentence: what comes or goes, without its subject: ``lets in tcp 443 from 0.0.0.0/0``.
        logical_id: of the resource that says it, after the change or before it where it is gone.
    """

    kind: OpeningKind
    stack: str
    name: str
    sentence: str
    logical_id: str

    @property
    def order(self) -> tuple[object, ...]:
        """A place in a report: by stack, what opens first."""
        return (self.stack, list(OpeningKind).index(self.kind), self.name, self.sentence, self.logical_id)
