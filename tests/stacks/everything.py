"""An environment in which nothing is switched off: what every role, tag and finding is looked for in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk

from stacks.stage import EnvironmentStage
from tests.engines.engine_environments import A10G, T4, served_engines, write_models
from tests.stacks.engine_stages import stage_of
from tritonstack.served import Served

REGION = "us-east-1"
HEADER = """
production: true
permissions_boundary: arn:aws:iam::123456789012:policy/boundary
role_path: /team/triton/
tags: {team: platform}
artifacts: {retain: false}
builds: {image: '210987654321.dkr.ecr.us-east-1.amazonaws.com/team/cpu:1'}
logs: {endpoint_days: 365, function_days: 365}
network: {created: {cidr: 10.20.0.0/16, zones: [us-east-1a, us-east-1b], nat: each}, s3_prefix_list_id: pl-1a}
dashboard: true
load_test: {gate: {p95_ms: 500}}
prices: {ml.g4dn.xlarge: 0.74, ml.g5.xlarge: 1.41}
alarms: {email: [us@example.com], thresholds: {no_traffic_minutes: 60, budget_usd_per_hour: 5}}
""".strip()
SCALING = (
    "initial_instance_count: 2\nscaling: {minimum: 2, maximum: 4, invocations_per_instance: 600, gpu_utilization: 60}"
)
ROLLOUT = "rollout: {kind: canary, size_instances: 1, wait_seconds: 600, accept_multi_model: true}"
ENDPOINTS = (
    f"{T4}\n{SCALING}\nnetwork_isolation: true\n{ROLLOUT}",
    A10G,
    f"{T4}\nmode: single-model\ndata_capture: {{percentage: 10}}\nmetrics: {{detailed: true, enhanced: true}}",
)


def everything_served(folder: Path, *, region: str = REGION) -> Served:
    """The environment ``local``, matched with the model folders that are written into ``folder`` for it."""
    if not (folder / "model_repos").is_dir():
        write_models(folder)
    return served_engines(folder, *ENDPOINTS, header=f"region: {region}\n{HEADER.replace(REGION, region)}")


def everything(folder: Path, *, scope: cdk.App | None = None, region: str = REGION) -> EnvironmentStage:
    """Its stage, in an app of its own unless ``scope`` is one."""
    return stage_of(everything_served(folder, region=region), folder, scope=scope)


def stacks_of(stage: EnvironmentStage) -> Iterator[cdk.Stack]:
    """Every stack of a stage."""
    for child in stage.node.children:
        if isinstance(child, cdk.Stack):
            yield child
