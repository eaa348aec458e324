"""The command line: imports a command's module when it is called, and prints errors as messages."""

from __future__ import annotations

import errno
import importlib
import os
import shlex
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import click
from click.shell_completion import CompletionItem

from tritonstack import VERSION
from tritonstack.aws.session import RENEW, credentials_ended
from tritonstack.disk import FULL, NO_SPACE, disk_full, written_file
from tritonstack.errors import TritonstackError, alike, visible
from tritonstack.extensions import extensions, install_command, is_of_another, not_installed, registered
from tritonstack.paths import LIBRARY, find_project

REFUSED_BY_THE_MACHINE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE, errno.ENOTDIR, *FULL)
"""Errors of the machine, not of this code: no permission, a read-only or full disk, a file in a folder's place."""

GROUPS = "tritonstack.commands"
"""Entry points: name of a group → its ``click.Group``."""

Commands = Mapping[str, tuple[str, str]]
"""Command → (``module:name``, help line); a module is imported when its command runs, so that `--help` stays quick.

A module that begins with a dot is of this package.
"""

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "init": (".project:init_command", "Make a project of your own over the installed package."),
        "setup": (".project:setup_command", "Make the pinned environments that builds and the local AWS run in."),
        "docs": (".docs:docs_command", "Print a page of the documentation, or list all pages."),
        "clean": (".clean", "Remove environments, builds and state of this machine, after a list and a question."),
    },
    "Models": {
        "add": (
            ".add",
            "Make a model folder of a model's file, a Triton model folder or repository, or a model.tar.gz.",
        ),
        "update": (".update", "Put a model's next version into its folder, and record its response anew."),
        "remove": (".remove", "Remove a model's folder, and the model from the file of every environment."),
        "lint": (".lint:lint_command", "Check model folders for what Triton or SageMaker would refuse."),
        "explain": (".lint:explain_command", "Explain a rule of lint, with a bad and a good example."),
        "build": (".archives:build_command", "Export, verify and pack an environment's models into .local/archives."),
        "pack": (".archives:pack_command", "Pack one model folder into a .tar.gz, the same bytes every time."),
        "schema": (".schema", "Write the JSON Schemas that editors complete YAML files with."),
    },
    "Deploy": {
        "preflight": (".preflight", "Check an account for what a deployment of an environment would fail at."),
        "builders": (
            ".prepare:builders_command",
            "Show the machine, GPU and image that build an environment's TensorRT engines.",
        ),
        "publish": (".archives:publish_command", "Upload an environment's built archives to its bucket."),
        "prepare": (
            ".prepare:prepare_command",
            "Build, copy and upload every archive that an environment's endpoints need, TensorRT engines included.",
        ),
        "outputs": (
            ".pipeline:outputs_command",
            "Print an environment's endpoints, bucket, key, roles, releases and alarms for other pipelines.",
        ),
        "pipeline": (
            ".pipeline:pipeline_group",
            "Print the bootstrap commands of each account that a pipeline deploys to.",
        ),
    },
    "Operate": {
        "invoke": (".invoke", "Send a request to a model by its name."),
        "proxy": (".proxy", "Serve KServe v2 on loopback, for Triton's own HTTP clients and perf_analyzer."),
        "verify": (
            ".releases:verify_command",
            "Send every released model its sample request, and compare the responses.",
        ),
        "releases": (
            ".releases:releases_command",
            "Show each model's current and earlier releases, and records that differ from the deployment.",
        ),
        "rollback": (".releases:rollback_command", "Roll a model back to an earlier release, without a deployment."),
        "prune": (
            ".archives:prune_command",
            "Delete archives that neither a release record nor its kept history refers to.",
        ),
        "leftovers": (
            ".leftovers",
            "List stacks that left an environment's file and still run, with their cost; with --delete delete them.",
        ),
        "dashboard": (".dashboard", "Draw an environment's dashboard from its metrics, as an HTML page."),
    },
    "Review": {
        "review": (".review", "Report what a change does to every environment, compared with its base."),
        "snapshots": (
            ".project:snapshots_command",
            "Write the synthesised templates of every environment, which review compares.",
        ),
    },
}
"""Section of ``--help`` → its commands. A group of another package (``local``) is a section of its own."""


