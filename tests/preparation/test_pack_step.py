"""The plan's output against the reference: within the tolerance and the rounding of printed numbers, or refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.errors import WorkFailedError
from tritonstack.preparation.pack_step import PRINTED, compare_engine, read_outputs
from tritonstack_local.trtexec.arguments import Shape

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def _write(folder: Path, *tensors: dict[str, Any]) -> Path:
    (folder / "outputs.json").write_text(json.dumps(list(tensors)))
    return folder / "outputs.json"


def _tensor(name: str, array: np.ndarray[Any, Any], shape: Shape | None = None) -> dict[str, Any]:
    return {"name": name, "shape": list(shape or array.shape), "values": array.ravel().tolist()}


def _compare(folder: Path, given: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], tolerance: float = 0.0) -> float:
    return compare_engine(_write(folder, _tensor("y", given)), {"y": wanted}, tolerance=tolerance, what="engine of m")


@given(values=st.lists(FLOATS, min_size=1, max_size=20))
def test_six_printed_digits_are_within_any_tolerance(
    tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    wanted = np.array(values, np.float32)
    printed = np.array([float(f"{float(value):g}") for value in wanted])
    _compare(tmp_path_factory.mktemp("proof"), printed, wanted)


@given(
    values=st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=20),
    index=st.integers(0, 19),
    by=st.floats(0.01, 50),
    tolerance=st.floats(0, 60),
)
def test_a_value_is_refused_exactly_where_it_is_off_by_more_than_is_allowed(
    tmp_path_factory: pytest.TempPathFactory, values: list[float], index: int, by: float, tolerance: float
) -> None:
    wanted, place = np.array(values, np.float32), index % len(values)
    given_ = wanted.astype(np.float64)
    given_[place] += by
    exact = float(wanted[place])  # not rounded to 32 bits
    off = abs(given_[place] - exact)
    folder = tmp_path_factory.mktemp("proof")
    if off <= tolerance + PRINTED * abs(exact):
        assert _compare(folder, given_, wanted, tolerance) == off
    else:
        with pytest.raises(WorkFailedError, match=r"tensor y: differs by up to .* 1 of "):
            _compare(folder, given_, wanted, tolerance)


def test_the_largest_difference_and_the_number_of_wrong_values_are_named(tmp_path: Path) -> None:
    given_ = np.array([[0, 0.5, 0], [0, 0, -2.0]])
    message = r"tensor y: differs by up to 2 from ONNX Runtime, 0\.1 allowed; 2 of 6 values"
    with pytest.raises(WorkFailedError, match=message):
        _compare(tmp_path, given_, np.zeros((2, 3), np.float32), 0.1)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_whatever_the_tolerance(tmp_path: Path, bad: float) -> None:
    with pytest.raises(WorkFailedError, match=r"tensor y: .* 1 of 2 values"):
        _compare(tmp_path, np.array([0.0, bad]), np.zeros(2, np.float32), 1e30)


def test_equal_infinities_differ_by_nothing_and_others_are_refused(tmp_path: Path) -> None:
    wanted = np.array([np.inf, -np.inf, 1], np.float32)
    assert _compare(tmp_path, wanted, wanted) == 0
    with pytest.raises(WorkFailedError, match="differs"):
        _compare(tmp_path, -wanted, wanted, 1e30)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.bool_, np.uint8])
def test_whole_numbers_and_truth_values_must_be_equal(tmp_path: Path, kind: Any) -> None:
    assert _compare(tmp_path, np.array([1, 0, 1]), np.array([1, 0, 1], kind), 5) == 0
    with pytest.raises(WorkFailedError, match="and must be equal; 1 of 3 values"):
        _compare(tmp_path, np.array([1, 0, 0]), np.array([1, 0, 1], kind), 5)


def test_another_shape_and_a_missing_output_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkFailedError, match=r"tensor y: shape \[3, 2\], ONNX Runtime gives \[2, 3\]"):
        _compare(tmp_path, np.zeros((3, 2)), np.zeros((2, 3), np.float32))
    with pytest.raises(WorkFailedError, match="the plan gives no z; it gives y"):
        compare_engine(tmp_path / "outputs.json", {"z": np.zeros(1)}, tolerance=0, what="engine of m")


def test_an_output_without_values_is_taken(tmp_path: Path) -> None:
    assert _compare(tmp_path, np.zeros((0, 3)), np.zeros((0, 3), np.float32)) == 0


def test_the_largest_difference_of_all_outputs_is_reported(tmp_path: Path) -> None:
    path = _write(tmp_path, _tensor("a", np.array([1.25])), _tensor("b", np.array([2.5])))
    reference = {"a": np.array([1], np.float32), "b": np.array([2], np.float32)}
    assert compare_engine(path, reference, tolerance=1, what="engine of m") == 0.5


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff", b"{", b"3", b'{"y": 1}', b'[{"name": "y"}]', b'[{"name": "y", "shape": [2], "values": [1]}]',
        b'[{"name": "y", "shape": [-1], "values": [1]}]', b'[{"name": "y", "shape": 1, "values": [1]}]',
        b'[{"name": "y", "shape": [1], "values": ["one"]}]', b"[" * 5000,
    ],
)  # fmt: skip
def test_any_other_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "outputs.json").write_bytes(content)
    with pytest.raises(WorkFailedError, match="engine of m: the plan's outputs cannot be read"):
        read_outputs(tmp_path / "outputs.json", "engine of m")
