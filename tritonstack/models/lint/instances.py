"""Rules about instance groups: how many instances of a model there are, and on which GPUs.

Source: core src/model_config_utils.cc (NormalizeInstanceGroup, ValidateInstanceGroup, SetDefaultInstanceCount).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritonstack.catalogue import InstanceType
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_line
from tritonstack.models.lint.view import ModelView, RepositoryView
from tritonstack.models.model_config import Node

_PROFILE = re.compile(r"\s*\+?[0-9]")
"""What C++'s ``stoi`` reads as a number from 0: it stops at the first other character (GetProfileIndex)."""

_KINDS = ("KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL")


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with instance groups."""
    if model.config.node.has("ensemble_scheduling"):
        return
    for group in model.config.node.nodes("instance_group"):
        kind = group.text("kind") or "KIND_AUTO"
        if kind not in _KINDS:
            found, allowed = f"kind: {kind}", "one of " + ", ".join(_KINDS)
            yield at_line(model, group.line_of("kind"), "instance-kind", found, allowed)
        if group.integer("count") < 0:
            found, allowed = f"count: {group.integer('count')}", "1 or more, or none: Triton takes 1 for it"
            yield at_line(model, group.line_of("count"), "instance-count", found, allowed)
        negative = [gpu for gpu in group.integers("gpus") if gpu < 0]
        if kind in ("KIND_CPU", "KIND_MODEL") and group.integers("gpus"):
            allowed = "gpus with KIND_GPU or KIND_AUTO only"
            yield at_line(model, group.line_of("gpus"), "instance-gpus", f"gpus with {kind}", allowed)
        elif negative:
            found, allowed = f"gpus: [ {negative[0]} ]", "the numbers of GPUs, from 0; no gpus for all of them"
            yield at_line(model, group.line_of("gpus"), "instance-gpus", found, allowed)
        elif view.target.instance is None:
            yield from _beyond_first(model, group)
        else:
            yield from _against_instance(model, group, view.target.instance)
        yield from _profiles(model, group)


def _beyond_first(model: ModelView, group: Node) -> Iterator[Finding]:
    beyond = [gpu for gpu in group.integers("gpus") if gpu != 0]
    if beyond:
        allowed = "0: multi-model endpoints run on types with one GPU"
        yield at_line(model, group.line_of("gpus"), "instance-second-gpu", f"gpus: [ {beyond[0]} ]", allowed)


def _against_instance(model: ModelView, group: Node, instance: InstanceType) -> Iterator[Finding]:
    """GPUs that are not there. Of KIND_AUTO Triton makes a group on the CPU, and then refuses it for its ``gpus``."""
    gone = [gpu for gpu in group.integers("gpus") if not 0 <= gpu < instance.gpu_count]
    if gone:
        allowed = f"0 to {instance.gpu_count - 1}, the GPUs of {instance.name}" if instance.gpu_count > 1 else "0 alone"
        found = f"gpus: [ {gone[0]} ] on {instance.name}"
        yield at_line(model, group.line_of("gpus"), "instance-gpu-missing", found, allowed)


def _profiles(model: ModelView, group: Node) -> Iterator[Finding]:
    profiles = [str(typed.value) for typed in group.scalars.get("profile", ())]
    if not profiles:
        return
    line = group.line_of("profile")
    if model.backend != "tensorrt":
        yield at_line(model, line, "instance-profile", "profile", "with backend tensorrt only")
    bad = [profile for profile in profiles if not _PROFILE.match(profile)]
    if bad:
        yield at_line(model, line, "instance-profile", f'profile: "{bad[0]}"', 'the number of a profile, as "0"')