class SuggestingGroup(click.Group):
    """A group that names the command which a misspelt or misplaced one may mean."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; the message for an unknown name has the nearest command, with its group."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and name not in self.list_commands(ctx):
            ctx.fail(f"No such command '{name}'. {suggested(name, ctx)}".rstrip())
        return super().resolve_command(ctx, args)


def suggested(name: str, ctx: click.Context) -> str:
    """The sentence that names the commands most like ``name``, whatever group they are in; empty where none is.

    A command of that very name in another group goes before names that are alike.
    """
    commands: dict[str, str] = {}  # a command's last word → the command; the group's own go before those of others
    if isinstance(ctx.command, click.Group):
        commands |= {each: f"{_path(ctx)}{each}" for each in ctx.command.list_commands(ctx)}
    commands = {each: each for section in COMMANDS.values() for each in section} | commands
    for group, found in groups().items():
        commands = {each: f"{group} {each}" for each in found.lazy} | {group: group} | commands
    near = [name] if name in commands else alike(name, commands, most=2)
    quoted = [f"'{commands[each]}'" for each in near]
    return f"Did you mean {' or '.join(quoted)}?" if near else ""


def _path(ctx: click.Context) -> str:
    """The words between the program and a command of the group: ``capacity prices``."""
    return "" if ctx.parent is None else f"{_path(ctx.parent)}{ctx.info_name} "


class LazyGroup(SuggestingGroup):
    """A group whose commands live in modules that are imported on use."""

    def __init__(self, *, commands: Commands, **settings: Any) -> None:
        """``commands``: name → ``module:name`` of the click command, and its help line; ``settings``: click's."""
        super().__init__(**settings)
        self.lazy = commands

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """The commands in their order."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command that ``module:name`` names; without a name, ``command`` of the module."""
        if cmd_name not in self.lazy:
            return None
        module, _, name = self.lazy[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module, __package__), name or "command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.lazy[cmd_name][0]} is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The help lines, without importing a single command's module."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.lazy.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, without importing a single command's module; and the group's options."""
        found = [CompletionItem(name, help=self.help_line(name)) for name in self.list_commands(ctx)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(each for each in found if each.value.startswith(incomplete)), *options]

    def help_line(self, name: str) -> str:
        """The help line of a command of this group."""
        return self.lazy[name][1]


class RootGroup(LazyGroup):
    """The commands of this package, and the groups of others: entry points of ``tritonstack.commands``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, then the groups."""
        return [*super().list_commands(ctx), *groups()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command of this package, or a group; groups are looked up only for names that are no command here."""
        return super().get_command(ctx, cmd_name) or groups().get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in any group; the error for a group that is not installed has the command that installs it."""
        if args[0] not in self.list_commands(ctx) and args[0] in registered(GROUPS).names:
            ctx.fail(f"'{args[0]}' needs more packages: {install_command(args[0])}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The help lines by section, those of groups with the group's name before them."""
        width = max(len(name) for section in sections().values() for name in section)
        for title, section in sections().items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in section.items()])

    def help_line(self, name: str) -> str:
        """The help line of a command, or of a group."""
        return super().help_line(name) if name in self.lazy else groups()[name].get_short_help_str(limit=100)


def sections() -> dict[str, dict[str, str]]:
    """Section of the help → its commands, as they are typed, with their help lines."""
    own = {title: {name: text for name, (_, text) in section.items()} for title, section in COMMANDS.items()}
    below = {
        group.capitalize(): {f"{group} {name}": text for name, (_, text) in found.lazy.items()}
        for group, found in sorted(groups().items(), reverse=True)  # what runs here before what plans ahead
    }
    return own | below


@cache
def groups() -> dict[str, LazyGroup]:
    """Groups of commands by name, of the packages that are installed next to this one."""
    return extensions(GROUPS)


@click.group(
    cls=RootGroup,
    commands={name: where for section in COMMANDS.values() for name, where in section.items()},
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command describes itself: tritonstack COMMAND --help. Exit codes: 0 done; 1 the work failed, a "
    "check or a limit does not hold, or the answer to a question is no; 2 wrong input; 130 interrupted.",
)
@click.version_option(VERSION, prog_name="tritonstack")
def root() -> None:
    """Serve models with NVIDIA Triton on Amazon SageMaker GPU endpoints, as code."""
    project = find_project()
    if project is not None and project != LIBRARY and (project / "tritonstack" / "paths.py").is_file():
        own = shlex.quote(str(project / ".envs" / "main" / "bin" / "tritonstack"))
        text = f"note: {project} is a clone of tritonstack, and this command is that of {LIBRARY}; its own: {own}"
        click.echo(visible(text), err=True)


def main() -> None:
    """Entry point: exit code 2 for wrong input, 1 for failed work, a no, a closed output pipe, 130 if interrupted."""
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still unwritten must go somewhere when the interpreter ends, or it complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def _run() -> int:
    try:
        result = root.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except OSError as error:
        if error.errno not in REFUSED_BY_THE_MACHINE:
            raise
        named = written_file(error) if error.errno in FULL else error.filename
        click.echo(visible(f"{named or 'this machine'}: {error.strerror}"), err=True)
        if disk_full(error):
            click.echo(NO_SPACE, err=True)
        return 1
    except Exception as raised:
        failure: Exception = raised
        if isinstance(raised, ModuleNotFoundError) and is_of_another(raised):
            failure = not_installed(raised.name or "")
        if credentials_ended(failure):
            click.echo(visible(f"{failure}\n{RENEW}"), err=True)
            return 1
        if not isinstance(failure, TritonstackError):
            raise
        click.echo(str(failure), err=True)
        if disk_full(failure):
            click.echo(NO_SPACE, err=True)
        return failure.exit_code
    return result if isinstance(result, int) else 0
