"""A picture of a page, by a Chromium that the system has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tritonstack.errors import WorkFailedError

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH = 1280
SECONDS = 60
HIGHEST = 16_000
"""Pixels: a texture that Chromium still draws in one piece."""
MEASURE = "<script>document.title = 'height ' + document.documentElement.scrollHeight</script>"


def find_chromium() -> Path | None:
    """The browser, or None where the system has none."""
    found = next((path for path in map(shutil.which, PROGRAMS) if path is not None), None)
    return None if found is None else Path(found)


def write_picture(html: str, target: Path) -> None:
    """Draw a whole page at a width of 1280 pixels as PNG.

    Raises WorkFailedError where there is no Chromium, or it draws nothing.
    """
    browser = find_chromium()
    if browser is None:
        raise WorkFailedError(
            "no Chromium on this system to draw the page with\n"
            f"  looked for: {', '.join(PROGRAMS)} on PATH\n"
            "  do:         apt-get install chromium, or open the page without --png in any browser"
        )
    with tempfile.TemporaryDirectory(prefix="page-") as name:
        folder = Path(name)
        page = folder / "page.html"
        page.write_text(html.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
        document = _run(browser, folder, f"--window-size={WIDTH},800", "--dump-dom", page.as_uri())
        measured = re.search(r"<title>height (\d+)</title>", document)
        if measured is None:
            raise WorkFailedError("Chromium did not run the page's measuring script")
        height = min(int(measured[1]), HIGHEST)
        page.write_text(html, encoding="utf-8")
        drawn = folder / "page.png"
        _run(browser, folder, f"--window-size={WIDTH},{height}", f"--screenshot={drawn}", page.as_uri())
        if not drawn.is_file():
            raise WorkFailedError(f"{browser} wrote no picture")
        target.parent.mkdir(parents=True, exist_ok=True)
        whole = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            shutil.copyfile(drawn, whole)
            whole.replace(target)
        finally:
            whole.unlink(missing_ok=True)


def _run(browser: Path, folder: Path, *arguments: str) -> str:
    # Root has no sandbox in Chromium; the page is our own and loads nothing.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [
        str(browser),
        "--headless",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--no-first-run",
        f"--user-data-dir={folder / 'profile'}",
        *sandbox,
        *arguments,
    ]
    variables = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SECONDS, cwd=folder, env=variables
        )
    except subprocess.TimeoutExpired as error:
        raise WorkFailedError(f"{browser} did not end within {SECONDS} seconds") from error
    if done.returncode != 0:
        raise WorkFailedError(f"{browser} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout
