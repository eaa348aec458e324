"""The page in a real browser: Chromium, headless. Skipped where the system has none (``.ci/run`` installs it)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from PIL import Image

from tests.monitoring.settings_of import ENDPOINTS, environment
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.errors import WorkFailedError
from tritonstack.monitoring.dashboard import dashboard_of
from tritonstack.monitoring.graphs import Dashboard
from tritonstack.monitoring.page import Figures, Span, page, read_samples
from tritonstack.pages import chromium
from tritonstack.pages.chromium import find_chromium, write_picture

needs_chromium = pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this system (apt install chromium)")


@pytest.fixture(scope="module")
def html(recorded_aws: Emulator) -> str:
    dashboard = dashboard_of(environment(ENDPOINTS["scaled"], ENDPOINTS["single-model, four GPUs"]), projects=None)
    span = Span.last(1.5, now=datetime.now(tz=UTC))
    read = read_samples(recorded_aws.client("cloudwatch"), dashboard, span)
    return page(dashboard, Figures(samples=read, span=span, local=True))


NARROWEST = 500
"""Pixels of Chromium's window, at least: a page for less is a narrower one in it."""
LAYOUT = """<script>
const box = each => each.getBoundingClientRect();
const figures = [...document.querySelectorAll("figure")];
const faults = [];
for (const each of figures) {
  const frame = box(each);
  for (const part of each.querySelectorAll("figcaption, svg, table, p")) {
    const inner = box(part);
    if (inner.left < frame.left - 1 || inner.right > frame.right + 1 || inner.bottom > frame.bottom + 1)
      faults.push(each.id + " overflows");
  }
  for (const line of each.querySelectorAll("polyline, circle, rect")) {
    const drawn = box(line), plane = box(line.ownerSVGElement);
    if (drawn.left < plane.left || drawn.right > plane.right || drawn.top < plane.top || drawn.bottom > plane.bottom)
      faults.push(each.id + " is drawn outside its plot");
    if (getComputedStyle(line).display === "none") faults.push(each.id + " hides a line");
  }
  if (each.dataset.points !== "0" && box(each.querySelector("svg")).height < 120) faults.push(each.id + " is flat");
}
const columns = new Set(figures.map(each => Math.round(box(each).left))).size;
const wide = document.documentElement.scrollWidth;
const loaded = performance.getEntriesByType("resource").length;
document.title = JSON.stringify({figures: figures.length, columns, wide, loaded, faults});
</script>"""


@needs_chromium
@pytest.mark.parametrize(("width", "columns"), [(1280, 3), (360, 1)])
def test_in_a_browser_every_graph_has_its_place_and_nothing_is_loaded(
    html: str, tmp_path: Path, recorded_dashboard: Dashboard, width: int, columns: int
) -> None:
    target, window = tmp_path / "page.html", max(width, NARROWEST)
    target.write_text(html.replace("</body>", f"<style>body {{ width: {width}px }}</style>{LAYOUT}</body>"))
    browser = find_chromium()
    assert browser is not None
    seen = chromium._run(browser, tmp_path, f"--window-size={window},800", "--dump-dom", target.as_uri())
    count = len(list(recorded_dashboard.graphs()))
    wanted = f'{{"figures":{count},"columns":{columns},"wide":{window},"loaded":0,"faults":[]}}'
    assert f"<title>{wanted}</title>" in seen.replace("&quot;", '"'), seen[:400]


@needs_chromium
def test_the_picture_is_1280_pixels_wide_as_high_as_the_page_and_has_the_lines_colours(
    html: str, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "page.png"
    write_picture(html, target)
    with Image.open(target) as picture:
        assert picture.width == 1280
        assert 2500 < picture.height < 6000
        colours = {colour for _, colour in picture.convert("RGB").getcolors(maxcolors=1 << 24) or []}
        # The page's own ground reaches to its last row: nothing is cut off below.
        assert picture.convert("RGB").getpixel((5, picture.height - 2)) == (0xF4, 0xF6, 0xF8)
    assert {(0x0B, 0x62, 0xA4), (0xD4, 0x55, 0x0A), (0x14, 0x8A, 0x62)} <= colours
    assert [each.name for each in target.parent.iterdir()] == ["page.png"]


@needs_chromium
def test_where_the_system_is_dark_so_is_the_page_with_lines_that_stand_out(html: str, tmp_path: Path) -> None:
    browser, source, target = find_chromium(), tmp_path / "page.html", tmp_path / "page.png"
    assert browser is not None
    source.write_text(html)
    dark = "--blink-settings=preferredColorScheme=0"
    chromium._run(browser, tmp_path, dark, "--window-size=1280,1400", f"--screenshot={target}", source.as_uri())
    with Image.open(target) as picture:
        assert picture.convert("RGB").getpixel((5, 5)) == (0x12, 0x16, 0x1B)
        colours = {colour for _, colour in picture.convert("RGB").getcolors(maxcolors=1 << 24) or []}
    assert {(0x5F, 0xB0, 0xEE), (0xF0, 0x8A, 0x4B), (0x45, 0xC1, 0x97)} <= colours


def as_browser(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str | None) -> None:
    """A PATH with nothing but this shell program as Chromium."""
    monkeypatch.setenv("PATH", str(folder))
    if program is not None:
        (folder / "chromium").write_text(f"#!/bin/sh\n{program}\n")
        (folder / "chromium").chmod(0o755)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (None, "apt-get install chromium"),
        ("echo no display >&2; exit 3", r"ended with 3:\nno display"),
        ("echo '<title>height 900</title>'", "wrote no picture"),
    ],
    ids=["no browser", "one that fails", "one that draws nothing"],
)
def test_a_browser_that_does_not_draw_is_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, message: str
) -> None:
    as_browser(tmp_path, monkeypatch, program)
    with pytest.raises(WorkFailedError, match=message):
        write_picture("<html><body></body></html>", tmp_path / "page.png")
    assert not (tmp_path / "page.png").exists()
