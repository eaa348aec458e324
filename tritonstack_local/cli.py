"""The commands ``tritonstack local …``, found by the entry point ``tritonstack.commands``."""

from __future__ import annotations

import platform
import sys

import click

from tritonstack.cli.root import LazyGroup
from tritonstack.errors import InputError, Problem
from tritonstack.extensions import require_modules

require_modules("psutil")

COMMANDS = {
    "up": ("tritonstack_local.commands.start_stop:up", "Start the local AWS and its SageMaker runtime."),
    "down": ("tritonstack_local.commands.start_stop:down", "Stop the local AWS and its SageMaker runtime."),
    "status": (
        "tritonstack_local.commands.status:status_command",
        "Show local endpoints, loaded models, hit ratios and last errors.",
    ),
    "logs": (
        "tritonstack_local.commands.status:logs_command",
        "Print the logs of the local AWS, the runtime or an endpoint's Triton.",
    ),
    "env": ("tritonstack_local.commands.start_stop:env", "Print the variables that point an AWS SDK at the local AWS."),
    "iam": (
        "tritonstack_local.commands.iam:iam_command",
        "Report the permissions that were used, and what was denied.",
    ),
    "deploy": (
        "tritonstack_local.commands.deploy:deploy_command",
        "Bootstrap, build, publish and deploy an environment to the local AWS; start it where none runs.",
    ),
    "dev": (
        "tritonstack_local.commands.dev:dev_command",
        "Watch model_repos/ and an environment's file, and release or deploy what changes.",
    ),
    "destroy": ("tritonstack_local.commands.destroy:destroy_command", "Remove an environment from the local AWS."),
    "demo": (
        "tritonstack_local.commands.demo:command",
        "Send two requests to every model of the local environment and print a table.",
    ),
}


class LocalGroup(LazyGroup):
    """The commands; their modules are imported on Linux on x86-64 only."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Same as any group's. Raises InputError at once on a machine that Triton does not run on."""
        if cmd_name in self.lazy and (sys.platform, platform.machine()) != ("linux", "x86_64"):
            problem = Problem(
                field=f"tritonstack local {cmd_name}",
                found=f"{sys.platform} on {platform.machine()}",
                allowed="Linux on x86-64: NVIDIA's wheel of Triton is for no other",
                advice="tritonstack docs getting-started: docker build --platform linux/amd64 --tag tritonstack .",
            )
            raise InputError([problem])
        return super().get_command(ctx, cmd_name)


group = LocalGroup(
    name="local",
    commands=COMMANDS,
    help="Run a local AWS: start it, deploy to it, see what serves.",
    epilog="example: tritonstack local deploy -e local",
)
