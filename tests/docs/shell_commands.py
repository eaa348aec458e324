"""The commands of shell lines, and whether the programs that they call have what is asked of them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator

import botocore.session
import click
from botocore import xform_name

from tests.docs.pages import code_blocks, pages
from tests.e2e.project import REPOSITORY
from tritonstack.cli.root import root

SUBSTITUTION = re.compile(r"\$\(((?:[^()]|\([^()]*\))*)\)")
PLACEHOLDER = re.compile(r"<([a-z-]+)>")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
REDIRECTIONS = {">", ">>", "<", ">&", "2>"}
AWS_GLOBAL = {
    *("--query", "--output", "--region", "--profile", "--endpoint-url", "--no-cli-pager", "--filters"),
    *("--cli-input-json", "--no-sign-request", "--max-items"),
}
PLAIN = {
    *(
        "apt",
        "cat",
        "cd",
        "cp",
        "curl",
        "docker",
        "echo",
        "eval",
        "export",
        "git",
        "jq",
        "ls",
        "mkdir",
        "mv",
        "pip",
        "rm",
        "sed",
    ),
    *("set", "test", ".", "true", ".envs/perf-analyzer/bin/perf_analyzer"),
}
"""Programs of the machine, whose options are not ours to check."""
OTHER_MODULES = {"pytest", "venv"}
"""Modules that Python runs and that are not ours."""


def filled(text: str) -> str:
    """Shell lines with a word for each ``<placeholder>``, which a shell would take for redirections."""
    return PLACEHOLDER.sub(r"\1", text)


def commands(text: str) -> Iterator[tuple[str, ...]]:
    """Every simple command of shell lines, those of ``$(…)`` too, without assignments, redirections and comments."""
    joined = filled(text).replace("\\\n", " ")
    for line in joined.splitlines():
        for inner in SUBSTITUTION.findall(line):
            yield from commands(inner)
        lexer = shlex.shlex(SUBSTITUTION.sub("SUBSTITUTED", line), posix=True, punctuation_chars=";|&<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word in {";", "|", "&", "&&", "||"}:
                yield from _simple(words)
                words = []
            else:
                words.append(word)


def _simple(words: list[str]) -> Iterator[tuple[str, ...]]:
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word not in REDIRECTIONS and before not in REDIRECTIONS
    ]
    while kept and ASSIGNMENT.fullmatch(kept[0]):
        kept = kept[1:]
    if kept:
        yield tuple(kept)


def problem(command: tuple[str, ...]) -> str | None:
    """What is wrong with a command: a program, subcommand, option or target that is not there. None: nothing is."""
    program, *arguments = command
    if program == "npx":
        return problem(tuple(arguments))
    check = CHECKS.get(program)
    if check is not None:
        return check(arguments)
    ours = "/" in program and (REPOSITORY / program).is_file()
    return None if ours or program in PLAIN else f"no program that is known here: {program}"


def _tritonstack(arguments: list[str]) -> str | None:
    command, path, rest = (
        root.get_command(click.Context(root), arguments[0]) if arguments else None,
        "",
        list(arguments),
    )
    while isinstance(command, click.Group) and len(rest) > 1:
        path, rest = f"{path} {rest[0]}", rest[1:]
        command = command.get_command(click.Context(command), rest[0])
    if command is None:
        return f"tritonstack{path} has no command {rest[:1]}"
    try:
        command.make_context(rest[0], rest[1:])
    except click.exceptions.Exit:
        return None
    except click.BadParameter as error:
        return None if "does not exist" in error.message else error.format_message()
    except click.UsageError as error:
        return error.format_message()
    return None


def _aws(arguments: list[str]) -> str | None:
    if arguments[:1] == ["s3"]:
        return None if arguments[1] in {"cp", "ls", "rm", "sync"} else f"aws s3 has no {arguments[1]}"
    session = botocore.session.get_session()
    service, operation = arguments[:2]
    if service not in session.get_available_services():
        return f"aws has no service {service}"
    model = session.get_service_model(service)
    if operation == "wait":  # its options are those of the operation that it repeats
        waiters = session.get_waiter_model(service)
        named = {xform_name(name, "-"): name for name in waiters.waiter_names}
        if arguments[2] not in named:
            return f"aws {service} wait has no {arguments[2]}"
        operation = xform_name(waiters.get_waiter(named[arguments[2]]).operation, "-")
        arguments = [service, operation, *arguments[3:]]
    names = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in names:
        return f"aws {service} has no operation {operation}"
    shape = model.operation_model(names[operation]).input_shape
    options = {f"--{xform_name(name, '-')}" for name in (shape.members if shape else {})} | AWS_GLOBAL
    wrong = [each for each in arguments if each.startswith("--") and each.partition("=")[0] not in options]
    return f"aws {service} {operation} has no {wrong}" if wrong else None


def _cdk(arguments: list[str]) -> str | None:
    """By the command line's own list of commands and options."""
    folder = REPOSITORY / "node_modules/aws-cdk/lib/cli"
    registry = json.loads((folder / "cli-type-registry.json").read_text(encoding="utf-8"))
    command = next((each for each in arguments if not each.startswith("-")), "")
    if command not in registry["commands"]:
        return f"cdk has no command {command}"
    options = {**registry["globalOptions"], **registry["commands"][command].get("options", {})}
    known = {f"--{negated}{name}" for name in options for negated in ("", "no-")} | {"--help"}
    known |= {f"-{letter}" for option in options.values() for letter in option.get("alias", "")}
    wrong = [each for each in arguments if each.startswith("-") and each.partition("=")[0] not in known]
    return f"cdk {command} has no {wrong}" if wrong else None


def _make(arguments: list[str]) -> str | None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z]+) \?=", makefile, re.MULTILINE))  # those that a caller may set
    wrong = [each for each in arguments if each not in targets and each.partition("=")[0] not in variables]
    return f"make has no target {wrong}" if wrong else None


def _python(arguments: list[str]) -> str | None:
    if arguments[:1] == ["-m"] and arguments[1] in OTHER_MODULES:
        return None
    if arguments[:1] == ["-m"]:
        path = REPOSITORY / arguments[1].replace(".", "/")
        there = path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
        return None if there else f"no module {arguments[1]}"
    written = {block.file for page in pages() for block in code_blocks(page)}  # by a block before it
    there = (REPOSITORY / arguments[0]).is_file() or arguments[0] in written
    return None if there else f"no script {arguments[0]}"


def _review_script(arguments: list[str]) -> str | None:
    """Its options are those of its own cases."""
    text = (REPOSITORY / "scripts" / "review.sh").read_text(encoding="utf-8")
    known = set(re.findall(r"--[a-z-]+(?= *[|)])", text))
    unknown = [each for each in arguments if each.startswith("--") and each not in known]
    return f"scripts/review.sh has no option {unknown}" if unknown else None


CHECKS: dict[str, Callable[[list[str]], str | None]] = {
    "tritonstack": _tritonstack,
    "aws": _aws,
    "cdk": _cdk,
    "make": _make,
    "python": _python,
    "python3": _python,
    "scripts/review.sh": _review_script,
}
