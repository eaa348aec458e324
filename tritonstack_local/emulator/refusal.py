"""A request that AWS would refuse."""

from __future__ import annotations


class RefusedError(Exception):
    """A refused request: AWS's error code, its sentence, and who says so.

    Attributes:
        code: AWS's error code (``ValidationException``).
        status: HTTP status, 400 but for what is not found or unavailable.
    """

    def __init__(self, code: str, message: str, *, source: str, status: int = 400) -> None:
        """``source`` names what the refusal rests on (a service model, a documentation page)."""
        super().__init__(f"{message} [source: {source}]")
        self.code = code
        self.status = status
