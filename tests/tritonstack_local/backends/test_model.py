"""A model's configuration as a backend reads it, and the responses to a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CONFIG = {
    "max_batch_size": 8,
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}],
    "output": [
        {"name": "y", "data_type": "TYPE_FP32", "dims": [2]},
        {"name": "z", "data_type": "TYPE_STRING", "dims": [2]},
    ],
    "parameters": {"threads": {"string_value": "3"}, "name": {"string_value": "many"}},
}


@pytest.fixture
def model(backend: Callable[[str], Any]) -> Any:
    return backend("common/tritonstack_model.py")


def settings_of(model: Any, folder: Path, **changes: object) -> Any:
    arguments = {
        "model_config": json.dumps({**CONFIG, **changes}),
        "model_name": "digits",
        "model_repository": str(folder),
        "model_version": "1",
        "model_instance_name": "digits_0_1",
    }
    return model.ModelSettings(arguments)


def test_numbers_are_read_from_parameters(model: Any, tmp_path: Path, pb_utils: Any) -> None:
    settings = settings_of(model, tmp_path)
    assert settings.number("threads", 1) == 3
    assert settings.number("absent", 1) == 1
    with pytest.raises(pb_utils.TritonModelException, match="'name' of model 'digits' is 'many', a whole number"):
        settings.number("name", 1)


def responses(
    model: Any, folder: Path, run: Callable[..., Any], requests: list[Any], **attributes: object
) -> list[Any]:
    class Backend(model.BatchingModel):  # type: ignore[misc]  # imported at run time
        settings = settings_of(model, folder)

        def run(self, inputs: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
            return dict(run(inputs, outputs))

    for name, value in attributes.items():
        setattr(Backend, name, value)
    return list(Backend().execute(requests))


def test_a_response_holds_the_outputs_that_its_request_names(model: Any, tmp_path: Path, request_of: Any) -> None:
    requested: list[list[str]] = []

    def run(inputs: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
        requested.append(outputs)
        return {"y": inputs["x"], "z": np.full(inputs["x"].shape, "a", object)}

    x = np.ones((1, 2), np.float32)
    first, second = responses(model, tmp_path, run, [request_of({"x": x}, ["y"]), request_of({"x": x}, ["z", "y"])])
    assert requested == [["y", "z"]]
    assert list(first.outputs) == ["y"]
    assert sorted(second.outputs) == ["y", "z"]


def test_an_output_of_another_type_is_an_error_unless_the_backend_converts(
    model: Any, tmp_path: Path, request_of: Any
) -> None:
    def run(inputs: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
        return {"y": inputs["x"].astype(np.float64)}

    request = request_of({"x": np.ones((1, 2), np.float32)}, ["y"])
    (refused,) = responses(model, tmp_path, run, [request])
    assert refused.error == "digits: output 'y' is configured as TYPE_FP32, the model gives float64"
    (converted,) = responses(model, tmp_path, run, [request], convert=True)
    assert converted.outputs["y"].dtype == np.float32


def test_a_library_that_is_not_installed_is_reported_with_the_command_that_installs_it(
    model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pb_utils: Any
) -> None:
    for value in (None, str(tmp_path)):
        if value:
            monkeypatch.setenv("TRITONSTACK_TORCH_SITE", value)
        with pytest.raises(
            pb_utils.TritonModelException,
            match=r"needs torch, .*: python3 scripts/setup\.py torch, or .*: tritonstack setup torch$",
        ):
            model.import_from("TRITONSTACK_TORCH_SITE", "torch", "torch")


Inputs = dict[str, np.ndarray]


@pytest.fixture
def batching(backend: Callable[[str], Any]) -> Any:
    return backend("common/tritonstack_model.py")


class Runs:
    """Doubles ``x``, and counts the rows of each run."""

    def __init__(self, refuse: float | None = None, error: type[Exception] = ValueError) -> None:
        self.rows: list[int] = []
        self.refuse, self.error = refuse, error

    def __call__(self, inputs: Inputs) -> Inputs:
        self.rows.append(len(inputs["x"]))
        if self.refuse is not None and (inputs["x"] == self.refuse).any():
            raise self.error("refused")
        return {"y": inputs["x"] * 2}


def rows(*shape: int, of: float = 1.0) -> Inputs:
    return {"x": np.full(shape, of, np.float32)}


@pytest.mark.parametrize(
    ("requests", "batched", "runs"),
    [
        ([rows(2, 3, of=1), rows(1, 3, of=2), rows(3, 3, of=3)], True, [6]),
        ([rows(1, 3), rows(1, 4), {"x": np.ones((1, 3), np.float64)}, rows(2, 3)], True, [3, 1, 1]),
        ([rows(1, 3), {**rows(1, 3), "mask": np.ones((1, 3))}, rows(1, 3)], True, [2, 1]),
        ([rows(2, 3), rows(2, 3)], False, [2, 2]),
    ],
    ids=["one shape", "other shapes and types", "an optional input left out", "no batch dimension"],
)
def test_requests_that_fit_together_are_one_run_and_the_order_stays(
    batching: Any, requests: list[Inputs], batched: bool, runs: list[int]
) -> None:
    run = Runs()
    results = batching.run_together(requests, run, batched=batched)
    assert run.rows == runs
    for inputs, outputs in zip(requests, results, strict=True):
        np.testing.assert_array_equal(outputs["y"], inputs["x"] * 2)


def test_an_error_reaches_only_its_own_request_and_one_of_the_backend_itself_is_raised(
    batching: Any,
) -> None:
    run = Runs(refuse=7, error=batching.RequestError)
    results = batching.run_together([rows(1, 3), rows(1, 3, of=7), rows(1, 3, of=2)], run, batched=True)
    assert run.rows == [3, 1, 1, 1]
    assert results[0]["y"][0, 0] == 2
    assert isinstance(results[1], batching.RequestError)
    assert results[2]["y"][0, 0] == 4
    batching.run_together([rows(1, 3, of=7)], run, batched=True)
    assert run.rows[4:] == [1], "one that is alone runs once"
    with pytest.raises(ValueError, match="refused"):
        batching.run_together([rows(1, 3), rows(1, 3)], Runs(refuse=1), batched=True)


def test_an_output_without_a_batch_dimension_is_an_error_of_the_joint_run_only(batching: Any) -> None:
    def total(inputs: Inputs) -> Inputs:
        return {"y": inputs["x"].sum(keepdims=True)}

    results = batching.run_together([rows(1, 3), rows(1, 3)], total, batched=True)
    assert [outputs["y"].tolist() for outputs in results] == [[[3.0]], [[3.0]]]


@pytest.fixture
def devices(backend: Callable[[str], Any]) -> Any:
    return backend("common/tritonstack_dali_devices.py")


def field(number: int, value: bytes | int) -> bytes:
    """One field in protobuf's wire format, small values only."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def operator(device: bytes, *, argument: bytes = b"device") -> bytes:
    place = field(1, b"image") + field(2, b"gpu" if device != b"cpu" else b"cpu")
    option = field(1, argument) + field(2, b"string") + field(5, device)
    return field(1, b"Resize") + field(2, place) + field(3, place) + field(4, option) + field(5, b"__Resize_1")


