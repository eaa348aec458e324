"""Failures of a Python model's program, as Triton's messages and its log state them, in the form of Python's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

from tritonstack.catalogue.package_names import package_names
from tritonstack.errors import InputError
from tritonstack.untrusted.folder_files import text_inside

if TYPE_CHECKING:  # the local AWS's emulator imports this module, and has no NumPy, which the client needs
    from tritonstack.client.errors import ModelFailedError

# Source: pybind11's error_string, which python_backend src/pb_stub.cc puts into its messages: the exception, a blank
# line, "At:" and the calls, the innermost first. faulthandler (Python's documentation) lists them in the same order.
_CALLS = re.compile(r"\n\nAt:\n(?P<calls>(?:  \S.*(?:\n|$))+)")
_CALL = re.compile(r"^  (?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$", re.MULTILINE)
_DUMPED = re.compile(r"^  File \"(?P<file>.+)\", line (?P<line>\d+) in (?P<function>.+)$", re.MULTILINE)
_FATAL = re.compile(r"^Fatal Python error: (?P<error>.+)$", re.MULTILINE)
_LOGGED = re.compile(r"pb_stub\.cc:\d+\] (\"(?:[^\"\\]|\\.)*\")")
"""A message of a Python model's process in a server's log."""
_THREAD = re.compile(
    r"^(?:Current thread|Thread) 0x\w+ .*\(most recent call first\):\n(?P<calls>(?:  .+\n)*)", re.MULTILINE
)
_HEADS = (
    r"version \d+ is at \w+ state: [A-Z][a-z]+(?: [a-z]+)*: ",
    r"Failed to process the request\(s\) for model '[^']*', message: ",
)
"""Triton's text before the message of a program: at a load, and at a request."""
_HEAD = re.compile(f"^.*(?:{'|'.join(_HEADS)})", re.DOTALL)
_ENDED = re.compile(r"Stub process '[^']*' is not healthy")
_FOREIGN = re.compile(r"^<|/(?:site|dist)-packages/|/lib/python3\.\d+/|/triton_python_backend_utils\.py$")
"""Files that are no model's: of packages, of Python, of Triton's backend."""
_SHORTER = re.compile(r"^.*/((?:site|dist)-packages/|python3\.\d+/)")
_IN_CONTAINER = re.compile(r"^(?:/opt/ml/model|.*/models/[0-9a-f]{32}/model)/(.+)$")
_NO_MODULE = re.compile(r"\bNo module named '([\w.]+)'")
_IN_FILE = re.compile(r"\((\w+\.py), line (\d+)\)\s*$")

_WHERE = {
    "<module>": "while its program was imported",
    "auto_complete_config": "in auto_complete_config",
    "initialize": "in initialize",
    "execute": "in execute",
    "finalize": "in finalize",
}

Shown = Callable[[str], str]
"""A file of the model as a message names it → as the user does."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One line of a traceback."""

    file: str  # as the server names it
    line: int
    function: str

    @property
    def is_own(self) -> bool:
        """Whether the file is the model's."""
        return _FOREIGN.search(self.file) is None


@dataclass(frozen=True, kw_only=True)
class ProgramFailure:
    """An exception that a Python model's program raised, or the end of its process."""

    error: str  # ``ZeroDivisionError: division by zero``; of several lines where the message has them
    calls: tuple[Call, ...] = ()  # the innermost last, as in Python's own tracebacks
    ended: bool = False  # whether its process ended, in place of an exception

    @property
    def where(self) -> str:
        """Place in the program; empty if unknown."""
        return next((_WHERE[call.function] for call in self.calls if call.is_own and call.function in _WHERE), "")

    def text(self, *, shown: Shown, quoted: bool) -> str:
        """Its traceback: the model's own calls, and always the innermost one, even in a library.

        ``quoted``: whether each call of the model is followed by its line of the file that ``shown`` names, which then
        has to be the file that ran.
        """
        lines = [] if not self.calls else ["Traceback (most recent call last):"]
        for index, call in enumerate(self.calls):
            if not call.is_own and (index < len(self.calls) - 1 or call.file.startswith("<")):
                continue
            file = shown(call.file) if call.is_own else _SHORTER.sub(r"\1", call.file)
            lines.append(f'  File "{file}", line {call.line}, in {call.function}')
            if call.is_own and quoted:
                lines += _source(Path(file), call.line)
        own = [call for call in self.calls if call.is_own]
        if quoted and own and (beside := _IN_FILE.search(self.error)):  # a syntax error of a file that was imported
            file = str(Path(shown(own[-1].file)).with_name(beside[1]))
            if source := list(_source(Path(file), int(beside[2]))):
                lines += [f'  File "{file}", line {beside[2]}', *source]
        return "\n".join([*lines, self.error])


