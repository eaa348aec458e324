"""Names, types, tags and values of a template are untrusted: no view of a review executes or renders them."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.review.reports import report
from tests.review.small import resource
from tritonstack.cli.safe_console import SafeConsole
from tritonstack.review.views.markdown import markdown
from tritonstack.review.views.pages import page, show

SIGNS = "\x1b\x9b\x07\x08\x7f\r\u2028\u202e\u2066\u200b\ufeff"
"""Escape sequences of a terminal, line ends that are not ours, directions and characters without a width."""
ATTACKS = [
    "\x1b]0;title\x07\x1b[2J\x1b[31mred",
    "a\r\n# heading\n<img src=x onerror=alert(1)>",
    "```\n</details><script>alert(1)</script>",
    "`x` **b** [a](javascript:alert(1)) ![i](http://evil/x.png) | c | @team #1",
    "\u202eevil\u2066 \u200b\ufeff\u2028 z",
    "{{ 7 * 7 }}{% raw %}&lt;",
    "Custom::<img src=x>",
]


def templates(attack: str) -> tuple[dict[str, Any], dict[str, Any]]:
    tags = [{"Key": attack, "Value": attack}]
    before = {
        f"Id{attack}": resource(f"AWS::{attack}", {"Name": "a", attack: attack[::-1], "Tags": tags}),
        f"Gone{attack}": resource(attack, {"Text": attack}),
        "Bucket": resource("AWS::S3::Bucket", {"BucketName": attack}),
    }
    after = {
        f"Id{attack}": resource(
            f"AWS::{attack}", {"Name": attack, attack: "line\n" * 20 + attack, "Tags": [*tags, *tags]}
        ),
        "New": resource(attack, {"Text": attack}),
        "Bucket": resource("AWS::S3::Bucket", {"BucketName": f"{attack}-2"}),
    }
    return before, after


def refuse_acting(text: str, *, signs: str = SIGNS) -> None:
    assert [sign for sign in signs if sign in text] == []


def of_html(text: str) -> set[str]:
    """The tags that a report has as Markdown's HTML."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    parts = [each for token in tokens for each in (token, *(token.children or ()))]
    html = "".join(part.content for part in parts if part.type in ("html_block", "html_inline"))
    return set(re.findall(r"</?([a-zA-Z!-]+)", html))


def check(attack: str) -> None:
    document = report(*templates(attack))
    written = markdown(document)
    refuse_acting(written)
    assert of_html(written) <= {"details", "summary", "code", "!--"}
    tokens = MarkdownIt("commonmark").enable("table").parse(written)
    links = [part.attrs for token in tokens for part in token.children or () if part.type in ("link_open", "image")]
    assert links == []
    html = page(document)
    refuse_acting(html)
    assert re.findall(r"<(?:script|img)", html) == []
    terminal = io.StringIO()
    show(document, SafeConsole(file=terminal, force_terminal=True, width=200, highlight=False, markup=False))
    refuse_acting(re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()))


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_a_template_names_acts_in_no_view(attack: str) -> None:
    check(attack)


@given(st.text(st.sampled_from([*SIGNS, *"\n`<>|*_[]()!#@&\\- aA:"]), min_size=1, max_size=30))
@settings(max_examples=40, deadline=None)
def test_no_mixture_of_signs_acts_in_a_view(attack: str) -> None:
    check(attack)
