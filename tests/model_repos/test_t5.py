"""t5-python: requests of a batch are generated together and answered as if each were alone."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

FOLDER = Path(__file__).resolve().parents[2] / "model_repos" / "t5-python" / "t5-python" / "1"
END = 1


class FakeError(Exception):
    INVALID_ARG = "invalid argument"

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class FakeTensor:
    def __init__(self, name: str, array: np.ndarray) -> None:
        self.name, self.array = name, array

    def as_numpy(self) -> np.ndarray:
        return self.array


@dataclass
class FakeResponse:
    output_tensors: list[FakeTensor] = field(default_factory=list)
    error: FakeError | None = None


class FakeTranslator:
    """Answers each row with its real tokens backwards, then the end, then padding: what a row gets depends on its mask.

    A row that begins with 9 never ends.
    """

    padding, ends, vocabulary, device, longest = 0, (END,), 100, "cpu", 12

    def __init__(self) -> None:
        self.batches: list[tuple[int, ...]] = []
        self.closed = False

    def generate(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        self.batches.append(ids.shape)
        assert ids.dtype == mask.dtype == np.int64
        rows = []
        for row, real in zip(ids, mask == 1, strict=True):
            answer = [7] * self.longest if row[0] == 9 else [*row[real][::-1].tolist(), END]
            rows.append([0, *answer])  # the decoder's start
        width = max(map(len, rows))
        return np.array([[*row, *[self.padding] * (width - len(row))] for row in rows])

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def modules() -> Iterator[SimpleNamespace]:
    """model.py and batching.py, imported as the Python backend does it, with a stand-in for its module."""
    before = {name: sys.modules.get(name) for name in ("triton_python_backend_utils", "batching")}
    backend: Any = ModuleType("triton_python_backend_utils")
    backend.Tensor, backend.InferenceResponse, backend.TritonError = FakeTensor, FakeResponse, FakeError
    backend.get_input_tensor_by_name = lambda request, name: request[name]
    backend.Logger = SimpleNamespace(log_info=lambda _line: None, log_warn=lambda _line: None)
    sys.modules["triton_python_backend_utils"] = backend
    try:
        yield SimpleNamespace(batching=load("batching"), model=load("model"))
    finally:
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def served(modules: SimpleNamespace) -> Any:
    """The model with a translator that needs no weights."""
    model = modules.model.TritonPythonModel()
    model.translator = FakeTranslator()
    model.limits = modules.batching.Limits(vocabulary=100, input_tokens=8)
    return model


def request(*rows: list[int], mask: list[list[int]] | None = None) -> dict[str, FakeTensor]:
    ids = np.array(rows, dtype=np.int32).reshape(len(rows), -1)
    masks = np.ones_like(ids) if mask is None else np.array(mask, dtype=np.int32)
    return {"input_ids": FakeTensor("input_ids", ids), "attention_mask": FakeTensor("attention_mask", masks)}


def outputs(responses: list[FakeResponse]) -> list[list[list[int]] | str]:
    """Each response's ids, or what its error says."""
    return [str(one.error) if one.error else one.output_tensors[0].array.tolist() for one in responses]


def test_requests_of_different_lengths_are_generated_in_one_batch(served: Any) -> None:
    padded = request([5, 6, 0, 0], mask=[[1, 1, 0, 0]])
    responses = served.execute([request([5, 6, 7]), request([8]), request([2, 3], [4, 5]), padded, request([9])])
    assert served.translator.batches == [(6, 4)]
    endless = [0, *[7] * FakeTranslator.longest]  # it is cut off by the limit and lengthens no other
    rows = [[[0, 7, 6, 5, END]], [[0, 8, END]], [[0, 3, 2, END], [0, 5, 4, END]], [[0, 6, 5, END]], [endless]]
    assert outputs(responses) == rows
    assert all(one.output_tensors[0].array.dtype == np.int32 for one in responses)
    served.finalize()
    assert served.translator.closed


def test_a_request_that_is_wrong_fails_alone(served: Any) -> None:
    responses = served.execute([request([5, 6]), request([100]), request([-1]), request([4])])
    assert served.translator.batches == [(2, 2)]
    texts = outputs(responses)
    assert texts[0] == [[0, 6, 5, END]]
    assert texts[1] == "input_ids holds 100: the vocabulary has the ids 0 to 99"
    assert "holds -1" in str(texts[2])
    assert texts[3] == [[0, 4, END]]
    assert responses[1].error is not None
    assert responses[1].error.code == FakeError.INVALID_ARG


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (request([2] * 9), "9 tokens, at most 8"),
        (request([]), "holds no token"),
        (request([2, 3], mask=[[1, 2]]), "other than 0 and 1"),
        (request([2, 3], mask=[[0, 0]]), "0 everywhere in a row"),
        (request([2, 3], mask=[[1]]), r"shape [1, 2] and attention_mask [1, 1]"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(served: Any, wrong: dict[str, FakeTensor], said: str) -> None:
    (answer,) = outputs(served.execute([wrong]))
    assert said in str(answer)
    assert served.translator.batches == []  # nothing is generated for nobody


ROWS = st.integers(1, 8).flatmap(
    lambda width: st.lists(st.lists(st.integers(2, 99), min_size=width, max_size=width), min_size=1, max_size=3)
)


@given(requests=st.lists(ROWS, min_size=1, max_size=5))
def test_a_request_is_answered_as_if_it_were_alone(modules: SimpleNamespace, requests: list[list[list[int]]]) -> None:
    model = modules.model.TritonPythonModel()
    model.translator, model.limits = FakeTranslator(), modules.batching.Limits(vocabulary=100, input_tokens=8)
    together = outputs(model.execute([request(*rows) for rows in requests]))
    alone = [outputs(model.execute([request(*rows)]))[0] for rows in requests]
    assert together == alone


def test_the_instances_kind_and_number_decide_the_device(modules: SimpleNamespace) -> None:
    device = modules.model.device_of
    assert device("GPU", "1", gpus=2) == device("KIND_GPU", "1", gpus=2) == "cuda:1"
    assert device("CPU", "0", gpus=2) == "cpu"
    assert device("GPU", "0", gpus=0) == "cpu"


def test_the_limit_of_a_request_comes_from_the_configuration(
    modules: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def translator(folder: Path, **given: Any) -> FakeTranslator:
        made.append((folder, given))
        return FakeTranslator()

    monkeypatch.setattr(modules.model, "Translator", translator)
    monkeypatch.setattr(modules.model, "limit_threads", lambda *threads: threads)
    model = modules.model.TritonPythonModel()
    numbers = {"max_input_tokens": "3", "intra_op_thread_count": "1", "inter_op_thread_count": "1"}
    model.initialize(
        {
            "model_config": json.dumps({"parameters": {name: {"string_value": n} for name, n in numbers.items()}}),
            "model_instance_kind": "GPU",
            "model_instance_device_id": "0",
            "model_instance_name": "t5_0",
        }
    )
    assert made == [(FOLDER / "model", {"kind": "GPU", "device_id": "0"})]
    assert "at most 3" in str(outputs(model.execute([request([2, 2, 2, 2])])))
