"""What every test may count on."""

from __future__ import annotations

import signal

# A suite that is started in the background, as some runners do, is started with Ctrl-C ignored, and so is every program
# that it starts; tests that interrupt one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
