"""Recorded terminals: README's picture of the demo, and the text of getting-started from ``pip install`` to a response.

    python -m scripts.documentation.terminal_picture demo
    python -m scripts.documentation.terminal_picture own-model DIST MODEL.onnx

run the commands anew and write what they print to ``docs/pictures``; ``make docs`` draws the picture, fills the page.
DIST is a folder with the built wheel, used in place of the package index.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.highlighter import RegexHighlighter
from rich.text import Text
from rich.theme import Theme

from scripts.documentation.markdown import filled
from tritonstack.errors import WorkFailedError
from tritonstack.paths import repository_path, write_text

RECORDING = "docs/pictures/demo.txt"
PICTURE = "docs/pictures/demo.svg"
COMMANDS = (
    "make demo",
    "tritonstack invoke digits-ensemble --output label --input model_repos/digits-ensemble/sample/digit.png",
)
COLUMNS = 106
OWN_MODEL = "docs/pictures/own-model.txt"
PAGE = "docs/getting-started.md"
PROMPT, LEFT_OUT = "$ ", "[…]"
REPLACED = re.compile(r"… |  \S.*  \d+ s  |setup: still ")
"""Beginnings of lines about what goes on, which a terminal replaces when that ends."""
AFTER_TABLE = "\nEndpoint "
"""With this line the demo's text after its table begins, which is left out."""

SVG = re.sub(r"@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Generated with Rich https://www.textualize.io", "Drawn from docs/pictures/demo.txt by `make docs`; do not edit."
)
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


def getting_started() -> str:
    """docs/getting-started.md as it is, with the recording of a model of one's own."""
    recording = repository_path(OWN_MODEL).read_text(encoding="utf-8")
    return filled(PAGE, {"recording": lambda: f"```text\n{recording}```\n"})


def own_model_commands() -> list[str]:
    """The first commands of the page's section: from an environment of Python's to the response."""
    page = repository_path(PAGE).read_text(encoding="utf-8")
    section = page.partition("## A project of your own\n")[2]
    return [line.removeprefix(PROMPT) for line in section.split("```")[1].splitlines() if line.startswith(PROMPT)]


def record(commands: Sequence[str], *, folder: Path, variables: Mapping[str, str]) -> str:
    """Run the commands in one shell, and return what a terminal shows of them in the end.

    Raises WorkFailedError: one of them fails.
    """
    lines = ["set -e", *(f"printf '\\n%s\\n' {shlex.quote(PROMPT + command)}\n{command}" for command in commands)]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], cwd=folder, env={**os.environ, "COLUMNS": str(COLUMNS), **variables},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise WorkFailedError(f"the commands end with {done.returncode}:\n{done.stdout}")
    return "\n\n".join(map(_shown, re.split(r"\n\n(?=\$ )", done.stdout.strip()))) + "\n"


def _shown(printed: str) -> str:
    """A command's lines, without those that a terminal replaces."""
    kept, cut, _ = f"{printed}\n".partition(AFTER_TABLE)
    lines = [line.rstrip() for line in kept.splitlines() if not REPLACED.match(line)]
    return "\n".join(lines).rstrip() + (f"\n{LEFT_OUT}" if cut else "")


def record_own_model(packages: Path, model: Path) -> None:
    """In a new folder that is removed; ends with the seconds that it took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "work")
        folder.mkdir()
        (folder.parent / "tritonstack").mkdir()
        (folder.parent / "tritonstack" / "dist").symlink_to(packages.resolve())
        shutil.copy(model, folder / "iris.onnx")
        variables = {"PIP_QUIET": "2", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        started = time.monotonic()
        try:
            text = record(own_model_commands(), folder=folder, variables=variables).replace(str(folder), "~")
            text += f"\n{time.monotonic() - started:.0f} s in all\n"
        finally:
            program = folder / ".venv" / "bin" / "tritonstack"
            if program.exists():
                subprocess.run([str(program), "local", "down"], cwd=folder / "my-serving", check=False)
    write_text(repository_path(OWN_MODEL), text)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["demo"]:
            programs = f"{repository_path('.envs/main/bin')}{os.pathsep}{os.environ['PATH']}"
            demo = record(COMMANDS, folder=repository_path("."), variables={"PATH": programs})
            write_text(repository_path(RECORDING), demo)
        case ["own-model", packages, model]:
            record_own_model(Path(packages), Path(model))
        case _:
            sys.exit(__doc__)
