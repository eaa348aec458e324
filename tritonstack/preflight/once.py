"""A value that several checks need and one of them finds out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from tritonstack.read_only_aws import NotKnownError

Value = TypeVar("Value")


class Once(Generic[Value]):
    """Finds a value when it is first asked for; others wait for it, and get the same refusal."""

    def __init__(self, find: Callable[[], Value]) -> None:
        """``find`` may raise :class:`NotKnownError`."""
        self._find = find
        self._lock = threading.Lock()
        self._found: list[Value] = []
        self._refused: NotKnownError | None = None

    def get(self) -> Value:
        """The value. Raises :class:`NotKnownError` where AWS does not say."""
        with self._lock:
            if self._refused is not None:
                raise NotKnownError(
                    self._refused.found, advice=self._refused.advice, permission=self._refused.permission
                )
            if not self._found:
                try:
                    self._found.append(self._find())
                except NotKnownError as error:
                    self._refused = error
                    raise
            return self._found[0]
