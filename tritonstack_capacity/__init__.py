"""Capacity: load tests, sizing, simulation and prices of endpoints; the commands ``tritonstack capacity …``."""

from __future__ import annotations

from tritonstack.errors import Problem, TritonstackError


class LimitMissedError(TritonstackError):
    """The input is valid, and no result keeps the limit that it sets. Commands end with exit code 1."""

    def __init__(self, problem: Problem) -> None:
        """``problem``: the limit, the value that was reached, and what to do."""
        self.problem = problem
        super().__init__(str(problem))
