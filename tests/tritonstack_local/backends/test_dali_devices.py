"""A serialised DALI pipeline with every operator on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


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
