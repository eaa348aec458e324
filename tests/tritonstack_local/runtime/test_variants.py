"""Production variants of one endpoint: requests by weight and by target, each with its own container and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.tritonstack_local.runtime.fake_triton import FakeContainer
from tests.tritonstack_local.runtime.fakes import Stage, asynchronous, config, stage, until
from tests.tritonstack_local.runtime.test_rollouts import endpoint, fetched
from tritonstack import aws_names
from tritonstack.loopback.http_server import InvokeError
from tritonstack_local.runtime.deployed import DeployedConfig
from tritonstack_local.runtime.variants import Variants

A, B = "a-g4dn-xlarge", "b-g5-xlarge"
INVOKED = b"x-amzn-invoked-production-variant"


def variants(name: str = "config-1") -> tuple[DeployedConfig, DeployedConfig]:
    """Two variants of a config, each with its own archive."""
    a, b = (
        config(name, multi_model=False, variant=variant, key=f"{variant}.tar.gz", instance_count=count)
        for variant, count in ((A, 1), (B, 2))
    )
    return a, b


@asynccontextmanager
async def serving(folder: Path, *weights: float) -> AsyncIterator[Stage]:
    """An endpoint that serves both variants."""
    async with stage(folder, *variants(), weights=weights) as at:
        yield at


async def served(at: Stage, count: int, *, variant: str | None = None) -> Counter[str]:
    """Variant → how many of the given number of requests it served."""
    responses = [await at.call(None, variant=variant) for _ in range(count)]
    return Counter(response.headers[INVOKED].decode() for response in responses)


def serves(at: Stage) -> Variants:
    """The variants in service."""
    found = endpoint(at).serving
    assert found is not None
    return found


def weight_of(of_variant: dict[str, float], config: DeployedConfig) -> float:
    """The weight of a config's variant."""
    return of_variant[config.variant]


@asynchronous
async def test_each_variant_takes_its_part_of_any_run_and_never_falls_a_whole_request_behind(tmp_path: Path) -> None:
    async with serving(tmp_path) as at:
        one = serves(at)
        for weights in ((3.0, 1.0), (0.9, 0.1), (1.0, 1.0), (0.0, 5.0), (7.0, 0.0), (2.0, 3.0)):
            of_variant = dict(zip((A, B), weights, strict=True))
            one.weigh(partial(weight_of, of_variant))
            part = weights[1] / sum(weights)
            taken = 0
            for number in range(1, 101):
                taken += one.take(None) is one.fleets[1]
                assert abs(taken - part * number) < 1, weights
            assert taken == round(100 * part)


@asynchronous
async def test_requests_are_shared_by_weight_and_counted_by_variant(tmp_path: Path) -> None:
    async with serving(tmp_path, 3.0, 1.0) as at:
        assert {container.settings.model_data for container in at.triton.containers} == {
            fleet.folder / "single" / "model" for fleet in endpoint(at).fleets
        }
        assert sorted(at.objects.downloads) == [f"{A}.tar.gz", f"{B}.tar.gz"]
        assert await served(at, 40) == {A: 30, B: 10}
        await at.runtime.publisher.flush()
        found = {
            (each["Value"], datum["MetricName"]): datum
            for _, call in at.cloudwatch.calls
            for datum in call["MetricData"]
            for each in datum["Dimensions"]
            if each["Name"] == "VariantName" and len(datum["Dimensions"]) == 2
        }
        for variant, count, instances in ((A, 30, 1), (B, 10, 2)):
            figures = found[variant, aws_names.INVOCATIONS]["StatisticValues"]
            assert figures["Sum"] == count
            assert found[variant, aws_names.INVOCATIONS_PER_INSTANCE]["StatisticValues"]["Sum"] == count / instances
            assert sum(found[variant, aws_names.MODEL_LATENCY]["Counts"]) == count
        assert (A, aws_names.LOADED_MODEL_COUNT) not in found, "a single-model container"


