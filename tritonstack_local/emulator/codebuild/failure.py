"""How a phase of a build ends before its time."""

from __future__ import annotations


class PhaseError(Exception):
    """A phase failed: its context as BatchGetBuilds shows it.

    Attributes:
        code: the context's status code (``COMMAND_EXECUTION_ERROR``).
        message: its message.
    """

    def __init__(self, code: str, message: str) -> None:
        """Both are what a reader of the build sees."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class InterruptedBuildError(Exception):
    """The build was stopped or is out of time.

    Attributes:
        status: ``STOPPED`` or ``TIMED_OUT``.
        code: the phase's context.
        message: the phase's context.
    """

    def __init__(self, status: str, code: str, message: str) -> None:
        """``status`` becomes the phase's and the build's."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
