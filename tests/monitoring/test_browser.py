"""The page in a real browser, where the system has one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.chromium import needs_chromium, open_page
from tests.monitoring.settings_of import ENDPOINTS, environment
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.monitoring.dashboard import dashboard_of
from tritonstack.monitoring.graphs import Dashboard
from tritonstack.monitoring.page import Figures, Span, page, read_samples


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
    window = max(width, NARROWEST)
    measured = html.replace("</body>", f"<style>body {{ width: {width}px }}</style>{LAYOUT}</body>")
    seen = open_page(measured, tmp_path, f"--window-size={window},800", "--dump-dom")
    count = len(list(recorded_dashboard.graphs()))
    wanted = f'{{"figures":{count},"columns":{columns},"wide":{window},"loaded":0,"faults":[]}}'
    assert f"<title>{wanted}</title>" in seen.replace("&quot;", '"'), seen[:400]
