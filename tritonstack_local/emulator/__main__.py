"""``python -m tritonstack_local.emulator``: serve the local AWS until SIGTERM.

Environment variables: see ``settings.EmulatorSettings``. MiniStack reads its own when it is imported, which is why the
server is imported only once they are set.
"""

from __future__ import annotations

import os
import sys
import tempfile

from tritonstack_local.emulator.settings import EmulatorSettings
from tritonstack_local.leftovers import FOLDER, owner_mark, sweep_emulator


def main() -> int:
    """Serve; 0 after SIGTERM, 2 for a wrong setting."""
    try:
        settings = EmulatorSettings.read(os.environ)
    except ValueError as error:
        print(error, file=sys.stderr)  # noqa: T201  the process's only message
        return 2
    settings.temporary.mkdir(parents=True, exist_ok=True)
    sweep_emulator(settings.temporary)
    mine = f"{FOLDER}{owner_mark(os.getpid())}"
    with tempfile.TemporaryDirectory(prefix=mine, dir=settings.temporary, ignore_cleanup_errors=True) as folder:
        settings.export(folder)
        tempfile.tempdir = folder
        from tritonstack_local.emulator import server  # noqa: PLC0415  only now: see above

        return server.serve(settings)


if __name__ == "__main__":
    sys.exit(main())
