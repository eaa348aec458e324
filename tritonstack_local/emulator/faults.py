"""Faults of the local AWS itself: logged, and one of many things that are looked at does not keep the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("tritonstack.emulator")


@contextmanager
def logged_faults(what: str) -> Iterator[None]:
    """Log an error in place of raising it: for one of several things that a thread in the background looks at."""
    try:
        yield
    except Exception:
        logger.exception("%s failed inside the local AWS", what)
