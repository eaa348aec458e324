"""Inference components at the runtime: a container while there are copies, none at zero, requests by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tritonstack_local.runtime.fakes import Stage, asynchronous, config, stage, until
from tritonstack.loopback.http_server import HttpResponse, InvokeError
from tritonstack_local.runtime.components import ComponentEndpoint, RunningComponent


def running(at: Stage, name: str) -> RunningComponent:
    endpoint = at.runtime.reconciler.endpoints["e"]
    assert isinstance(endpoint, ComponentEndpoint)
    return endpoint.components[name]


async def serves(at: Stage, name: str, model: str | None) -> None:
    """Wait until a component is served by the container of a model, or by none."""

    def now() -> bool:
        endpoint = at.runtime.reconciler.endpoints.get("e")
        if not isinstance(endpoint, ComponentEndpoint) or name not in endpoint.components:
            return False
        component = endpoint.components[name]
        found = None if component.serving is None else component.serving.config.name
        return found == model and not component.changing

    await until(now)


async def create(at: Stage, name: str, model: str, *, copies: int = 1) -> None:
    at.reader.configs[model] = (config(model, multi_model=False),)
    at.reader.component(name, model=model, copies=copies)
    await serves(at, name, model if copies else None)


async def call(at: Stage, name: str | None) -> HttpResponse:
    return await at.call(None, component=name)


@asynchronous
async def test_each_component_has_a_container_and_the_header_names_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        await create(at, "one", "model-1")
        await create(at, "two", "model-2")
        assert at.reader.reports == [("one", "model-1", "in_service", ""), ("two", "model-2", "in_service", "")]
        assert len(at.triton.containers) == 2
        for name in ("one", "two"):
            assert (await call(at, name)).status == 200
        assert [running(at, name).serving.metrics.requests for name in ("one", "two")] == [1, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (None, "Inference Component Name header is required for endpoints to which you plan to deploy"),
        ("other", "Could not find inference component other of endpoint e."),
    ],
)
@asynchronous
async def test_a_request_without_a_known_component_is_refused(tmp_path: Path, name: str | None, sentence: str) -> None:
    async with stage(tmp_path) as at:
        await create(at, "one", "model-1")
        with pytest.raises(InvokeError, match=sentence) as refused:
            await call(at, name)
        assert (refused.value.code, refused.value.status) == ("ValidationError", 400)


@asynchronous
async def test_an_ordinary_endpoint_takes_no_component(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        with pytest.raises(InvokeError, match="is not allowed for endpoints to which you dont plan"):
            await at.call(component="one")


@asynchronous
async def test_at_zero_copies_nothing_runs_and_the_refusal_is_counted_until_a_copy_comes_back(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        await create(at, "one", "model-1")
        at.reader.component("one", model=None, copies=0)
        await serves(at, "one", None)
        await until(lambda: all(container.exited.done() for container in at.triton.containers))
        with pytest.raises(InvokeError, match="has no capacity to process this request") as refused:
            await call(at, "one")
        assert (refused.value.code, refused.value.status) == ("ValidationError", 400)
        await at.runtime.publisher.flush()
        data = [
            datum for name, sent in at.cloudwatch.calls if name == "put_metric_data" for datum in sent["MetricData"]
        ]
        found: list[dict[str, Any]] = [each for each in data if each["MetricName"] == "NoCapacityInvocationFailures"]
        assert [each["Dimensions"] for each in found] == [[{"Name": "InferenceComponentName", "Value": "one"}]]

        at.reader.component("one", model=None, copies=1)
        await serves(at, "one", "model-1")
        assert (await call(at, "one")).status == 200


@asynchronous
async def test_another_number_of_copies_keeps_the_container(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        await create(at, "one", "model-1")
        at.reader.component("one", model=None, copies=3)
        await until(lambda: len(at.reader.reports) == 2)
        assert len(at.triton.containers) == 1
        assert (await call(at, "one")).status == 200


@asynchronous
async def test_a_new_model_takes_over_once_it_is_up_and_a_failed_one_leaves_the_old(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        await create(at, "one", "model-1")
        at.reader.configs["model-2"] = (config("model-2", multi_model=False),)
        at.triton.ping_status = 400
        at.reader.component("one", model="model-2", copies=1)
        await until(lambda: len(at.triton.containers) == 2)
        assert (await call(at, "one")).status == 200
        at.triton.ping_status = 200
        await serves(at, "one", "model-2")

        at.triton.exits_at_start.append(1)
        at.reader.configs["model-3"] = (config("model-3", multi_model=False),)
        at.reader.component("one", model="model-3", copies=1)
        await until(lambda: len(at.reader.reports) == 3)
        _, _, outcome, reason = at.reader.reports[-1]
        assert (outcome, "exit code 1" in reason) == ("failed", True)
        await serves(at, "one", "model-2")


@asynchronous
async def test_a_runtime_that_starts_again_runs_the_components_that_have_copies(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        await create(at, "one", "model-1")
        reader = at.reader
    async with stage(tmp_path / "again") as again:
        again.reader.configs, again.reader.described = reader.configs, reader.described
        await serves(again, "one", "model-1")
        assert again.reader.reports == []


@asynchronous
async def test_a_deleted_component_ends_and_its_metrics_and_log_are_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        await create(at, "one", "model-1")
        fleet = running(at, "one").serving
        assert fleet is not None
        assert fleet.address.log_group == "/aws/sagemaker/InferenceComponents/one"
        await call(at, "one")
        sent = {(datum["MetricName"], datum["Dimensions"][0]["Name"]) for _, datum in fleet.metrics.take()}
        assert ("InvocationsPerCopy", "InferenceComponentName") in sent
        assert not {name for name, dimension in sent if dimension != "InferenceComponentName"}
        at.reader.described["e"] = at.reader.described["e"].__class__(
            **{**vars(at.reader.described["e"]), "components": ()}
        )
        await until(lambda: all(container.exited.done() for container in at.triton.containers))
