"""``tritonstack docs``: the documentation's pages, as a clone and a wheel have them, in the terminal."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import click
from click.shell_completion import CompletionItem

from tritonstack.cli.conventions import echo, json_option, print_json
from tritonstack.errors import InputError, Problem, alike
from tritonstack.paths import LIBRARY, repository_path

FOLDER = "docs"
INDEX = f"{FOLDER}/README.md"
DECISIONS = "decisions"
WIDEST = 110
"""Columns of a page in a wider terminal: longer lines are hard to read."""

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^(#+) +(.*)$")
_ROW = re.compile(r"^\| \[[^\]]+\]\(([^)#]+)\) \| (.*) \|$|^- \[(?:\d+\. )?([^\]]+)\]\(([^)#]+)\)$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page of the documentation."""

    name: str  # as `tritonstack docs` takes it: ``updates``, ``reference/settings``, ``local/fidelity``
    source: str  # its path in the repository
    file: Path  # where it lies here

    @property
    def text(self) -> str:
        """The page's Markdown."""
        return self.file.read_text(encoding="utf-8")

    @property
    def summary(self) -> str:
        """Its line in the index, without links."""
        return _summaries().get(self.source, "")


@cache
def pages() -> dict[str, Page]:
    """Name → page, in the index's order: ``docs/`` but the index, and pages of the packages that extend this one."""
    docs = repository_path(FOLDER)
    files = {path.relative_to(docs).with_suffix("").as_posix(): path for path in sorted(docs.rglob("*.md"))}
    found = {
        name: Page(name, f"{FOLDER}/{name}.md", path) for name, path in files.items() if f"{FOLDER}/{name}.md" != INDEX
    }
    for path in sorted(LIBRARY.glob("tritonstack_*/*.md")):
        package = path.parent.name.removeprefix("tritonstack_")
        name = package if path.stem == "README" else f"{package}/{path.stem}"
        found[name] = Page(name, f"{path.parent.name}/{path.name}", path)
    order = {source: number for number, source in enumerate(_summaries())}
    return dict(sorted(found.items(), key=lambda item: order.get(item[1].source, len(order))))


def find_page(name: str) -> Page:
    """The page of a name, of its last part, of its path in the repository, or of a decision's number.

    Raises InputError: there is none, or several have that last part.
    """
    known = pages()
    wanted = name.removesuffix(".md").removeprefix(f"{FOLDER}/")
    if wanted in known:
        return known[wanted]
    last = [page for page in known.values() if PurePosixPath(page.name).name == wanted]
    numbered = f"{DECISIONS}/{wanted.zfill(4)}-" if wanted.isdecimal() else None
    last += [page for page in known.values() if numbered and page.name.startswith(numbered)]
    if len(last) == 1:
        return last[0]
    parts = {PurePosixPath(each).name: each for each in known} | {each: each for each in known}
    near = [page.name for page in last] or list(dict.fromkeys(parts[each] for each in alike(wanted, parts, most=5)))
    advice = f"tritonstack docs {near[0]}" if near else "tritonstack docs, which lists all pages"
    allowed = f"a page, such as {', '.join(near)}" if near else "a page of the list that `tritonstack docs` prints"
    raise InputError([Problem(field="PAGE", found=name, allowed=allowed, advice=advice)])


def heading_anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, spaces to hyphens, other signs left out."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def section(page: Page, anchor: str) -> str:
    """A heading of a page with what is below it. Raises InputError: the page has no such heading."""
    lines, fenced = page.text.splitlines(keepends=True), False
    headings: dict[str, tuple[int, int]] = {}  # anchor → line, level
    for number, line in enumerate(lines):
        fenced ^= line.startswith("```")
        if not fenced and (match := _HEADING.match(line)):
            headings.setdefault(heading_anchor(plain(match[2])), (number, len(match[1])))
    if anchor not in headings:
        near = alike(anchor, headings, most=3) or list(headings)
        advice = f"tritonstack docs {page.name}#{near[0]}, or the whole page: tritonstack docs {page.name}"
        problem = Problem(field="PAGE", found=f"{page.name}#{anchor}", allowed=", ".join(near), advice=advice)
        raise InputError([problem])
    start, level = headings[anchor]
    ends = [number for number, of in headings.values() if number > start and of <= level]
    return "".join(lines[start : min(ends, default=len(lines))]).rstrip() + "\n"


