"""What stands in for the container of a build: this machine's tools, the project's environments, and no GPU."""

from __future__ import annotations

import json
import platform
from functools import cache
from pathlib import Path
from typing import Any

from tritonstack.paths import REPOSITORY
from tritonstack_local.emulator.codebuild.buildspec import PhaseError
from tritonstack_local.emulator.codebuild.events import BuildLog
from tritonstack_local.emulator.codebuild.plan import BuildPlan
from tritonstack_local.emulator.gpu_stand_ins import NoStandInsError, release_of, stand_in_variables

LINKED = (".envs", "node_modules")
"""Folders of the project that stand in for what an image has installed."""

_MACHINES = REPOSITORY / "tritonstack/catalogue/data/build_machines.json"


def say_what_stands_in(plan: BuildPlan, log: BuildLog) -> None:
    """The first lines of every log."""
    log.say("This is the local AWS, not CodeBuild: the commands run as processes of this machine.")
    log.say(f"No container: {plan.environment['image']} is not pulled, {plan.environment['computeType']} not kept to.")
    if plan.vpc:
        log.say(f"No VPC: the commands have this machine's network, not that of {plan.vpc.get('vpcId')}.")
    log.say(f"No credentials of {plan.service_role}: IAM is not enforced.")


def gpu_variables(plan: BuildPlan, log: BuildLog) -> dict[str, str]:
    """The variables that name the stand-ins for the image's trtexec and the machine's GPU; none without a GPU.

    Raises PhaseError where the compute type has no GPU, or none can be made for the image's release.
    """
    if not plan.on_gpu:
        return {}
    image, compute_type = plan.environment["image"], plan.environment["computeType"]
    if compute_type not in _gpus():
        known = " and ".join(_gpus())
        raise PhaseError(
            "CLIENT_ERROR", f"{plan.environment['type']} has the compute types {known}, not {compute_type}"
        )
    gpu, release = _gpus()[compute_type], release_of(image)
    if release is None:
        log.say(f"No GPU, and no stand-ins for trtexec and nvidia-smi: {image} is no Triton image with a GPU.")
        return {}
    try:
        variables = stand_in_variables(release=release, gpu=gpu)
    except NoStandInsError as error:
        raise PhaseError("CLIENT_ERROR", f"no stand-ins for trtexec and nvidia-smi: {error}") from error
    log.say(f"No GPU: stand-ins for trtexec of Triton {release} and for an {gpu} build no engine.")
    for name, value in sorted(variables.items()):
        log.say(f"{name}={value}")
    return variables


def link_environments(plan: BuildPlan, source: Path, log: BuildLog) -> None:
    """Link the project's environments into a source that lacks them; none into a GPU build: a Triton image has none."""
    if plan.on_gpu:
        return
    for name in LINKED:
        project, linked = REPOSITORY / name, source / name
        if project.exists() and not linked.exists() and not linked.is_symlink():
            linked.symlink_to(project)
            log.say(f"{name} of the project is linked into the source, where the image has what is installed.")


def say_runtimes(runtimes: dict[str, str], log: BuildLog) -> None:
    """Runtimes are not installed; the log says which there is."""
    for name, version in runtimes.items():
        here = platform.python_version() if name == "python" else "whatever the PATH has"
        log.say(f"runtime-versions: {name} {version} is asked for and not installed; here it is {here}.")


@cache
def _gpus() -> dict[str, str]:
    """Compute type → GPU, of CodeBuild's machines with one."""
    document: dict[str, Any] = json.loads(_MACHINES.read_text(encoding="utf-8"))
    return {name: one["gpu"] for name, one in document["codebuild"]["machines"].items()}
