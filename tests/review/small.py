"""Small templates, and assemblies of them written by hand, to read and to compare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tritonstack.review.change import ResourceChange, StackChange
from tritonstack.review.compare import compare
from tritonstack.review.normal_form import normal_resources, normal_sections
from tritonstack.review.snapshot import Asset, AssetKind, EnvironmentSnapshot, Findings, Snapshots, StackSnapshot
from tritonstack.review.stored import FINDINGS, texts_of

Template = dict[str, Any]
CONFIG, ENDPOINT, MODEL = "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Endpoint", "AWS::SageMaker::Model"
VARIANT = {
    "VariantName": "g4dn-xlarge",
    "InstanceType": "ml.g4dn.xlarge",
    "InitialInstanceCount": 1,
    "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
}


def resource(kind: str, properties: Mapping[str, Any] | None = None, **attributes: Any) -> dict[str, Any]:
    """A resource of a template."""
    return {"Type": kind, **({"Properties": dict(properties)} if properties else {}), **attributes}


def serving(
    *,
    image: str = "triton:24.09",
    variant: Mapping[str, Any] | None = None,
    name: str = "dev-digits",
    config: Mapping[str, Any] | None = None,
    **endpoint: Any,
) -> Template:
    """A model, its configuration and its endpoint."""
    return {
        "Model": resource(MODEL, {"PrimaryContainer": {"Image": image}, "ExecutionRoleArn": "arn:role"}),
        "Config": resource(CONFIG, {"ProductionVariants": [{**VARIANT, **(variant or {})}], **(config or {})}),
        "Endpoint": resource(
            ENDPOINT,
            {
                "EndpointName": name,
                "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]},
                **endpoint,
            },
        ),
    }


# The instance count of a scaled endpoint, from its custom resource: the current count is not read.
LIVE = {"InitialInstanceCount": {"Fn::GetAtt": ["Before", "InitialInstanceCount"]}}
SCALING = resource("Custom::ScalingBefore", {"Scaling": '{"initial":2,"maximum":8}', "ServiceToken": "arn"})


def target(
    minimum: Any, maximum: Any, *schedules: dict[str, int], endpoint: str = "dev-digits", resource_id: Any = None
) -> Template:
    actions = [
        {"ScheduledActionName": str(number), "ScalableTargetAction": each} for number, each in enumerate(schedules)
    ]
    properties = {
        "MinCapacity": minimum,
        "MaxCapacity": maximum,
        "ResourceId": resource_id or f"endpoint/{endpoint}/variant/g4dn-xlarge",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        **({"ScheduledActions": actions} if actions else {}),
    }
    return {"Target": resource("AWS::ApplicationAutoScaling::ScalableTarget", properties)}


def stack(
    resources: Template, *, name: str = "serving", sections: Template | None = None, **members: Any
) -> StackSnapshot:
    """A stack's snapshot, in the normal form."""
    template = {"Resources": resources, **(sections or {})}
    made = StackSnapshot(
        name=name,
        stack_name=f"dev-{name}",
        account="111111111111",
        region="us-east-1",
        tags={},
        template=normal_sections(template, {}),
        resources=normal_resources(template, paths={}, assets={}),
        documents={},
        assets={},
    )
    return replace(made, **members)


def of(*stacks: StackSnapshot, findings: Findings | None = None, environment: str = "dev") -> Snapshots:
    """The snapshots of one environment."""
    made = EnvironmentSnapshot(name=environment, stacks={each.name: each for each in stacks}, findings=findings)
    return Snapshots(environments={environment: made})


def code(path: str, **files: str) -> dict[str, Asset]:
    """One asset of code, whose files have these digests."""
    return {path: Asset(path=path, kind=AssetKind.CODE, files={f"{name}.py": each for name, each in files.items()})}


def stack_change(before: StackSnapshot, after: StackSnapshot) -> StackChange:
    """The one stack that changes."""
    [environment] = compare(of(before), of(after))
    [change] = environment.stacks
    return change


def changed(before: Template, after: Template, **sections: Any) -> dict[str, ResourceChange]:
    """Logical id → change, of two sets of resources in the same stack."""
    old, new = stack(before, sections=sections), stack(after, sections=sections)
    [environment] = compare(of(old), of(new))
    return {each.logical_id: each for one in environment.stacks for each in one.resources}


def out_of_date(synthesised: Snapshots, folder: Path) -> list[str]:
    """Files of ``folder`` that are not what was synthesised; ``findings.json`` only where validation was on."""
    wanted = texts_of(synthesised)
    unknown = {f"{name}/{FINDINGS}" for name, each in synthesised.environments.items() if each.findings is None}
    there = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.json")}
    return sorted(name for name in (wanted.keys() | there.keys()) - unknown if there.get(name) != wanted.get(name))


def write_json(path: Path, document: Any) -> None:
    """A JSON file, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def write_assembly(
    folder: Path,
    *,
    template: Template,
    metadata: Mapping[str, Any] | None = None,
    files: Mapping[str, Any] | None = None,
    stage: str | None = "dev",
    report: Mapping[str, Any] | None = None,
) -> Path:
    """A cloud assembly with one stack ``serving``, as the CDK lays it out. Returns its folder."""
    display = "serving" if stage is None else f"{stage}/serving"
    inner = folder if stage is None else folder / f"assembly-{stage}"
    artifacts = {
        "serving1.assets": {"type": "cdk:asset-manifest", "properties": {"file": "serving1.assets.json"}},
        "serving1": {
            "type": "aws:cloudformation:stack",
            "environment": "aws://111111111111/us-east-1",
            "properties": {
                "templateFile": "serving1.template.json",
                "stackName": display.replace("/", "-"),
                "tags": {"team": "platform"},
            },
            "dependencies": ["serving1.assets"],
            "metadata": {f"/{display}{path}": entries for path, entries in (metadata or {}).items()},
            "displayName": display,
        },
    }
    write_json(inner / "manifest.json", {"artifacts": artifacts})
    write_json(inner / "serving1.template.json", template)
    write_json(inner / "serving1.assets.json", {"files": files or {}, "dockerImages": {}})
    if stage is not None:
        directory = {"directoryName": f"assembly-{stage}", "displayName": stage}
        stages = {f"assembly-{stage}": {"type": "cdk:cloud-assembly", "properties": directory}}
        write_json(folder / "manifest.json", {"artifacts": stages})
    if report is not None:
        write_json(folder / "validation-report.json", report)
    return folder
