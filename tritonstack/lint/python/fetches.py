"""Rules about downloads of a Python model's program while the model is loaded."""

from __future__ import annotations

import ast
import fnmatch
import functools
import importlib.resources
import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.lint.completion import python_program
from tritonstack.lint.python.auto_complete import PYTHON_CLASS
from tritonstack.lint.python.program_load import LoadCall, run_at_load
from tritonstack.lint.python.program_values import UNKNOWN, Program, Text
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView
from tritonstack.models.model_config import Node
from tritonstack.models.model_view import ModelView
from tritonstack.untrusted.foreign_text import code_of

FetchKind = Literal["weights", "network", "nothing"]


class FetchingCall(BaseModel):
    """Functions of a library that fetch something, and by which arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    names: tuple[str, ...] = Field(description="Full names; * means any text, [A-Z] for a capital.")
    fetches: FetchKind = Field("weights", description="weights, or network for a request that may be about anything.")
    argument: int | None = Field(None, description="Place of the argument that says what is fetched.")
    keywords: tuple[str, ...] = Field((), description="Names of the same argument.")
    values: str = Field("", description="Pattern of `values` that it must match to be fetched; empty for any.")
    left_out: bool = Field(False, description="Whether the function fetches where that argument is not given.")
    switch: tuple[str, ...] = Field((), description="It fetches where one of these is neither None nor False.")
    switch_place: int | None = Field(None, description="Place of the first of them.")
    switch_default: bool = Field(False, description="Whether it fetches where none of them is given.")
    unless: Mapping[str, bool | str | None] = Field({}, description="Arguments that keep it from fetching.")
    caches: tuple[str, ...] = Field((), description="Arguments for a folder where the files may lie already.")
    is_command: bool = Field(False, description="Whether it runs a command, which `commands` are held against.")
    program: str = Field("", description="Program whose arguments it takes.")


class Library(BaseModel):
    """A library's functions that fetch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(description="Where the functions and their arguments are documented.")
    offline: tuple[str, ...] = Field((), description="Environment variables that keep all of them from fetching.")
    calls: tuple[FetchingCall, ...]


class Command(BaseModel):
    """A command of a shell."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str = Field(description="A regular expression, searched in the command.")
    fetches: FetchKind


class FetchTable(BaseModel):
    """The content of ``fetching_calls.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str = Field(alias="_")
    values: Mapping[str, str] = Field(description="Patterns of what is fetched by its name, by their names.")
    loopback: str = Field(description="Addresses of the container itself.")
    weight_files: str = Field(description="How the names of files with weights end.")
    commands: tuple[Command, ...] = Field(description="The first that matches counts.")
    libraries: Mapping[str, Library]


@functools.cache
def fetch_table() -> FetchTable:
    """The calls and commands that fetch something."""
    text = importlib.resources.files(__package__).joinpath("fetching_calls.json").read_text(encoding="utf-8")
    return FetchTable.model_validate_json(text)


class Fetch(NamedTuple):
    """A call that fetches something when the model is loaded."""

    call: LoadCall
    kind: FetchKind
    what: str  # what it fetches, where that shows; it may be empty


def check_fetches(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a Python model for downloads while it is loaded."""
    if model.backend != "python":
        return
    for version in model.served_versions:
        program = _program(model, version)
        found: dict[ast.Call, Fetch] = {}
        for fetch in fetches_at_load(program) if program else ():
            known = found.get(fetch.call.node)
            if known is None or (known.kind, fetch.kind) == ("network", "weights"):
                found[fetch.call.node] = fetch
        for node, fetch in found.items():
            code = code_of(node)[:80]
            yield Finding(
                file=fetch.call.scope.module.path,
                line=node.lineno,
                column=node.col_offset + 1,
                rule="weights-fetched" if fetch.kind == "weights" else "network-at-load",
                found=code if fetch.what.removeprefix("with ") in code else f"{code}, which fetches {fetch.what}",
            )


def _program(model: ModelView, version: str) -> Program | None:
    """A version's program. Triton puts the version's folder and the model's on the path that it imports from."""
    path = python_program(model, version)
    if path is None:
        return None
    entries = model.config.node.entries("parameters")
    parameters = {key: entry.text("string_value") for key, entry in entries.items() if isinstance(entry, Node)}
    folders = (model.directory / version, model.directory)
    return Program(path, folders=folders, root=model.root, parameters=parameters)


def fetches_at_load(program: Program) -> Iterator[Fetch]:
    """Calls that download something when a program is loaded, as far as their arguments show it."""
    load = run_at_load(program, PYTHON_CLASS)
    has_moved = any("os.chdir" in call.names for call in load.calls)
    for call in load.calls:
        for library in fetch_table().libraries.values():
            if load.variables.intersection(library.offline):
                continue
            entry = next((each for each in library.calls if _is_called(each, call)), None)
            if entry is not None and (fetch := _fetch(entry, call, program)) is not None:
                # Triton's working directory is none of the archive's: a relative name is a file there after this alone.
                if not (has_moved and program.has_beside(fetch.what)):
                    yield fetch
                break


def _is_called(entry: FetchingCall, call: LoadCall) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in call.names for pattern in entry.names)


