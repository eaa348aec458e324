"""The report as one HTML page: nothing is loaded from elsewhere, and no script runs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import jinja2
from markupsafe import Markup

from tritonstack.review.document import ReviewDocument
from tritonstack.review.entries import EnvironmentEntry, ResourceEntry
from tritonstack.review.entry_words import (
    COST,
    COST_COLUMNS,
    cost_rows,
    file_words,
    finding_words,
    match_groups,
    part_lists,
    property_note,
    shown_traffic,
)
from tritonstack.review.values import DiffLine, diff_lines
from tritonstack.review.verdict import BY_WEIGHT, Level

TEMPLATES = Path(__file__).parent / "templates"
SHORT = 14
"""Lines: a longer difference is folded."""
CLASSES = {Level.NOTHING: "nothing", Level.PLAIN: "plain", Level.LOOK: "look", Level.CLOSE: "close"}


def page(document: ReviewDocument) -> str:
    """The whole page; the same bytes for the same report."""
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8") + "".join(_filters())
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = {each.effect for one in document.environments for each in one.resources}
    return environment.get_template("page.html.j2").render(
        document=document,
        # Escaped, it would be another style than the digest's.
        style=Markup(style),  # noqa: S704 - of this package, nothing of a report is in it
        style_digest=digest,
        effects=[each for each in BY_WEIGHT if each in shown],
        classes=CLASSES,
        groups=_groups,
        matches=list(match_groups(document)),
        lines=_lines,
        short=SHORT,
        note=property_note,
        files=file_words,
        findings=finding_words,
        parts=part_lists,
        cost=COST,
        cost_columns=COST_COLUMNS,
        cost_rows=cost_rows,
        traffic=shown_traffic,
        slug=slug,
    )


def slug(value: str) -> str:
    """A value as part of an id: ``changed-in-place``."""
    return "".join(each if each.isalnum() else "-" for each in value.lower())


def _groups(environment: EnvironmentEntry) -> Iterator[tuple[str, list[ResourceEntry]]]:
    for effect, resources in groupby(environment.resources, key=lambda each: each.effect):
        yield effect.value, list(resources)


def _lines(before: str | None, after: str | None) -> tuple[DiffLine, ...]:
    return diff_lines(before, after)


def _filters() -> Iterator[str]:
    """What hides the resources of an effect whose box is not ticked."""
    for each in BY_WEIGHT:
        name = slug(each.value)
        yield f"body:has(#show-{name}:not(:checked)) .effect-{name} {{ display: none; }}\n"
