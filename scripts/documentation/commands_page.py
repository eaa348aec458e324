"""``docs/reference/commands.md``: every command with its options and exit codes, from click; and make's targets."""

from __future__ import annotations

import inspect
import re

import click

from scripts.documentation.markdown import code, head, link, table
from tritonstack.cli.root import COMMANDS, groups, root
from tritonstack.paths import repository_path

NAME = "tritonstack"
EXIT_CODES = (
    ("0", "done"),
    ("1", "work failed, or AWS or this machine refused: what was tried, and why it failed, is on stderr"),
    ("2", "wrong input: every problem at once, with file, field, found, allowed and what to do"),
    ("130", "interrupted"),
)
TARGET = re.compile(r"^([a-z-]+):.*?## (.*)$", re.MULTILINE)


def commands_page() -> str:
    """The whole page."""
    parts = [
        head("Commands", source="the command line itself and the Makefile"),
        f"## Exit codes\n\nOf every command of `{NAME}`; what a command adds stands in its text.\n",
        table(["code", "meaning"], EXIT_CODES),
        f"## {NAME}\n",
        table(
            ["command", "what it does"],
            [(link(code(name), f"{NAME} {name}"), text) for name, text in _help_lines()],
        ),
    ]
    for name in every_command():
        parts += _command(name)
    makefile = repository_path("Makefile").read_text(encoding="utf-8")
    rows = [(code(f"make {name}"), text) for name, text in TARGET.findall(makefile)]
    parts += ["## make\n", table(["target", "what it does"], rows)]
    return "\n".join(parts)


def command_of(name: str) -> click.Command:
    """The click command of a name; that of a group's command is two words. Raises LookupError: there is none."""
    found: click.Command | None = root
    for word in name.split():
        found = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
    if found is None:
        raise LookupError(f"no such command: {name}")
    return found


def every_command() -> list[str]:
    """The names of all commands, those of a group behind the group."""
    names = []
    for name in [*COMMANDS, *groups()]:
        command = command_of(name)
        below = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
        names += [name, *(f"{name} {each}" for each in below)]
    return names


def _help_lines() -> list[tuple[str, str]]:
    """Every command, those of a group with the group's name before them, and its help line."""
    own = [(name, text) for name, (_, text) in COMMANDS.items()]
    below = [(f"{name} {each}", text) for name, group in groups().items() for each, (_, text) in group.lazy.items()]
    return own + below


def _command(name: str) -> list[str]:
    command = command_of(name)
    context = click.Context(command, info_name=f"{NAME} {name}")
    text = inspect.cleandoc(command.help or "").replace("\b\n", "").replace("``", "`")
    parts = [
        f"## {NAME} {name}\n",
        f"```text\n{' '.join(command.get_usage(context).split()).removeprefix('Usage: ')}\n```\n",
        f"{text}\n",
    ]
    rows = [_option(each, context) for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if rows:
        parts.append(table(["option", "value", "default", "meaning"], rows))
    return parts


def _option(option: click.Option, context: click.Context) -> list[str]:
    names = ", ".join(code(each) for each in (*option.opts, *option.secondary_opts))
    extra = option.get_help_extra(context)
    default = "required" if option.required else code(extra["default"]) if "default" in extra else ""
    variable = f" (environment variable {code(str(option.envvar))})" if option.envvar else ""
    return [names, _value(option), default or _default(option), f"{option.help or ''}{variable}"]


def _value(option: click.Option) -> str:
    if option.is_flag:
        return ""
    kind = option.type
    if isinstance(kind, click.Choice):
        return ", ".join(code(str(each)) for each in kind.choices)
    if isinstance(kind, click.IntRange | click.FloatRange):
        return f"{'number' if isinstance(kind, click.FloatRange) else 'whole number'}, {code(kind._describe_range())}"
    words = {"INTEGER": "whole number", "TEXT": "text", "FLOAT": "number"}
    name = option.metavar or kind.name.upper()
    return words.get(name, "file" if isinstance(kind, click.Path) and not option.metavar else name) + (
        ", several times" if option.multiple else ""
    )


def _default(option: click.Option) -> str:
    default = option.to_info_dict()["default"]
    if option.is_flag or default is None or callable(default) or "UNSET" in str(default):
        return ""
    return code(str(default))
