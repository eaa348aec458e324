"""What a function is given to run: its folder of ``lambda/``, and the files of ``lambda/shared/`` that it uses.

They lie as they do here, so that they import one another in the same way. A shared file that a function does not use is
not among them: a change of it does not deploy the function again.
"""

from __future__ import annotations

import re
from pathlib import Path

from tritonstack.paths import repository_path

HANDLERS = repository_path("lambda")
SHARED = "shared"
_OF_A_HANDLER = re.compile(r"^ *from \.\.shared(?:\.(\w+) import | import ([\w, ]+)$)", re.MULTILINE)
_OF_A_SHARED_FILE = re.compile(r"^ *from \.(?:(\w+) import | import ([\w, ]+)$)", re.MULTILINE)


def entry_point(handler: str) -> str:
    """The function of a folder, as Lambda names it."""
    return f"lambda.{handler}.handler.handler"


def pack(handler: str, target: Path) -> None:
    """Write a function's files into a folder, readable for all: Lambda runs them as a user that no file belongs to."""
    for name, content in handler_files(handler).items():
        path = target / "lambda" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)


def handler_files(handler: str) -> dict[str, bytes]:
    """The files of a function: path below ``lambda/`` → content."""
    files = {f"{handler}/{path.name}": path.read_bytes() for path in sorted((HANDLERS / handler).glob("*.py"))}
    waiting = {name for content in files.values() for name in _imported(_OF_A_HANDLER, content)}
    while waiting:
        path = HANDLERS / SHARED / f"{min(waiting)}.py"
        files[f"{SHARED}/{path.name}"] = content = path.read_bytes()
        waiting |= _imported(_OF_A_SHARED_FILE, content)
        waiting -= {Path(name).stem for name in files if name.startswith(f"{SHARED}/")}
    return files


def _imported(form: re.Pattern[str], content: bytes) -> set[str]:
    """The names of the shared modules that a file imports."""
    found = form.findall(content.decode())
    return {name.strip() for module, modules in found for name in (module or modules).split(",")}
