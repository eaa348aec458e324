"""Conventions of all commands: environment option, JSON and tables."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from tritonstack.errors import DeclinedError, InputError, Problem, visible
from tritonstack.paths import find_project

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Command = TypeVar("Command", bound=Callable[..., Any])
LOCAL = "local"
"""The environment of a command that is given none."""
FILE_WIDTH = 100_000
"""Columns where the output is no terminal: more than any row has."""
BOX_WIDTH = 120
"""Columns of what has a frame, where the output is no terminal: a frame as long as its longest line is no frame."""

local_option = click.option(
    "--local", is_flag=True, help="Use the local AWS, whatever the shell's AWS settings. Implied by environment local."
)
"""An option of commands that send requests to AWS: any environment may be deployed to the local AWS."""

package_option = click.option(
    "--package",
    "packages",
    multiple=True,
    help="Package that a Python model needs, beside those in its requirements.txt or pyproject.toml. May be repeated.",
)
"""An option of commands that lock a Python model's packages."""


def environment_option(
    text: str = "Name of the environment, whose file is environments/NAME.yaml.", *, default: str | None = LOCAL
) -> Callable[[Command], Command]:
    """The option ``-e/--environment``; no command takes an environment in another way.

    ``default``: None where a command also works without an environment; ``text`` then describes how.
    """
    return click.option(
        "--environment",
        "-e",
        metavar="ENVIRONMENT",
        default=default,
        show_default=default is not None,
        shell_complete=_environments,
        help=text,
    )


def _environments(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    project = find_project()
    names = sorted(path.stem for path in (project / "environments").glob("*.yaml")) if project else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def ask(question: str) -> None:
    """Ask at the terminal. Raises DeclinedError after a no."""
    if not click.confirm(question, err=True):
        raise DeclinedError


def confirm(question: str, *, yes: bool, command: str) -> None:
    """Ask before something is deleted, or costs; ``yes``: without the question. ``command``: the one that asks nothing.

    Raises InputError where there is no terminal, and DeclinedError after a no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        found, allowed = "a question, and standard input is no terminal", "a terminal, or --yes"
        raise InputError([Problem(found=found, allowed=allowed, advice=command)])
    ask(question)


def json_option(text: str = "Print JSON instead of text.") -> Callable[[Command], Command]:
    """The flag ``--json``, the parameter ``as_json``; every command that prints results has it."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def json_text(document: Any) -> str:
    """A result as JSON, indented."""
    return visible_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def visible_json(text: str) -> str:
    """The same JSON without characters that a terminal acts on, or does not show, in its texts."""
    return "".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text)


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line. What a terminal acts on, or does not show, is printed as its escape: texts may be anybody's."""
    click.echo(visible(str(text)), err=err, nl=nl)


def print_json(document: Any) -> None:
    """Print a result as JSON."""
    click.echo(json_text(document), nl=False)


def result_console(*, stderr: bool = False) -> Console:
    """The console of a command's tables and sentences.

    As wide as the terminal; where the output is none, every row and every sentence is one line, whatever its length,
    and ends with its last character.
    """
    from tritonstack.cli.safe_console import SafeConsole  # noqa: PLC0415  (for --help nothing is drawn)

    file = sys.stderr if stderr else sys.stdout
    if file.isatty():
        return SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    return SafeConsole(
        file=cast("TextIO", _Unpadded(file)), width=FILE_WIDTH, highlight=False, markup=False, emoji=False
    )


def box_width(console: Console) -> int:
    """Columns of what has a frame: those of the terminal, else ``BOX_WIDTH``."""
    return console.width if console.is_terminal else BOX_WIDTH


def plain_table(
    columns: Sequence[str], rows: Iterable[Iterable[str | Text]], *, title: str = "", numbers: int = 0
) -> Table:
    """A table whose cells fold where the terminal is narrow. ``numbers``: how many of the last columns hold numbers."""
    from rich import box  # noqa: PLC0415  (as above)
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    named = Text(title) if title else None
    table = Table(title=named, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        table.add_column(column, overflow="fold", justify="right" if index >= len(columns) - numbers else "left")
    for cells in rows:
        # made visible here, too: a column is as wide as its text before the console sees it
        table.add_row(*(Text(visible(cell)) if isinstance(cell, str) else cell for cell in cells))
    return table


_FILLED = re.compile(rf"[ \t]+$|(?<=^[ ─]{{{BOX_WIDTH}}})─+[ \t]*$", re.MULTILINE)
"""Blanks at the end of a line, and of a table's rule what is beyond ``BOX_WIDTH``."""


class _Unpadded:
    """A file, but for what fills up a table as wide as its longest row: blanks, and the ends of its rules."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write whole lines, as rich gives them."""
        return self._file.write(_FILLED.sub("", text))
