"""README's picture of a terminal: an SVG of a recorded run.

``python -m scripts.documentation.terminal_picture`` runs the commands anew and writes what they print to
``docs/pictures/demo.txt``; ``make docs`` draws it. It has the colours of a terminal on light and on dark pages.
"""

from __future__ import annotations

import io
import os
import subprocess

from rich.console import Console
from rich.highlighter import RegexHighlighter
from rich.text import Text
from rich.theme import Theme

from tritonstack.paths import repository_path, write_text

RECORDING = "docs/pictures/demo.txt"
PICTURE = "docs/pictures/demo.svg"
COMMANDS = (
    "make demo",
    "tritonstack invoke digits-ensemble --input model_repos/digits-ensemble/sample/digit.png",
)
COLUMNS = 96
PROMPT, UNDER_WAY, SETUP, LEFT_OUT = "$ ", "… ", "set", "[…]"
"""How lines begin: of commands; of steps that go on, which a terminal replaces when they end; of the set-up."""
LAST = "Endpoint "
"""With this line the demo's text after its table begins."""

SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<!-- Drawn from docs/pictures/demo.txt by `make docs`; do not edit. -->
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's template without its fonts from the network, which a page's picture may not load."""


class Colours(RegexHighlighter):
    """What a terminal shows in colour."""

    highlights = (r"^(?P<prompt>\$) (?P<command>.*)", r"^(?P<done>✓) .*?(?P<time>  [\d.]+ s.*)$", r"^(?P<time>\[…\])$")


THEME = Theme({"prompt": "green", "command": "bold", "done": "green", "time": "dim"})


def terminal_picture() -> str:
    """The recording as SVG, the same bytes for the same text."""
    console = Console(record=True, file=io.StringIO(), width=COLUMNS, theme=THEME)
    colours = Colours()
    for line in repository_path(RECORDING).read_text(encoding="utf-8").splitlines():
        console.print(colours(Text(line)), overflow="fold")
    svg = console.export_svg(title="", code_format=SVG, unique_id="demo")
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


def record() -> str:
    """Run the commands, and return what a terminal shows of them in the end."""
    lines: list[str] = []
    for command in COMMANDS:
        lines += ["", f"{PROMPT}{command}"] if lines else [f"{PROMPT}{command}"]
        printed = run(command)
        end = next((at for at, line in enumerate(printed) if line.startswith(LAST)), None)
        lines += printed if end is None else ["\n".join(printed[:end]).rstrip(), LEFT_OUT]
    return "".join(f"{line}\n" for line in lines)


def run(command: str) -> list[str]:
    """The lines that a command prints, without those that a terminal replaces, and without blank ones at the end."""
    programs = repository_path(".envs/main/bin")
    variables = {**os.environ, "COLUMNS": str(COLUMNS), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=repository_path("."), env=variables, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
    )  # fmt: skip
    lines = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
    return [line for line in lines if not line.startswith((UNDER_WAY, SETUP, "  "))]


if __name__ == "__main__":
    write_text(repository_path(RECORDING), record())
    write_text(repository_path(PICTURE), terminal_picture())
    print(f"{RECORDING}, {PICTURE}: written")
