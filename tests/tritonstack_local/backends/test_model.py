"""A model's configuration as a backend reads it, and the responses to a call."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


def test_the_default_model_filename_names_the_file(model: Any, tmp_path: Path, pb_utils: Any) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "other.onnx").touch()
    assert (
        settings_of(model, tmp_path, default_model_filename="other.onnx").model_file("model.onnx").name == "other.onnx"
    )
    with pytest.raises(pb_utils.TritonModelException, match=r"model\.onnx' .* found in that folder: other\.onnx"):
        settings_of(model, tmp_path).model_file("model.onnx")


def test_only_the_first_instance_speaks(model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = settings_of(model, tmp_path)
    settings.stand_in("backend a runs b")
    assert capsys.readouterr().out == ""
    settings.first_instance = True
    settings.stand_in("backend a runs b")
    assert capsys.readouterr().out == "tritonstack stand-in: backend a runs b (model digits)\n"


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


def test_a_response_holds_the_outputs_its_request_asked_for(model: Any, tmp_path: Path, request_of: Any) -> None:
    asked: list[list[str]] = []

    def run(inputs: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
        asked.append(outputs)
        return {"y": inputs["x"], "z": np.full(inputs["x"].shape, "a", object)}

    x = np.ones((1, 2), np.float32)
    first, second = responses(model, tmp_path, run, [request_of({"x": x}, ["y"]), request_of({"x": x}, ["z", "y"])])
    assert asked == [["y", "z"]]
    assert list(first.outputs) == ["y"]
    assert sorted(second.outputs) == ["y", "z"]


def test_an_error_names_the_model(model: Any, tmp_path: Path, request_of: Any) -> None:
    error = model.RequestError("refused")

    def run(inputs: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
        raise error

    (response,) = responses(model, tmp_path, run, [request_of({"x": np.ones((1, 2))}, ["y"])])
    assert response.error == "digits: refused"


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
        with pytest.raises(pb_utils.TritonModelException, match=r"needs torch, .*: python3 scripts/setup\.py torch$"):
            model.import_from("TRITONSTACK_TORCH_SITE", "torch", "torch")


@pytest.mark.parametrize(("first", "taken"), [(True, "its own"), (False, "the backends'")])
def test_a_library_may_need_its_own_version_of_what_the_backends_have(
    model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: bool, taken: str
) -> None:
    for site, version in (("library", "its own"), ("backends", "the backends'")):
        folder = tmp_path / site / "needed_by_both_of_them"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f'VERSION = "{version}"')
    (tmp_path / "library/some_library").mkdir()
    (tmp_path / "library/some_library/__init__.py").write_text("from needed_by_both_of_them import VERSION")
    monkeypatch.syspath_prepend(str(tmp_path / "backends"))
    monkeypatch.setenv("SOME_SITE", str(tmp_path / "library"))
    before = set(sys.modules)
    try:
        assert taken == model.import_from("SOME_SITE", "some_library", "some", first=first).VERSION
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]


Inputs = dict[str, np.ndarray]


@pytest.fixture
def batching(backend: Callable[[str], Any]) -> Any:
    return backend("common/tritonstack_batching.py")


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


def test_requests_of_one_shape_are_one_run(batching: Any) -> None:
    run = Runs()
    requests = [rows(2, 3, of=1), rows(1, 3, of=2), rows(3, 3, of=3)]
    results = batching.run_together(requests, run, batched=True)
    assert run.rows == [6]
    for inputs, outputs in zip(requests, results, strict=True):
        np.testing.assert_array_equal(outputs["y"], inputs["x"] * 2)


def test_other_shapes_and_types_are_runs_of_their_own_and_the_order_stays(batching: Any) -> None:
    run = Runs()
    other_type = {"x": np.ones((1, 3), np.float64)}
    requests = [rows(1, 3), rows(1, 4), other_type, rows(2, 3)]
    results = batching.run_together(requests, run, batched=True)
    assert run.rows == [3, 1, 1]
    assert [outputs["y"].shape for outputs in results] == [(1, 3), (1, 4), (1, 3), (2, 3)]


def test_an_optional_input_that_is_left_out_is_a_run_of_its_own(batching: Any) -> None:
    groups = batching.grouped([rows(1, 3), {**rows(1, 3), "mask": np.ones((1, 3))}, rows(1, 3)], batched=True)
    assert groups == [[0, 2], [1]]


def test_without_a_batch_dimension_every_request_is_a_run(batching: Any) -> None:
    run = Runs()
    batching.run_together([rows(2, 3), rows(2, 3)], run, batched=False)
    assert run.rows == [2, 2]


def test_an_error_reaches_only_the_request_that_causes_it(batching: Any) -> None:
    run = Runs(refuse=7, error=batching.RequestError)
    results = batching.run_together([rows(1, 3), rows(1, 3, of=7), rows(1, 3, of=2)], run, batched=True)
    assert run.rows == [3, 1, 1, 1]
    assert results[0]["y"][0, 0] == 2
    assert isinstance(results[1], batching.RequestError)
    assert results[2]["y"][0, 0] == 4


def test_a_single_request_that_fails_runs_once(batching: Any) -> None:
    run = Runs(refuse=1, error=batching.RequestError)
    results = batching.run_together([rows(1, 3)], run, batched=True)
    assert run.rows == [1]
    assert str(results[0]) == "refused"


def test_an_error_of_the_backend_itself_is_not_hidden(batching: Any) -> None:
    with pytest.raises(ValueError, match="refused"):
        batching.run_together([rows(1, 3), rows(1, 3)], Runs(refuse=1), batched=True)


def test_an_output_without_a_batch_dimension_is_an_error_of_the_joint_run_only(batching: Any) -> None:
    def total(inputs: Inputs) -> Inputs:
        return {"y": inputs["x"].sum(keepdims=True)}

    results = batching.run_together([rows(1, 3), rows(1, 3)], total, batched=True)
    assert [outputs["y"].tolist() for outputs in results] == [[[3.0]], [[3.0]]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2)), min_size=1, max_size=8))
def test_each_request_gets_exactly_its_own_rows(batching: Any, shapes: list[tuple[int, int]]) -> None:
    requests = [rows(*shape, of=index) for index, shape in enumerate(shapes)]
    results = batching.run_together(requests, Runs(), batched=True)
    for inputs, outputs in zip(requests, results, strict=True):
        np.testing.assert_array_equal(outputs["y"], inputs["x"] * 2)


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


@pytest.mark.parametrize("device", [b"gpu", b"mixed"])
def test_operators_inputs_and_outputs_move_to_the_cpu(devices: Any, device: bytes) -> None:
    assert devices.on_cpu(pipeline(device)) == pipeline(b"cpu")


def test_a_pipeline_on_the_cpu_stays_byte_for_byte(devices: Any) -> None:
    assert devices.on_cpu(pipeline(b"cpu")) == pipeline(b"cpu")


def test_other_arguments_that_read_gpu_stay(devices: Any) -> None:
    assert b"gpu" in devices.on_cpu(pipeline(b"gpu", argument=b"layout"))


def test_the_operators_names_are_read(devices: Any) -> None:
    assert devices.operator_names(pipeline(b"gpu")) == ["__Resize_1"]


@pytest.mark.parametrize("text", [b"\xff", b"not a pipeline", pipeline(b"gpu")[:-3], b"\x2a\x7f"])
def test_what_is_no_pipeline_is_refused(devices: Any, text: bytes) -> None:
    with pytest.raises(ValueError, match="not a serialised DALI pipeline"):
        devices.on_cpu(text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_or_rewritten_without_another_error(devices: Any, text: bytes) -> None:
    try:
        devices.on_cpu(text)
    except ValueError as error:
        assert "not a serialised DALI pipeline" in str(error)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**64 - 1))
def test_numbers_of_any_size_survive(devices: Any, number: int) -> None:
    encoded = devices._varint(number)
    assert devices._read_varint(encoded, 0) == (number, len(encoded))
