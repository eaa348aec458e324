"""``tritonstack local down``."""

from __future__ import annotations

import click

from tritonstack.cli.progress import Steps
from tritonstack.paths import LocalPaths
from tritonstack_local.aws import find_local_aws
from tritonstack_local.deployment import deployed_environments
from tritonstack_local.record import lost_deployments, lost_text, note_deployed
from tritonstack_local.start import stop_local_aws


@click.command("down")
def command() -> None:
    """Stop the local AWS and its runtime. What was deployed there is gone; built archives stay."""
    paths = LocalPaths.from_environment()
    if aws := find_local_aws():
        note_deployed(paths, deployed_environments(aws), emulator=aws.emulator)
    steps = Steps()
    with steps.step("stop the local AWS") as step:
        before = lost_deployments(paths)
        step.end_with(stop_local_aws(report=step.say))
    lost = {name: endpoints for name, endpoints in lost_deployments(paths).items() if name not in before}
    if lost:
        steps.note(f"gone with it, though built archives stay: {lost_text(lost)}, after tritonstack local up")
