"""A self-contained HTML page: header, sections of figures, tables and lists. It loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from tritonstack.errors import visible
from tritonstack.pages.charts import Line, key


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A chart with its title and legend."""

    title: str
    unit: str  # above the chart, next to the title
    picture: str = ""  # the SVG element; empty where there is no data
    key: str = ""  # unique on the page
    points: int | None = None  # how many points are drawn
    legend: Sequence[Line] = ()  # lines to name; a table where there are ``columns``
    columns: Sequence[str] = ()  # heads of the legend's columns
    cells: Sequence[Sequence[str]] = ()  # a row of values for each line
    note: str = ""  # below the chart, or in its place


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows in groups, a line between two groups. ``left``: columns of text, which come first."""

    columns: Sequence[str]
    groups: Sequence[Sequence[Sequence[str]]]
    left: int = 1


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page, in this order: notes, tiles (value, name), figures, table, list."""

    title: str = ""
    notes: Sequence[str] = ()
    tiles: Sequence[tuple[str, str]] = ()
    figures: Sequence[Figure] = ()
    table: Table | None = None
    items: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """``lines`` are next to the title; a browser loads the page again after ``refresh_seconds``."""

    title: str
    lines: Sequence[str]
    sections: Sequence[Section]
    refresh_seconds: int | None = None


def render(page: Page) -> str:
    """The whole document, the same bytes for the same page."""
    return templates().get_template("page.html.j2").render(page=page, key=key)


@cache
def templates(*folders: Path) -> jinja2.Environment:
    """Templates of ``folders``, which may extend ``page.html.j2`` (blocks ``head``, ``style``, ``content``)."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, Path(__file__).parent]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    """A value of a page: text without characters that a browser does not show, or that turn what follows around."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value, keep="\n\t\u202f")  # the blank between thousands
    return value
