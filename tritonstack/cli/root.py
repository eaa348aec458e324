"""The command line: finds a command's module only when it is called, and turns our errors into messages."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click

from tritonstack import VERSION
from tritonstack.credentials import RENEW, credentials_ended
from tritonstack.disk import FULL, disk_full, space_text, written_file
from tritonstack.errors import TritonstackError
from tritonstack.extensions import extensions, registered

REFUSED_BY_THE_MACHINE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE, *FULL)
"""What a person can mend and no code of ours causes: no permission, a read-only or full disk, too many open files."""

GROUPS = "tritonstack.commands"
"""Entry points: name of a group → its ``click.Group``."""

# command → (module:name, help line); a module is imported when its command runs, so that `--help` stays quick.
COMMANDS: dict[str, tuple[str, str]] = {
    "schema": ("tritonstack.cli.schema", "Write the JSON Schemas that editors complete YAML files with."),
    "lint": ("tritonstack.cli.lint:lint_command", "Check model folders for what Triton or SageMaker would refuse."),
    "explain": ("tritonstack.cli.lint:explain_command", "Explain a rule of lint, with a bad example and a good one."),
    "build": (
        "tritonstack.cli.archives:build_command",
        "Export, prove and pack an environment's models into .local/archives.",
    ),
    "pack": (
        "tritonstack.cli.archives:pack_command",
        "Pack one model folder into a .tar.gz, the same bytes every time.",
    ),
    "publish": ("tritonstack.cli.archives:publish_command", "Put an environment's built archives into its bucket."),
    "prepare": (
        "tritonstack.cli.prepare:prepare_command",
        "Put all that an environment's endpoints need into its bucket, TensorRT engines built for their GPUs.",
    ),
    "prune": (
        "tritonstack.cli.archives:prune_command",
        "Remove archives that no release record and no kept history names.",
    ),
    "releases": (
        "tritonstack.cli.releases:releases_command",
        "Show what each model's archive is and was, and where records differ.",
    ),
    "rollback": (
        "tritonstack.cli.releases:rollback_command",
        "Move a model back to an earlier release, without a deployment.",
    ),
    "verify": (
        "tritonstack.cli.releases:verify_command",
        "Ask an environment's recorded models for their samples, and compare the answers.",
    ),
    "builders": (
        "tritonstack.cli.prepare:builders_command",
        "Show what builds the TensorRT engines of an environment.",
    ),
    "preflight": (
        "tritonstack.cli.preflight",
        "Say what a deployment of an environment will fail at, before it fails.",
    ),
    "dashboard": ("tritonstack.cli.dashboard", "Draw an environment's dashboard from its metrics, as a page."),
    "outputs": (
        "tritonstack.cli.pipeline:outputs_command",
        "Tell other pipelines an environment's endpoints, bucket, key, roles, releases and alarms.",
    ),
    "review": (
        "tritonstack.cli.review",
        "Say what a change does to every environment, against the snapshots of its base.",
    ),
    "pipeline": (
        "tritonstack.cli.pipeline:pipeline_group",
        "Print what each account needs before a pipeline deploys into it.",
    ),
    "invoke": ("tritonstack.cli.invoke", "Call a model by its name."),
    "proxy": ("tritonstack.cli.proxy", "Let Triton's own HTTP clients and perf_analyzer call models by name."),
}


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported on use."""

    def __init__(self, *, commands: Mapping[str, tuple[str, str]], **settings: Any) -> None:
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
        command = getattr(importlib.import_module(module), name or "command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.lazy[cmd_name][0]} is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The help lines, without importing a single command's module."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.lazy.items()])


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
        """As click does; for a name that only a group has, the message names the group."""
        name = args[0]
        if self.get_command(ctx, name) is None:
            if name in registered(GROUPS).names:
                ctx.fail(f"'{name}' needs more packages: pip install 'tritonstack[{name}]'")
            of_groups = [group for group, found in groups().items() if name in found.list_commands(ctx)]
            if of_groups:
                ctx.fail(f"No such command '{name}'. Did you mean '{of_groups[0]} {name}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands' help lines, then the groups'."""
        super().format_commands(ctx, formatter)
        with formatter.section("Groups"):
            formatter.write_dl([(name, group.get_short_help_str(limit=100)) for name, group in groups().items()])


@cache
def groups() -> dict[str, LazyGroup]:
    """Groups of commands by name, of the packages that are installed beside this one."""
    return extensions(GROUPS)


@click.group(cls=RootGroup, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="tritonstack")
def root() -> None:
    """Serve models with NVIDIA Triton on Amazon SageMaker GPU endpoints, as code."""


def main() -> None:
    """Entry point.

    Exit code 2 for wrong input, 1 for failed work or a reader of the output that went away, 130 when interrupted.
    """
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
        if error.errno not in REFUSED_BY_THE_MACHINE and not _no_state_folder(error):
            raise
        named = written_file(error) if error.errno in FULL else error.filename
        click.echo(f"{named or 'this machine'}: {error.strerror}", err=True)
        _say_space(error)
        return 1
    except Exception as error:
        code = _said(error)
        if code is None:
            raise
        return code
    return result if isinstance(result, int) else 0


def _said(error: Exception) -> int | None:
    """Print an error of ours, or of AWS credentials that have ended, for a person; the exit code, None for others."""
    if credentials_ended(error):
        click.echo(f"{error}\n{RENEW}", err=True)
        return 1
    if not isinstance(error, TritonstackError):
        return None
    click.echo(str(error), err=True)
    _say_space(error)
    return error.exit_code


def _say_space(error: Exception) -> None:
    """Print what is left of a disk that is full, and what to do, where that is what an error is about."""
    from tritonstack.paths import LocalPaths  # noqa: PLC0415  (only where something went wrong)

    if full := disk_full(error):
        click.echo(space_text(full, state=LocalPaths.from_environment().root), err=True)


def _no_state_folder(error: OSError) -> bool:
    """Whether ``error`` is about a state folder (TRITONSTACK_HOME) that is a file, or cannot be made."""
    from tritonstack.paths import LocalPaths  # noqa: PLC0415  (only where something went wrong)

    if not isinstance(error.filename, str | os.PathLike):
        return False
    root = LocalPaths.from_environment().root
    named = Path(error.filename)
    return not root.is_dir() and (named == root or root in named.parents or named in root.parents)