def _fetch(entry: FetchingCall, call: LoadCall, program: Program) -> Fetch | None:
    """The download of a call of such a function with its arguments; None without one."""
    given = {each.arg: each.value for each in call.node.keywords if each.arg is not None}
    if any(_is_constant(given.get(name), value, call, program) for name, value in entry.unless.items()):
        return None
    if entry.switch and not _is_on(entry, given, call, program):
        return None
    if entry.is_command:
        kind, what = _of_command(entry, call, program)
    elif entry.fetches == "network":
        kind, what = _of_request(entry, given, call, program)
    else:
        kind, what = _of_argument(entry, given, call, program)
    if kind == "nothing":
        return None
    has_cache = any(program.is_of_archive(given[name], call.scope) for name in entry.caches if name in given)
    # Only where a file of the archive is missing, or where the archive's folder of earlier downloads lacks it.
    return Fetch(call, "network" if has_cache or call.is_fallback else kind, what)


def _argument(entry: FetchingCall, given: Mapping[str, ast.expr], call: LoadCall) -> ast.expr | None:
    args = call.node.args
    if entry.argument is not None and entry.argument < len(args):
        return args[entry.argument]
    return next((given[name] for name in entry.keywords if name in given), None)


def _of_argument(
    entry: FetchingCall, given: Mapping[str, ast.expr], call: LoadCall, program: Program
) -> tuple[FetchKind, str]:
    """A function that fetches by name or URL: what its argument names."""
    argument = _argument(entry, given, call)
    has_pattern = bool(entry.values)
    if argument is None:
        is_given_otherwise = any(each.arg is None for each in call.node.keywords)
        return ("weights", "") if not has_pattern or (entry.left_out and not is_given_otherwise) else ("nothing", "")
    texts = program.texts(argument, call.scope)
    if not has_pattern:
        return "weights", next((text.value for text in texts if text.is_whole), "")
    pattern = re.compile(fetch_table().values[entry.values], re.DOTALL)
    named = [text for text in texts if text.is_whole and pattern.fullmatch(text.value)]
    if not named:
        return "nothing", ""
    certain = [text for text in named if not text.is_fallback]
    return "weights" if certain else "network", (certain or named)[0].value


def _of_request(
    entry: FetchingCall, given: Mapping[str, ast.expr], call: LoadCall, program: Program
) -> tuple[FetchKind, str]:
    """A request that may be about anything: weights by the name of the file, or where the response is a stream."""
    argument = _argument(entry, given, call)
    texts = program.texts(argument, call.scope) if argument is not None else (Text(UNKNOWN),)
    if argument is not None and all(re.search(fetch_table().loopback, text.value) for text in texts):
        return "nothing", ""
    of_weights = [text.value for text in texts if re.search(fetch_table().weight_files, text.value)]
    if of_weights or _is_constant(given.get("stream"), value=True, call=call, program=program):
        return "weights", next((text for text in of_weights if UNKNOWN not in text), "")
    return "network", next((text.value for text in texts if text.is_whole), "")


def _of_command(entry: FetchingCall, call: LoadCall, program: Program) -> tuple[FetchKind, str]:
    """The download of a command, given as a string or as a list of its words."""
    args = call.node.args if entry.argument is None else [*call.node.args[:1], *_named(entry, call)][:1]
    words = [word for each in args for word in _words(each, call, program)]
    command = " ".join(" ".join([entry.program, *words]).split())
    for known in fetch_table().commands:
        if re.search(known.pattern, command):
            is_own = re.search(fetch_table().loopback, command)
            kind = "nothing" if is_own and known.fetches == "network" else known.fetches
            return kind, f"with {command.replace(UNKNOWN, '…')}"[:80]
    return "nothing", ""


def _named(entry: FetchingCall, call: LoadCall) -> list[ast.expr]:
    return [each.value for each in call.node.keywords if each.arg in entry.keywords]


def _words(node: ast.expr, call: LoadCall, program: Program) -> Iterator[str]:
    """The words of a command; an unknown part is one word, and Python's own path is ``python``."""
    for placed in program.follow(node, call.scope):
        at = placed.node
        if isinstance(at, ast.BinOp):
            for side in (at.left, at.right):
                yield from _words(side, call, program)
        elif isinstance(at, ast.List | ast.Tuple):
            for each in at.elts:
                inner = each.value if isinstance(each, ast.Starred) else each
                text = program.texts(inner, placed.scope)[0].value
                is_python = "sys.executable" in program.names(inner, placed.scope)
                yield "python" if is_python else text
        elif isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and at.func.attr == "split":
            yield program.texts(at.func.value, placed.scope)[0].value
        elif isinstance(at, ast.Call) and "shlex.split" in program.names(at.func, placed.scope) and at.args:
            yield program.texts(at.args[0], placed.scope)[0].value
        else:
            yield program.texts(at, placed.scope)[0].value


def _is_on(entry: FetchingCall, given: Mapping[str, ast.expr], call: LoadCall, program: Program) -> bool:
    """Whether one of the arguments that make a function fetch is given, and is neither None nor False."""
    place, args = entry.switch_place, call.node.args
    values = [given[name] for name in entry.switch if name in given]
    values += [args[place]] if place is not None and place < len(args) else []
    if not values:
        return entry.switch_default
    return any(
        not isinstance(each.node, ast.Constant) or each.node.value not in (None, False)
        for value in values
        for each in program.follow(value, call.scope)
    )


def _is_constant(node: ast.expr | None, value: object, call: LoadCall, program: Program) -> bool:
    """Whether an argument is given and each of its possible values is this one."""
    return node is not None and all(
        isinstance(each.node, ast.Constant) and each.node.value == value for each in program.follow(node, call.scope)
    )