def with_commands(text: str, *, source: str) -> str:
    """Markdown whose links to other pages are the commands that print them; comments and pictures are left out.

    ``source``: the page's path in the repository, which links are relative to. Links within the page are their text.
    """
    names = {page.source: page.name for page in pages().values()}

    def replaced(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        path, _, anchor = target.partition("#")
        if picture:
            return f"(picture: {label})"
        if "://" in target:
            return target if label == target else f"{label} ({target})"
        if not path:
            return label
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if place == INDEX:
            return f"{label} (`tritonstack docs`)"
        if place in names:
            return f"{label} (`tritonstack docs {names[place]}{'#' if anchor else ''}{anchor}`)"
        return f"{label} (`{place}` of the repository)"

    parts = _FENCED.split(text)
    parts[::2] = [_LINK.sub(replaced, _COMMENT.sub("", part)) for part in parts[::2]]
    return "".join(parts)


def plain(text: str) -> str:
    """A line of Markdown as it is read: links are their text, code has no backticks."""
    return _LINK.sub(lambda match: match[2], text).replace("`", "")


@cache
def _summaries() -> dict[str, str]:
    """Path of a page in the repository → its line in the index."""
    found = {}
    for match in _ROW.finditer(repository_path(INDEX).read_text(encoding="utf-8")):
        target, text = (match[1], match[2]) if match[1] else (match[4], match[3])
        found[posixpath.normpath(posixpath.join(FOLDER, target))] = plain(text)
    return found


def _complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    named = [page for page in pages().values() if page.name.startswith(incomplete)]
    return [CompletionItem(page.name, help=page.summary) for page in named]


@click.command("docs", epilog="example: tritonstack docs troubleshooting#no-instances")
@click.argument("name", metavar="[PAGE]", required=False, shell_complete=_complete)
@json_option()
def docs_command(*, name: str | None, as_json: bool) -> None:
    """Print a PAGE of the documentation, or one section of it (PAGE#SECTION). Without PAGE, list all with a summary.

    `decisions` lists the records of decisions. In a terminal the page is drawn, and shown by $PAGER where it is longer
    than the screen; elsewhere it is printed as Markdown.
    """
    if name is None or name == DECISIONS:
        decisions = [page for page in pages().values() if page.name.startswith(f"{DECISIONS}/")]
        listed = decisions if name else [page for page in pages().values() if page not in decisions]
        if as_json:
            shown = listed if name else pages().values()
            print_json([{"page": each.name, "summary": each.summary} for each in shown])
            return
        rows = {each.name: each.summary for each in listed}
        if not name:
            rows[DECISIONS] = f"{len(decisions)} records of decisions, each with reasons and measurements"
        width = max(map(len, rows))
        echo("tritonstack docs PAGE prints one of:")
        for each, summary in rows.items():
            echo(f"  {each:<{width}}  {summary}")
        return
    named, _, anchor = name.partition("#")
    page = find_page(named)
    text = with_commands(section(page, anchor) if anchor else page.text, source=page.source)
    if as_json:
        print_json({"page": page.name, "summary": page.summary, "text": text})
    elif sys.stdout.isatty():
        _show(text)
    else:
        echo(text, nl=False)


def _show(text: str) -> None:
    """Draw Markdown, in a pager where it is longer than the screen."""
    from rich.console import Console  # noqa: PLC0415  (for --help nothing is drawn)
    from rich.markdown import Markdown  # noqa: PLC0415

    console = Console(width=min(shutil.get_terminal_size().columns, WIDEST))
    with console.capture() as drawn:
        console.print(Markdown(text, hyperlinks=False))
    os.environ.setdefault("LESS", "FRX")  # as git does: colours, and no pager for what fits on the screen
    click.echo_via_pager(drawn.get(), color=console.color_system is not None)
