"""``docs/reference/commands.md``: every command with its options and exit codes, from click; and make's targets."""

from __future__ import annotations

import inspect
import re

import click

from scripts.documentation.markdown import code, head, link, table
from tritonstack.cli.root import root, sections
from tritonstack.paths import repository_path

NAME = "tritonstack"
EXIT_CODES = (
    ("0", "done"),
    (
        "1",
        "work failed, AWS or this machine refused, a check or limit does not hold, or a no was typed: stderr says why",
    ),
    ("2", "wrong input: every problem at once, with file, field, found, allowed and what to do"),
    ("130", "interrupted"),
)
CONVENTIONS = """\
## The same in every command

- `-e NAME`, `--environment NAME` names the environment; a command that needs one takes `local` without it.
- `--json` prints the result as JSON, for programs. Progress and messages go to standard error.
- Where the output is no terminal, tables have their full width: a row is a line, and nothing is cut.

## Shell completion

bash, zsh and fish complete commands, options and environments, by click's script. Add your shell's line to its file:

| shell | file | line |
| --- | --- | --- |
| bash (4.4 or newer) | `~/.bashrc` | `eval "$(_TRITONSTACK_COMPLETE=bash_source tritonstack)"` |
| zsh | `~/.zshrc` | `eval "$(_TRITONSTACK_COMPLETE=zsh_source tritonstack)"` |
| fish | `~/.config/fish/completions/tritonstack.fish` | `_TRITONSTACK_COMPLETE=fish_source tritonstack \\| source` |
"""
TARGET = re.compile(r"^([a-z-]+):.*?## (.*)$", re.MULTILINE)


def commands_page() -> str:
    """The whole page."""
    parts = [
        head("Commands", source="the command line itself and the Makefile"),
        f"## Exit codes\n\nOf every command of `{NAME}`; what a command adds stands in its text.\n",
        table(["code", "meaning"], EXIT_CODES),
        CONVENTIONS,
    ]
    for title, section in sections().items():
        rows = [(link(code(name), f"{NAME} {name}"), text) for name, text in section.items()]
        parts += [f"## {title}\n", table(["command", "what it does"], rows)]
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
    for name in root.list_commands(click.Context(root)):
        command = command_of(name)
        below = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
        names += [name, *(f"{name} {each}" for each in below)]
    return names


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
    if command.epilog:
        parts.append(f"Example: `{command.epilog.partition('example: ')[2]}`\n")
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