CPU_ONLY = b"\xe1\xf2\xf9\xff\xff\xff\xff\xff\xff\x01"
"""-99999 as DALI 2.4.0 writes it."""


def pipeline(device: bytes, *, argument: bytes = b"device") -> bytes:
    output = field(1, b"image") + field(2, b"gpu" if device != b"cpu" else b"cpu")
    device_id = field(8, 0) if device != b"cpu" else bytes([8 << 3]) + CPU_ONLY
    return field(1, 4) + field(5, operator(device, argument=argument)) + field(7, output) + device_id + field(9, 1)


@pytest.mark.parametrize("device", [b"gpu", b"mixed", b"cpu"])
def test_operators_inputs_and_outputs_move_to_the_cpu_or_stay_there(devices: Any, device: bytes) -> None:
    moved = devices.on_cpu(pipeline(device))
    assert devices.Pipeline.FromString(moved) == devices.Pipeline.FromString(pipeline(b"cpu"))
    assert (moved == pipeline(device)) is (device == b"cpu")
    assert field(9, 1) in moved, "what is not described stays"
    assert devices.operator_names(pipeline(device)) == ["__Resize_1"]


@pytest.mark.parametrize("text", [b"\xff", b"not a pipeline", pipeline(b"gpu")[:-3], b"\x2a\x7f"])
def test_what_is_no_pipeline_is_refused(devices: Any, text: bytes) -> None:
    with pytest.raises(ValueError, match="not a serialised DALI pipeline"):
        devices.on_cpu(text)
