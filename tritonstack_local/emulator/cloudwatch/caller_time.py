"""Times of data as callers tell them, once the emulator's clock was moved.

Who writes and reads metrics (the runtime, a dashboard, a script) goes by the system's time, and an alarm by the
emulator's clock. What a caller says is a minute old is a minute old for an alarm too: times of data are shifted by the
whole minutes that the clock is ahead, on their way in, and back on their way out. Alarms' own times are the clock's, as
those of other services here.
"""

from __future__ import annotations

import time

from tritonstack_local.emulator.clock import clock

_MINUTE = 60
_JITTER_SECONDS = 0.5
"""The two clocks are read one after the other, and the system's may be corrected a little."""


def ahead_seconds() -> int:
    """The whole minutes, in seconds, that the emulator's clock is ahead of the system's."""
    return int(max(0.0, clock.now() - time.time() + _JITTER_SECONDS) // _MINUTE) * _MINUTE