@asynchronous
async def test_new_weights_take_effect_while_the_fleets_go_on(tmp_path: Path) -> None:
    async with serving(tmp_path, 1.0, 1.0) as at:
        assert await served(at, 10) == {A: 5, B: 5}
        at.reader.described["e"] = replace(
            at.reader.described["e"], weights={("config-1", A): 0.0, ("config-1", B): 2.0}
        )
        await until(lambda: endpoint(at).share(serves(at).fleets[0]) == 0.0)
        assert await served(at, 10) == {B: 10}
        [found] = (await fetched(at.port, "/_tritonstack/status"))["endpoints"]
        assert [(one["variant"], one["share"], one["requests"]) for one in found["fleets"]] == [(A, 0, 5), (B, 1, 15)]
        assert len(at.triton.containers) == 2


@asynchronous
async def test_a_target_variant_overrides_the_weights_and_costs_the_others_none_of_their_part(tmp_path: Path) -> None:
    async with serving(tmp_path, 1.0, 0.0) as at:
        assert await served(at, 3, variant=B) == {B: 3}
        assert await served(at, 3, variant=A) == {A: 3}
        assert await served(at, 3) == {A: 3}
        with pytest.raises(InvokeError, match="Variant b was not found for endpoint e") as caught:
            await at.call(None, variant="b")
        assert (caught.value.code, caught.value.status) == ("ValidationError", 400)
        response = await at.boto3(EndpointName="e", Body=b"x", TargetVariant=B)
        assert response["InvokedProductionVariant"] == B
        with pytest.raises(at.client.exceptions.ClientError, match="ValidationError"):
            await at.boto3(EndpointName="e", Body=b"x", TargetVariant="c")


@asynchronous
async def test_a_variant_that_cannot_start_fails_the_deployment_and_ends_the_other(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        at.objects.missing.add(f"{B}.tar.gz")
        at.reader.deploy("e", *variants())
        await until(lambda: bool(at.reader.reports))
        assert at.reader.reports[0][2] == "failed"
        assert f"s3://models/{B}.tar.gz" in at.reader.reports[0][3]
        await until(lambda: all(container.exited.done() for container in at.triton.containers))
        await until(lambda: not list((at.runtime.settings.state / "fleets").glob("*/*/*")))


@asynchronous
async def test_the_other_variant_responds_while_one_starts_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as at:
        a, b = serves(at).fleets
        at.triton.ping_status = 400
        assert isinstance(a.container, FakeContainer)
        await a.container.die()
        await until(lambda: a.restarts == 1)
        assert (await served(at, 2, variant=B), b.restarts) == ({B: 2}, 0)
        with pytest.raises(InvokeError, match="is being started again"):
            await at.call(None, variant=A)
        at.triton.ping_status = 200
        await until(a.ready.is_set)
        assert await served(at, 2) == {A: 1, B: 1}


@pytest.mark.parametrize("ends_in", ["config-2", "config-1"])
@asynchronous
async def test_a_canary_gives_each_config_its_part_and_each_variant_its_weight_of_it(
    tmp_path: Path, ends_in: str
) -> None:
    async with serving(tmp_path, 3.0, 1.0) as at:
        at.reader.in_steps.add("config-2")
        at.reader.deploy("e", *variants("config-2"), weights=(1.0, 1.0))
        await until(lambda: ("e", "config-2", "in_service", "") in at.reader.reports)
        assert await served(at, 8) == {A: 6, B: 2}
        at.reader.shift("e", 1, of=2)
        await until(lambda: at.reader.shifts == [("config-2", 1)])
        before = {fleet: fleet.metrics.requests for fleet in endpoint(at).fleets}
        await served(at, 16)
        assert [fleet.metrics.requests - count for fleet, count in before.items()] == [6, 2, 4, 4]
        assert await served(at, 4, variant=B) == {B: 4}
        assert [endpoint(at).share(fleet) for fleet in before] == [0.375, 0.125, 0.25, 0.25]
        at.reader.end("e", ends_in)
        await at.in_service(ends_in)
        await until(lambda: len(endpoint(at).fleets) == 2)
        assert sum(container.exited.done() for container in at.triton.containers) == 2
        assert await served(at, 4) == ({A: 2, B: 2} if ends_in == "config-2" else {A: 3, B: 1})
