"""Runs a TorchScript file for several requests, and states types and shapes of what it gives.

    python -P try_torchscript.py PLAN.json RESULT.json

Runs in the environment ``torch``: standard library and PyTorch only. PLAN: ``file`` and ``requests``, each a list of
KServe's tensors in the order of ``forward``'s arguments. RESULT: ``answers``, for each request the tensors' names,
types and shapes, or null where the module does not take it, and ``batches``: whether each row of the second request is
answered as by itself; or ``failure``, where the module does not take the first one.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

torch: Any = importlib.import_module("torch")  # of another environment than this package
Tensor = Any

TYPES = {
    "BOOL": torch.bool,
    "UINT8": torch.uint8,
    "INT8": torch.int8,
    "INT16": torch.int16,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "FP16": torch.float16,
    "FP32": torch.float32,
    "FP64": torch.float64,
}
NAMES = {kind: name for name, kind in TYPES.items()}


def main(plan_file: str, result_file: str) -> int:
    """Read the plan, write what the module gave, or why it failed."""
    plan = json.loads(Path(plan_file).read_text())
    try:
        result: dict[str, Any] = tried(plan["file"], plan["requests"])
    except Exception as error:  # noqa: BLE001  (whatever the module raises)
        # Of TorchScript's own traceback the last line has the reason, with the error's type before it.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        name = type(error).__name__
        reason = lines[-1].removeprefix(f"{name}: ") if lines else "no reason given"
        result = {"failure": f"{name}: {reason}"}
    Path(result_file).write_text(json.dumps(result))
    return 0


def tried(file: str, requests: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """The answers to every request; raises what the module raises for the first."""
    module = torch.jit.load(file, map_location="cpu").eval()
    given = [[tensor_of(tensor) for tensor in request] for request in requests]
    answers: list[dict[str, Tensor] | None] = [named(call(module, given[0]))]
    for request in given[1:]:
        try:
            answers.append(named(call(module, request)))
        except Exception:  # noqa: BLE001  (a request of another shape is only tried)
            answers.append(None)
    shapes = [None if answer is None else [stated(name, each) for name, each in answer.items()] for answer in answers]
    return {"answers": shapes, "batches": len(given) > 2 and rows_alike(module, given[1], answers[1])}


def stated(name: str, tensor: Tensor) -> dict[str, Any]:
    """An output's name, type and shape. Raises ValueError for a type that Triton has no name for."""
    if tensor.dtype not in NAMES:
        raise ValueError(f"output {name} is {tensor.dtype}, which Triton has no type for")
    return {"name": name, "datatype": NAMES[tensor.dtype], "shape": list(tensor.shape)}


def call(module: Any, request: list[Tensor]) -> Any:
    """One call of the module."""
    with torch.inference_mode():
        return module(*request)


def named(result: Any) -> dict[str, Tensor]:
    """The outputs by the names that Triton's backend gives them: keys of a dictionary, else by position."""
    if isinstance(result, Mapping):
        return {str(key): value for key, value in result.items()}
    results = [result] if isinstance(result, torch.Tensor) else list(result)
    return {f"OUTPUT__{index}": value for index, value in enumerate(results)}


def rows_alike(module: Any, request: list[Tensor], together: dict[str, Tensor] | None) -> bool:
    """Whether an answer to several rows is the answers to each row by itself."""
    if together is None:
        return False
    rows = len(request[0])
    try:
        alone = [named(call(module, [tensor[row : row + 1] for tensor in request])) for row in range(rows)]
        return all(
            torch.allclose(
                torch.cat([answer[name] for answer in alone]).double(), tensor.double(), rtol=1e-2, atol=1e-3
            )
            for name, tensor in together.items()
        )
    except (RuntimeError, KeyError):  # of other shapes
        return False


def tensor_of(tensor: Mapping[str, Any]) -> Tensor:
    """A tensor of the plan."""
    return torch.tensor(tensor["data"], dtype=TYPES[tensor["datatype"]]).reshape(tensor["shape"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
