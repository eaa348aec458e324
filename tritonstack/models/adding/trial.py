"""A model file by itself → a model folder: what seeded requests show where its environment is made, and the batch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonstack.models.adding.additions import Addition, TritonModel
from tritonstack.models.adding.seeded_request import lengths, seeded_tensor
from tritonstack.models.adding.tensors import config_text, same_names, why_no_batch
from tritonstack.models.lint.completion import completed_tensor
from tritonstack.models.lint.onnx_graph import GraphTensor
from tritonstack.models.pbtxt import quoted
from tritonstack.models.programs import Report, has_environment, run_script
from tritonstack.models.recipe import Kind
from tritonstack.models.sample import PROOF_ENVIRONMENT

PROGRAM = Path(__file__).with_name("try_model.py")
REPAIRED = "repaired.onnx"
"""The copy of an ONNX graph with outputs as they are, in the folder of the trial."""

ROWS = 2
"""Rows of the request that shows whether the first axis is a batch: each is answered by itself, and both together."""
LONGER = 8
"""So much longer are the free axes of the request that shows which axes of the outputs follow them."""

DEFAULT_BATCH = 8
"""max_batch_size where the model has a batch axis and nothing states how many rows fit the GPU's memory."""

FORMATS: Mapping[Kind, tuple[str, str]] = {
    "onnx": ("ONNX", "onnxruntime_onnx"),
    "pytorch": ("TorchScript", "pytorch_libtorch"),
}
"""Kind → the format of its file, and Triton's platform."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a model gave for one row, for several, and for longer free axes; all empty where it was not tried."""

    # for each request the outputs' names, types and shapes; None where the model does not take it
    answers: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    batches: bool | None = None  # whether rows together are answered as each by itself
    repaired: Sequence[str] = ()  # outputs of an ONNX graph that declare another shape than they have
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # input → values that the graph's encoders know
    failure: str = ""  # why the model does not take the first request

    @property
    def outputs(self) -> Sequence[Mapping[str, Any]]:
        """Name, type and shape of each output for the first request."""
        return (self.answers[0] if self.answers else None) or ()


def try_model(
    path: Path, inputs: Sequence[GraphTensor], *, rows: bool, environment: str, work: Path, report: Report
) -> Trial:
    """Run a file in its environment. ``rows``: whether the first axis may be the batch."""
    if not has_environment(environment):
        return Trial()
    is_onnx = environment == PROOF_ENVIRONMENT
    shapes = [[lengths(each.shape or (), rows=count) for each in inputs] for count in ((1, ROWS) if rows else (0,))]
    if not is_onnx:  # a graph states which axes are free
        shapes.append([_longer(tensor, shape) for tensor, shape in zip(inputs, shapes[0], strict=True)])
    plan = {
        "file": str(path.absolute()),
        "is_onnx": is_onnx,
        "requests": [
            [seeded_tensor(tensor.name, tensor.datatype, shape) for tensor, shape in zip(inputs, each, strict=True)]
            for each in shapes
        ],
        "rows": ROWS if rows else 0,
        "repaired": str(work / REPAIRED),
    }
    plan_file, result_file = work.resolve() / "plan.json", work.resolve() / "result.json"
    plan_file.write_text(json.dumps(plan))
    arguments = ["-P", str(PROGRAM), str(plan_file), str(result_file)]
    run_script(environment=environment, arguments=arguments, folder=work, what=f"trial of {path.name}", report=report)
    return Trial(**json.loads(result_file.read_text()))


def _longer(tensor: GraphTensor, shape: Sequence[int]) -> list[int]:
    """The shape of a request with longer free axes, but for the first."""
    free = [axis is None and index > 0 for index, axis in enumerate(tensor.shape or ())]
    return [length + LONGER if is_free else length for is_free, length in zip(free, shape, strict=True)]


def file_addition(
    path: Path,
    name: str,
    kind: Kind,
    *,
    trial: Trial,
    inputs: Sequence[GraphTensor],
    outputs: Sequence[GraphTensor],
    files: Mapping[str, Path],
    unknown: Sequence[str],
) -> Addition:
    """The folder of the model; ``unknown``: what the file does not state beside the batch."""
    size, of_batch = _batch_size(inputs, outputs, trial)
    what, platform = FORMATS[kind]
    head = f'# Written by tritonstack add from {path.name}.\nname: {quoted(name)}\nplatform: "{platform}"'
    taken, given = ([completed_tensor(each, size) for each in tensors] for tensors in (inputs, outputs))
    config = config_text(head=head, max_batch_size=size, inputs=taken, outputs=given)
    return Addition(
        name=name,
        model=name,
        kind=kind,
        description=f"The {what} model {path.name}.",
        models=(TritonModel(name=name, config=config, files=files),),
        unknown=(of_batch, *unknown),
        values=trial.values,
    )


def _batch_size(inputs: Sequence[GraphTensor], outputs: Sequence[GraphTensor], trial: Trial) -> tuple[int, str]:
    """max_batch_size, and what of it is not known."""
    why_not = why_no_batch(inputs, outputs)
    if not why_not and trial.batches is False:
        why_not = "two rows together are answered otherwise than each by itself"
    if not why_not and trial.batches is None and not same_names(inputs, outputs):
        why_not = "the outputs' first axes are not called like the inputs', and it could not be tried"
    if why_not:
        return 0, f"a batch axis: {why_not}, so max_batch_size is 0"
    return DEFAULT_BATCH, f"how many rows fit the GPU's memory at once: max_batch_size is {DEFAULT_BATCH}"
