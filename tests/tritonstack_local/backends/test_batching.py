"""Requests that agree in shape become one run, and each gets its own part back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
