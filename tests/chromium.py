"""Pages in a real browser: the system's Chromium, headless (``.ci/run`` installs it)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this system (apt install chromium)")


def open_page(html: str, folder: Path, *arguments: str, address: str = "") -> str:
    """What Chromium prints over a page, which is written to a folder together with Chromium's own files.

    ``address``: a URL to open, as a person types it, instead of that page.
    """
    page = folder / "page.html"
    page.write_text(html, encoding="utf-8")
    assert CHROMIUM is not None
    # Root has no sandbox in Chromium; the page is our own and loads nothing.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    always = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run"]
    command = [
        CHROMIUM,
        *always,
        *sandbox,
        f"--user-data-dir={folder / 'profile'}",
        *arguments,
        address or page.as_uri(),
    ]
    variables = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=folder, env=variables)
    return done.stdout
