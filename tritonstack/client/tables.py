"""A model's tensor table: which inputs and outputs it has, what becomes them, and what of a request does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tritonclient.utils import np_to_triton_dtype

from tritonstack.adapters import Adapters, Answers
from tritonstack.client.body import Array
from tritonstack.client.client_files import ClientFile
from tritonstack.errors import Problem


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    """One input or output.

    Attributes:
        name: as in ``config.pbtxt``.
        datatype: KServe's name: ``FP32``, ``BYTES``, …
        shape: with the batch dimension where the model has one; -1 where any length will do.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.datatype} {shape_text(self.shape)}"


@dataclass(frozen=True, kw_only=True)
class TensorTable:
    """What a model takes and gives.

    Attributes:
        inputs: in the order of ``config.pbtxt``.
        outputs: likewise.
        max_batch_size: 0 where the model does not batch.
        optional_inputs: the names of the inputs that a request may leave out.
        adapters: what becomes of an image or a text.
        answers: what an output means.
        client_files: name → the file in the bucket that adapters and answers name.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    max_batch_size: int
    optional_inputs: frozenset[str]
    adapters: Adapters = field(default_factory=Adapters)
    answers: Answers = field(default_factory=Answers)
    client_files: Mapping[str, ClientFile] = field(default_factory=dict)

    def input(self, name: str) -> TensorSpec | None:
        """The input of that name."""
        return next((spec for spec in self.inputs if spec.name == name), None)

    def problems(
        self, inputs: Mapping[str, Array], outputs: Sequence[str] | None = None, *, file: str | None = None
    ) -> list[Problem]:
        """Everything about a request that the model would refuse, empty where there is nothing."""
        problems = []
        for name, array in inputs.items():
            spec = self.input(name)
            if spec is None:
                allowed = _listed(self.inputs)
                problems.append(Problem(file=file, field=f"inputs.{name}", found="no such input", allowed=allowed))
            else:
                problems += self._input_problems(spec, array, file=file)
        for spec in self.inputs:
            if spec.name not in inputs and spec.name not in self.optional_inputs:
                field = f"inputs.{spec.name}"
                problems.append(Problem(file=file, field=field, found="nothing", allowed=str(spec)))
        names = {spec.name for spec in self.outputs}
        for name in outputs or ():
            if name not in names:
                allowed = _listed(self.outputs)
                problems.append(Problem(field=f"outputs.{name}", found="no such output", allowed=allowed))
        return problems

    def _input_problems(self, spec: TensorSpec, array: Array, *, file: str | None) -> list[Problem]:
        problems = []
        field = f"inputs.{spec.name}"
        datatype = datatype_of(array)
        if datatype != spec.datatype:
            found = f"datatype {datatype} (NumPy's {array.dtype})"
            problems.append(Problem(file=file, field=field, found=found, allowed=f"datatype {spec.datatype}"))
        if not _fits(array.shape, spec.shape):
            advice = ""
            if self.max_batch_size and _fits(array.shape, spec.shape[1:]):
                advice = "put the batch dimension in front: array[None]"
            found, allowed = f"shape {shape_text(array.shape)}", f"shape {shape_text(spec.shape)}"
            problems.append(Problem(file=file, field=field, found=found, allowed=allowed, advice=advice))
        elif self.max_batch_size and array.shape[0] > self.max_batch_size:
            found, allowed = f"a batch of {array.shape[0]}", f"at most {self.max_batch_size}"
            advice = "send it in several requests"
            problems.append(Problem(file=file, field=field, found=found, allowed=allowed, advice=advice))
        return problems


def datatype_of(array: Array) -> str:
    """KServe's name of an array's type; NumPy's own where there is none."""
    if array.dtype.kind in "OSU":
        return "BYTES"
    return np_to_triton_dtype(array.dtype.newbyteorder("=")) or str(array.dtype)


def shape_text(shape: Sequence[int]) -> str:
    """``[-1, 8, 8]``, as Triton writes shapes."""
    return f"[{', '.join(map(str, shape))}]"


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    return len(shape) == len(wanted) and all(want in (-1, have) for have, want in zip(shape, wanted, strict=True))


def _listed(specs: Sequence[TensorSpec]) -> str:
    return "; ".join(map(str, specs)) or "none"
