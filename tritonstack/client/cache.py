"""A small cache whose entries grow old, for values that many threads read and one service holds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

log = logging.getLogger(__name__)


@dataclass
class _Entry(Generic[Value]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    values: list[Value] = field(default_factory=list)  # none or one: None may be a value
    loaded_at: float = float("-inf")
    expires_at: float = float("-inf")


class TimedCache(Generic[Key, Value]):
    """Values that are loaded on demand, at most once at a time per key, and kept for a while. Thread safe.

    While one thread loads a key, others that need the same key wait for it; other keys go on.
    """

    def __init__(
        self,
        *,
        seconds: float,
        now: Callable[[], float],
        stale_errors: tuple[type[Exception], ...] = (),
        stale_seconds: float = 5.0,
    ) -> None:
        """Set how long a value is good.

        Args:
            seconds: how long a loaded value is used without asking again.
            now: a monotonic clock, in seconds.
            stale_errors: where loading raises one of these and an older value is known, that value is used.
            stale_seconds: for how long, before loading is tried again.
        """
        self._seconds = seconds
        self._now = now
        self._stale_errors = stale_errors
        self._stale_seconds = stale_seconds
        self._entries: dict[Key, _Entry[Value]] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, load: Callable[[], Value], *, loaded_since: float = float("-inf")) -> Value:
        """The value of ``key``, loaded if it is unknown, too old, or was loaded before ``loaded_since``.

        Raises:
            Whatever ``load`` raises, unless it is one of ``stale_errors`` and an older value is known.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
        with entry.lock:
            now = self._now()
            if entry.values and now < entry.expires_at and entry.loaded_at >= loaded_since:
                return entry.values[0]
            try:
                entry.values[:] = [load()]
            except self._stale_errors as error:
                if not entry.values:
                    raise
                log.warning("using an older value of %s: %s", key, error)
                entry.expires_at = self._now() + self._stale_seconds
            else:
                entry.loaded_at = now
                entry.expires_at = now + self._seconds
            return entry.values[0]
