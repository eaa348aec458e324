"""The page: in a real browser where there is one, and as text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.chromium import needs_chromium, open_page
from tests.review.reports import before, document, report
from tests.review.small import resource
from tritonstack.review.views.pages import page


@pytest.fixture(scope="module")
def html() -> str:
    return page(document(fail_on="replacement"))


def test_the_page_loads_nothing_and_runs_nothing(html: str) -> None:
    assert "<script" not in html
    assert re.findall(r'(?:src|srcset|href)="(?!#)[^"]*', html) == []
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'; style-src 'sha256-" in html


def test_text_of_a_template_is_no_markup(html: str) -> None:
    assert "<b>name" not in html
    assert "old &lt;b&gt;name" in html
    evil = "</style><script>alert(1)</script>"
    old, new = ({**before(), "T": resource("AWS::SNS::Topic", {"DisplayName": each})} for each in ("a", evil))
    assert "<script" not in page(report(old, new))


def test_every_link_of_the_contents_leads_somewhere_and_every_id_is_unique(html: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="#([^"]+)"', html)
    assert len(links) > 10
    assert set(links) <= set(ids)


# The page forbids scripts, and only this test adds one: without the policy, all else is unchanged.
LAYOUT = """<script>
const box = each => each.getBoundingClientRect();
const wide = document.documentElement.clientWidth;
const seen = () => [...document.querySelectorAll(".resource")].some(each => each.checkVisibility());
const folded = [seen()];
for (const each of document.querySelectorAll("details")) each.open = true;
folded.push(seen());
const faults = [];
for (const each of document.querySelectorAll("main :not(.wide *)"))
  if (box(each).width && box(each).right > wide + 1) faults.push(each.className || each.tagName);
const signs = [...document.querySelectorAll(".come .sign, .go .sign")].map(each => each.textContent);
const loaded = performance.getEntriesByType("resource").length;
const style = getComputedStyle(document.querySelector(".resource")).borderTopWidth;
document.title = JSON.stringify({scroll: document.documentElement.scrollWidth <= wide, faults, folded,
  signs: [...new Set(signs)].sort(), loaded, style});
</script>"""


@needs_chromium
@pytest.mark.parametrize("width", [1280, 500])
def test_in_a_browser_everything_has_its_place_and_properties_are_folded(html: str, tmp_path: Path, width: int) -> None:
    free = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", html).replace(
        "</body>", f"{LAYOUT}</body>"
    )
    seen = open_page(free, tmp_path, f"--window-size={width},900", "--dump-dom")
    [title] = re.findall(r"<title>(\{.*\})</title>", seen)
    assert json.loads(title.replace("&quot;", '"')) == {
        "scroll": True,
        "faults": [],
        "folded": [False, True],
        "signs": ["+", "\N{MINUS SIGN}"],
        "loaded": 0,
        "style": "1px",
    }
