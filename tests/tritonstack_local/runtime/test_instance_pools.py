"""Instance pools in the runtime: a container for each type with instances, which shares requests by their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from tests.tritonstack_local.runtime.fakes import Stage, asynchronous, config, stage, until
from tests.tritonstack_local.runtime.test_rollouts import endpoint
from tritonstack import aws_names
from tritonstack_local.runtime.deployed import DeployedConfig, EmulatorReader

A10G, T4 = "ml.g5.xlarge", "ml.g4dn.xlarge"
VARIANT = "g5-xlarge-pool-3f21"
KEY = ("config-1", VARIANT)


def pool(kind: str) -> DeployedConfig:
    """One instance type of the pools, with the archive of its GPU."""
    made = config(multi_model=False, variant=VARIANT, key=f"{kind}.tar.gz", instance_count=2)
    return replace(made, instance_type=kind, pooled=True)


@asynccontextmanager
async def landed(folder: Path, counts: Mapping[str, int]) -> AsyncIterator[Stage]:
    """An endpoint whose pools have these instances."""
    async with stage(folder) as at:
        at.reader.deploy("e", pool(A10G), pool(T4), weights=(1.0,), pools=counts)
        await at.in_service("config-1")
        yield at


def scaled(at: Stage, counts: Mapping[str, int]) -> None:
    """The pools have these instances from now on."""
    at.reader.described["e"] = replace(at.reader.described["e"], pools={KEY: counts})


def types(at: Stage) -> list[str]:
    """The types of the fleets in service."""
    serving = endpoint(at).serving
    return [] if serving is None else [fleet.config.instance_type for fleet in serving.fleets]


async def taken(at: Stage, count: int) -> Counter[str]:
    """Instance type → how many of the given number of requests it served."""
    fleets = endpoint(at).fleets
    before = {fleet: fleet.metrics.requests for fleet in fleets}
    for _ in range(count):
        await at.call(None)
    return +Counter({fleet.config.instance_type: fleet.metrics.requests - before[fleet] for fleet in fleets})


@asynchronous
async def test_only_the_type_that_instances_landed_on_has_a_container_with_its_own_archive(tmp_path: Path) -> None:
    async with landed(tmp_path, {A10G: 0, T4: 2}) as at:
        assert types(at) == [T4]
        assert at.objects.downloads == [f"{T4}.tar.gz"]
        assert await taken(at, 4) == {T4: 4}
        await at.runtime.publisher.flush()
        named = {
            dimension["Value"]
            for _, call in at.cloudwatch.calls
            for datum in call["MetricData"]
            if datum["MetricName"] == aws_names.INVOCATIONS
            for dimension in datum["Dimensions"]
            if dimension["Name"] == aws_names.INSTANCE_TYPE
        }
        assert named == {T4}


@asynchronous
async def test_a_further_type_gets_a_container_and_one_without_instances_loses_it(tmp_path: Path) -> None:
    async with landed(tmp_path, {A10G: 3, T4: 0}) as at:
        scaled(at, {A10G: 3, T4: 1})
        await until(lambda: types(at) == [A10G, T4])
        assert await taken(at, 8) == {A10G: 6, T4: 2}
        scaled(at, {A10G: 0, T4: 1})
        await until(lambda: types(at) == [T4])
        assert await taken(at, 4) == {T4: 4}
        await until(lambda: not endpoint(at).draining)


def test_a_pool_is_read_with_its_own_model_and_its_instances_from_the_deployment_in_progress() -> None:
    pools = [{"InstanceType": T4, "Priority": 2, "ModelNameOverride": "m-t4"}, {"InstanceType": A10G, "Priority": 1}]
    variant = {"VariantName": VARIANT, "ModelName": "m", "InstancePools": pools, "InitialInstanceCount": 2}
    container = {"Image": "i", "ModelDataUrl": "s3://bucket/key.tar.gz"}
    counts = [{"InstanceType": A10G, "CurrentInstanceCount": 0}, {"InstanceType": T4, "CurrentInstanceCount": 2}]
    shown = {"VariantName": VARIANT, "CurrentInstanceCount": 2, "DesiredInstanceCount": 2, "InstancePools": counts}
    pending = {"EndpointConfigName": "config-1", "ProductionVariants": [shown], "StartTime": 1}
    described = {
        "EndpointName": "e", "EndpointArn": "arn", "EndpointStatus": "Creating", "EndpointConfigName": "config-1",
        "PendingDeploymentSummary": pending,
    }  # fmt: skip
    one = EmulatorReader.__new__(EmulatorReader)
    one._sagemaker = SimpleNamespace(
        describe_endpoint_config=lambda **_: {"ProductionVariants": [variant]},
        describe_model=lambda **given: {
            "ModelName": given["ModelName"],
            "PrimaryContainer": container,
            "ExecutionRoleArn": "r",
        },
        describe_endpoint=lambda **_: described,
        list_tags=lambda **_: {},
    )
    found = one._describe("e")
    assert found.pools == {KEY: {A10G: 0, T4: 2}}
    assert [(each.instance_type, each.model.name, found.runs(each)) for each in one.config("config-1")] == [
        (A10G, "m", False),
        (T4, "m-t4", True),
    ]