def program_failure(text: str) -> ProgramFailure | None:
    """The failure of a Python model's program in a message of Triton; None for other messages.

    A body of SageMaker's front end (``{"error": "…"}``) is taken apart.
    """
    text = server_message(text)
    if calls := _CALLS.search(text):
        error = _HEAD.sub("", text[: calls.start()])
        return ProgramFailure(error=error, calls=_calls(_CALL, calls["calls"]))
    if ended := _ENDED.search(text):
        return ProgramFailure(error=f"{ended[0]}: it ended without an exception", ended=True)
    if (head := _HEAD.search(text)) and re.match(r"[\w.]*(?:Error|Exception|Exit)\b", text[head.end() :]):
        return ProgramFailure(error=text[head.end() :].rstrip("; \n"))  # a syntax error: the file was not run
    return None


def server_message(text: str) -> str:
    """The message of a response's body, which is JSON from SageMaker's front end."""
    try:
        found = json.loads(text)
    except ValueError:
        return text.strip()
    return str(found["error"]).strip() if isinstance(found, dict) and "error" in found else text.strip()


def fatal_error(log: str) -> ProgramFailure | None:
    """The last fatal error that Python's faulthandler wrote into a server's log: a crash in compiled code."""
    found = list(_FATAL.finditer(log))
    if not found:
        return None
    threads = list(_THREAD.finditer(log, found[-1].end()))
    current = next((each for each in threads if each[0].startswith("Current")), None)
    calls = _calls(_DUMPED, current["calls"]) if current else ()
    return ProgramFailure(error=f"Fatal Python error: {found[-1]['error']}", calls=calls, ended=True)


def logged_failures(log: str) -> tuple[ProgramFailure, ...]:
    """Failures that processes of Python models wrote to a server's log: those of ``finalize`` have no other message."""
    failures = (program_failure(str(json.loads(text))) for text in _LOGGED.findall(log))
    return tuple(failure for failure in failures if failure is not None)


def dumped_calls(log: str) -> tuple[Call, ...]:
    """The calls of the first thread in a dump of faulthandler that Triton called; none where the program is not run."""
    threads = [_calls(_DUMPED, found["calls"]) for found in _THREAD.finditer(log)]
    return next((calls for calls in threads if any(call.is_own and call.function in _WHERE for call in calls)), ())


def _calls(pattern: re.Pattern[str], text: str) -> tuple[Call, ...]:
    found = [
        Call(file=each["file"], line=int(each["line"]), function=each["function"]) for each in pattern.finditer(text)
    ]
    return tuple(reversed(found))


def _source(file: Path, number: int) -> Iterator[str]:
    """A line of a model's file as a traceback has it; nothing where it cannot be read."""
    try:
        lines = text_inside(file, file.parent).splitlines()
    except (OSError, InputError):
        return
    if 0 < number <= len(lines) and lines[number - 1].strip():
        yield f"    {lines[number - 1].strip()}"


def file_in_archive(path: str) -> str:
    """A file's path in its archive, the model's directory first, of its path in a container."""
    found = _IN_CONTAINER.match(path)
    return found[1] if found else path


def response_failure(
    error: ModelFailedError, *, model: str, repositories: Path, serves_folder: bool | None = True
) -> str:
    """The message of a request that a model's container refused: of a Python program its traceback, with its files
    and their lines below ``repositories`` where they are there.

    ``model``: whose folder is looked at first. ``serves_folder``: whether the endpoint serves these very files, or has
    another version of them, of which the lines may differ; None where that is unknown.
    """

    def shown(path: str) -> str:
        name = file_in_archive(path)
        found = [repositories / model / name] if (repositories / model / name).is_file() else []
        found = found or [folder / name for folder in repositories.glob("*") if (folder / name).is_file()]
        if len(found) != 1:
            return name
        return str(found[0].relative_to(Path.cwd()) if found[0].is_relative_to(Path.cwd()) else found[0])

    failure = program_failure(error.container_message)
    if failure is None:
        return str(error)
    where = f", {failure.where}" if failure.where else ""
    plain, quoted = (failure.text(shown=shown, quoted=quoted) for quoted in (False, True))
    own = next((Path(file_in_archive(call.file)).parts for call in failure.calls if call.is_own), ())
    advice = lacking_module_advice(failure.error, folder=model, model=own[0] if len(own) > 1 else model)
    lines = [f"{error.place}: the container responded {error.status}{where}:", indent(quoted, "  ")]
    if quoted != plain and not serves_folder:
        what = (
            "the endpoint may serve another version" if serves_folder is None else "the endpoint serves another version"
        )
        lines.append(f"  lines:   of the project's files as they are now; {what}")
    lines += [f"  do:      {advice}"] if advice else []
    lines += [f"  its log: {error.log_stream_arn}"] if error.log_stream_arn else []
    return "\n".join(lines)


def lacking_module_advice(text: str, *, folder: str, model: str) -> str:
    """What to do about a module that a program imports and its environment lacks; empty where it lacks none.

    ``model``: the model's directory in the model folder ``folder``.
    """
    found = _NO_MODULE.search(text)
    if found is None:
        return ""
    module = found[1].partition(".")[0]
    command = f"tritonstack update {folder if model == folder else f'{folder}/{model}'} --package"
    if module in package_names():
        return f"{command} {package_names()[module]}"
    return (
        f"{command} NAME, where NAME is what pip installs for it; or put {module}.py, if it is yours, beside model.py"
    )
