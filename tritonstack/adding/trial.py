"""Trial of an ONNX or TorchScript file: what it answers, whether its first axis is a batch, which lengths it takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonstack.adding.seeded_request import FreeLengths, RequestTensor, attempts, seeded_tensor
from tritonstack.archives.programs import GIB, Limits, Report, has_environment, run_script
from tritonstack.archives.proof import PROOF_ENVIRONMENT
from tritonstack.errors import WorkFailedError
from tritonstack.model_files.onnx_graph import GraphTensor
from tritonstack.untrusted.foreign_text import parse_json

PROGRAM = Path(__file__).with_name("try_model.py")
REPAIRED = "repaired.onnx"
"""The copy of an ONNX graph with outputs as they are, in the folder of the trial."""

ROWS = 2
"""Rows of the request that shows whether the first axis is a batch: each is answered by itself, and both together."""
ADDED = 8
"""So much longer are the free axes of the request that shows which axes of the outputs follow them."""
POOL = 9_973
"""Seeded values of each input, which its requests repeat. A prime, so that no two rows are the same."""

UNTRIED = (
    "Export it for smaller inputs, or add a Triton model folder with its config.pbtxt, of which no batch is tried."
)
SECONDS = 300
MEMORY_BYTES, COPIES = 8 * GIB, 3
"""Memory of a trial: for libraries and intermediate values, and copies of the weights while they are loaded."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Outputs of a model for one row, for several, and for longer free axes; all empty where it was not tried."""

    # for each request the outputs' names, types and shapes; None where the model does not take it
    answers: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    batches: bool | None = None  # whether rows together are answered as each by itself
    repaired: Sequence[str] = ()  # outputs of an ONNX graph that declare another shape than they have
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # input → values that the graph's encoders know
    differs: Sequence[str] = ()  # outputs whose values differ between two runs of the same request
    lengths: FreeLengths | None = None  # the first ones that the model takes; None where it takes none
    failure: str = ""  # why the model does not take the usual request, where it takes no other

    @property
    def outputs(self) -> Sequence[Mapping[str, Any]]:
        """Name, type and shape of each output for the first request."""
        return (self.answers[0] if self.answers else None) or ()


def try_model(
    path: Path,
    inputs: Sequence[GraphTensor],
    *,
    rows: bool,
    environment: str,
    work: Path,
    report: Report,
    beside: Iterable[Path] = (),
) -> Trial:
    """Run a file in its environment, within limits of time and memory.

    ``rows``: whether the first axis may be the batch. ``beside``: the paths of its external data. Raises
    :class:`InputError` where every request is larger than SageMaker takes, :class:`WorkFailedError` where a limit is
    reached.
    """
    is_onnx = environment == PROOF_ENVIRONMENT
    tensors = [RequestTensor(name=each.name, datatype=each.datatype, axes=each.shape or ()) for each in inputs]
    candidates = attempts(tensors)
    if not has_environment(environment):
        return Trial()
    task = {
        "file": str(path.absolute()),
        "is_onnx": is_onnx,
        "tensors": [seeded_tensor(each.name, each.datatype, [POOL]) for each in tensors],
        # A graph states which axes are free.
        "attempts": [_requests(tensors, each, rows=rows, longer=not is_onnx) for each in candidates],
        "repaired": str(work / REPAIRED),
    }
    task_file, result_file = work.resolve() / "task.json", work.resolve() / "result.json"
    task_file.write_text(json.dumps(task))
    arguments = ["-P", str(PROGRAM), str(task_file), str(result_file)]
    weights = sum(file.stat().st_size for file in (path, *beside))
    limits = Limits(seconds=SECONDS, memory_bytes=MEMORY_BYTES + COPIES * weights, advice=UNTRIED)
    what = f"trial of {path.name}"
    run_script(environment=environment, arguments=arguments, folder=work, what=what, report=report, limits=limits)
    result = parse_json(result_file.read_text())
    if result.pop("lacks_memory", False):
        raise WorkFailedError(
            f"{what}: one request takes more than the {limits.memory_bytes / GIB:.1f} GiB of memory that it may have.\n"
            f"{UNTRIED}\n  {result['failure']}"
        )
    attempt = result.pop("attempt", None)
    return Trial(lengths=None if attempt is None else candidates[attempt], **result)


def _requests(
    tensors: Sequence[RequestTensor], lengths: FreeLengths, *, rows: bool, longer: bool
) -> Mapping[str, Sequence[Sequence[int]]]:
    """The shapes of the inputs in the requests of one attempt, by what they show."""
    usual = [lengths.shape(each.axes) for each in tensors]
    requests = {"one": usual}
    if rows and lengths.first == 1:
        requests["rows"] = [[ROWS, *shape[1:]] for shape in usual]
    if longer:
        requests["longer"] = [_longer(each.axes, shape) for each, shape in zip(tensors, usual, strict=True)]
    return requests


def _longer(axes: Sequence[int | None], shape: Sequence[int]) -> list[int]:
    """The shape of a request with longer free axes, but for the first."""
    free = [axis is None and index > 0 for index, axis in enumerate(axes)]
    return [length + ADDED if is_free else length for is_free, length in zip(free, shape, strict=True)]
