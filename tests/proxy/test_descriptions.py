"""Manifests, endpoint states, metadata and the repository index."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from botocore.exceptions import EndpointConnectionError

from tests.client.fakes import FakeTime, client_error
from tests.proxy.world import MANIFESTS, FakeStates
from tritonstack.client.releases import Release
from tritonstack.proxy.descriptions import (
    Described,
    EndpointStates,
    model_config,
    model_metadata,
    repository_index,
    split_address,
)
from tritonstack.proxy.server import CallThreads


def states(sagemaker: FakeStates, time: FakeTime) -> EndpointStates:
    """States of environment ``dev``, each good for five seconds."""
    return EndpointStates(environment="dev", sagemaker=lambda: sagemaker, now=lambda: time.seconds, seconds=5)


def test_threads_give_results_and_errors_and_go_on() -> None:
    threads = CallThreads(count=2, name="t")
    failed = threads.submit(lambda: 1 // 0)
    assert threads.submit(lambda: threading.current_thread().daemon).result(10) is True
    with pytest.raises(ZeroDivisionError):
        failed.result(10)
    assert [threads.submit(partial(pow, n, 2)).result(10) for n in range(5)] == [0, 1, 4, 9, 16]


def test_what_was_cancelled_while_it_waited_is_not_done() -> None:
    threads, go_on, done = CallThreads(count=1, name="t"), threading.Event(), []
    first = threads.submit(lambda: go_on.wait(10))
    second = threads.submit(lambda: done.append(1))
    assert second.cancel()
    go_on.set()
    assert first.result(10)
    threads.submit(lambda: None).result(10)
    assert done == []


@pytest.mark.parametrize("status", ["Creating", "Failed", "OutOfService", "Deleting"])
def test_an_endpoint_that_does_not_answer_is_said_to_be_what_it_is(status: str) -> None:
    sagemaker = FakeStates()
    sagemaker.states["dev-e"] = status
    assert states(sagemaker, FakeTime()).unready("e") == f"endpoint dev-e is {status}"


@pytest.mark.parametrize("status", ["InService", "Updating", "SystemUpdating", "RollingBack"])
def test_an_endpoint_answers_while_it_is_updated(status: str) -> None:
    sagemaker = FakeStates()
    sagemaker.states["dev-e"] = status
    assert states(sagemaker, FakeTime()).unready("e") == ""


def test_a_state_is_read_once_in_five_seconds() -> None:
    sagemaker, time = FakeStates(), FakeTime()
    read = states(sagemaker, time)
    for _ in range(3):
        assert read.unready("e") == ""
    assert sagemaker.looks == 1
    sagemaker.states["dev-e"] = "Failed"
    time.sleep(6)
    assert read.unready("e")


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (client_error("AccessDeniedException"), ""),
        (client_error("ValidationException", 'Could not find endpoint "dev-e".'), "there is no endpoint dev-e"),
        (EndpointConnectionError(endpoint_url="u"), ""),
    ],
)
def test_who_may_not_ask_for_a_state_takes_the_record_s_word(failure: Exception, reason: str) -> None:
    sagemaker = FakeStates()
    sagemaker.failure = failure
    assert states(sagemaker, FakeTime()).unready("e") == reason


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("m", ("m", "")),
        ("e/m", ("e/m", "")),
        ("m.step", ("m", "step")),
        ("e/m.step.2", ("e/m", "step.2")),
        ("e/m.0123456789abcdef.tar.gz", ("e/m.0123456789abcdef.tar.gz", "")),
    ],
)
def test_a_full_stop_names_a_step(name: str, parts: tuple[str, str]) -> None:
    assert split_address(name) == parts


def test_a_configuration_without_tensors_takes_the_manifest_s() -> None:
    """ONNX Runtime completes such a configuration itself; the build read the tensors from the model."""
    manifest = {**MANIFESTS["digits-onnx"], "configs": {"digits-onnx": 'backend: "onnxruntime" max_batch_size: 8'}}
    config = model_config(Described(manifest=manifest, name="digits-onnx"))
    assert config["input"] == [{"name": "pixels", "data_type": "TYPE_FP32", "dims": [4]}]
    assert config["output"] == [{"name": "pixels", "data_type": "TYPE_FP32", "dims": [4]}]
    assert model_metadata(Described(manifest=manifest, name="d"))["platform"] == "onnxruntime"


def test_bytes_are_triton_s_strings_in_a_configuration() -> None:
    manifest = {**MANIFESTS["pixels"], "configs": {"pixels": 'platform: "ensemble"'}}
    config = model_config(Described(manifest=manifest, name="pixels"))
    assert config["input"] == [{"name": "image", "data_type": "TYPE_STRING", "dims": [-1, 1]}], "it does not batch"


def test_what_is_no_manifest_is_not_described() -> None:
    with pytest.raises(KeyError):
        model_config(Described(manifest={"model": {"name": "x"}, "configs": {}}, name="x"))


def test_the_index_may_leave_out_what_does_not_answer() -> None:
    releases = [Release(endpoint=e, model="m", digest="0" * 16) for e in ("a", "b")]
    index = repository_index(releases, unready=lambda one: "down" if one.endpoint == "b" else "", only_ready=True)
    assert index == [{"name": "a/m", "version": "", "state": "READY", "reason": ""}]
