"""A model folder before it is written: its Triton models, recipe and sample request; tensors as users state them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import yaml

from tritonstack.adding.python_packages import NeededPackages
from tritonstack.adding.seeded_request import COMPACT, FreeLengths, RequestTensor, attempts, body_text, seeded_tensor
from tritonstack.config.fields import MAXIMUM_NAME
from tritonstack.config.patterns import PATTERNS
from tritonstack.errors import InputError, Problem, refuse
from tritonstack.model_files.onnx_graph import GraphTensor
from tritonstack.models.model_config import Tensor, read_config
from tritonstack.models.pbtxt import quoted
from tritonstack.models.recipe import Datatype, Dependency
from tritonstack.naming import NAME_PATTERN
from tritonstack.untrusted.gzip_reading import SUFFIX

SUPPORTED = (
    "an ONNX file, an exported folder of optimum, a TorchScript file, a forest of XGBoost (.json, .ubj) or LightGBM "
    "(.txt), a Triton model folder or repository, or a model.tar.gz of one for SageMaker"
)
PLAN = (
    "a TensorRT plan, which runs on one TensorRT and one kind of GPU alone",
    "add the ONNX file that it was built from; tritonstack docs engines builds the plan on the endpoint's GPU",
)
"""What a plan is, and what to add in its place: nothing here could answer its sample request."""
REQUEST, ANSWER = "sample/request.json", "sample/answer.json"
LOCK, PACKED = "requirements.txt", "env.tar.gz"
"""The lock file of Python models' packages in the model folder; the environment of them in a model's directory."""
TOLERANCE = 1e-3
"""Of a recorded response whose values are at most 1: a GPU rounds otherwise than the CPU that answered."""


NO_CODE = frozenset({"onnxruntime", "ensemble", ""})
"""Backends whose models are data: others' are programs, or graphs that read and write files."""


def runs_code(names: Iterable[str]) -> str:
    """Warning before untrusted code of a model runs."""
    return (
        f"runs the code of {', '.join(names)} on this machine, with your rights but without the credentials and tokens "
        "of your environment: Ctrl-C ends it"
    )


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """Options of ``tritonstack add``: what the model's file does not state."""

    name: str | None = None  # of the model folder
    inputs: tuple[GraphTensor, ...] = ()  # tensors that the file does not state
    outputs: tuple[GraphTensor, ...] = ()
    image: str | None = None  # the input that images become
    text: str | None = None  # the input that texts become
    tokenizer: Path | None = None  # of Hugging Face's tokenizers; without it a text is sent as it is
    text_pairs: bool = False  # whether texts come in pairs: question and context, query and passage
    longest_text: int | None = None  # the most tokens that the model takes
    packages: tuple[str, ...] = ()  # that a Python model needs, beside those that its folder states


@dataclass(frozen=True, kw_only=True)
class TritonModel:
    name: str  # its directory
    config: str  # the text of its config.pbtxt
    files: Mapping[str, Path]  # name below the directory → file, without config.pbtxt


@dataclass(frozen=True, kw_only=True)
class Addition:
    """A model folder to be written."""

    name: str
    model: str  # the directory that requests reach
    kind: str
    dependency: Dependency = "none"
    description: str
    models: tuple[TritonModel, ...]
    unknown: tuple[str, ...] = ()  # sentences: what the files do not state, and what was taken instead
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # input → values that it may have; else any
    lengths: FreeLengths | None = None  # those that the model took in a trial; None where none was made
    adapters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # as the recipe has them
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # as the recipe has them
    sample_file: tuple[str, bytes] | None = None  # the request for an adapter: its name in the folder, its content
    client_files: Mapping[str, Path] = field(default_factory=dict)  # name in the folder → file
    packages: Mapping[str, NeededPackages] = field(default_factory=dict)  # of the Python models that need any, by name
    otherwise: str = ""  # the command that makes and adds a model of it that is proved here; empty for none

    @property
    def addressed(self) -> TritonModel:
        return next(model for model in self.models if model.name == self.model)

    @property
    def request_file(self) -> str:
        """The sample request's name in the folder; a large one is stored compressed."""
        if self.sample_file:
            return self.sample_file[0]
        return REQUEST if len(self.request_text) <= COMPACT else f"{REQUEST}{SUFFIX}"

    @cached_property
    def request_text(self) -> str:
        """The sample request in KServe's JSON form; raises as :meth:`sample_request`."""
        return body_text("inputs", self.sample_request())

    def sample_request(self) -> tuple[Mapping[str, Any], ...]:
        """The tensors of the sample request, one row where the model has a batch; optional inputs are left out.

        Raises :class:`InputError` where every request is larger than SageMaker takes.
        """
        config = read_config(self.addressed.config)
        row = (None,) if config.max_batch_size > 0 else ()
        tensors = [
            RequestTensor(name=each.name, datatype=each.data_type, axes=(*row, *each.dims))
            for each in config.inputs
            if not each.optional
        ]
        lengths = self.lengths or attempts(tensors)[0]
        return tuple(
            seeded_tensor(each.name, each.datatype, lengths.shape(each.axes), values=self.values.get(each.name))
            for each in tensors
        )

    @property
    def locks(self) -> dict[str, NeededPackages]:
        """Name of a lock file → what it locks: one for all models that need the same packages."""
        return {self._lock_file(model): needed for model, needed in self.packages.items()}

    def _lock_file(self, model: str) -> str:
        needed = list(self.packages.values())
        return LOCK if all(each == needed[0] for each in needed) else f"requirements-{model}.txt"

    def _environment_fields(self, model: str) -> dict[str, str]:
        """The recipe's fields of the execution environment that a build makes for one of the models."""
        fields = {"requirements": self._lock_file(model), "packed_as": PACKED}
        return fields | ({} if model == self.model else {"model": model})

    def recipe(self, *, tolerance: float, schema: str) -> str:
        """The text of recipe.yaml. ``schema``: the path of its JSON Schema, empty for none."""
        environments = list(map(self._environment_fields, self.packages))
        fields = {
            "description": self.description,
            "kind": self.kind,
            "model": self.model if self.model != self.name else None,
            "dependency": self.dependency if self.dependency != "none" else None,
            "sample": {"request": self.request_file, "answer": ANSWER, "tolerance": tolerance},
            "adapters": dict(self.adapters),
            "answers": dict(self.answers),
            "client_files": list(self.client_files),
            "execution_environment": environments[0] if len(environments) == 1 else None,
            "execution_environments": environments if len(environments) > 1 else None,
        }
        head = f"# yaml-language-server: $schema={schema}\n" if schema else ""
        head += f"# tritonstack update {self.name} renews {ANSWER}.\n"
        given = {name: value for name, value in fields.items() if value}
        return head + yaml.safe_dump(given, sort_keys=False, allow_unicode=True, width=120)


def folder_name(text: str, *, given: bool, source: Path) -> str:
    """A model folder's name: ``text`` as the user gives it, or made of a file's name. Raises :class:`InputError`."""
    name = text if given else re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAXIMUM_NAME].rstrip("-")
    if re.fullmatch(NAME_PATTERN, name) and len(name) <= MAXIMUM_NAME:
        return name
    allowed = f"{PATTERNS[NAME_PATTERN]}, at most {MAXIMUM_NAME} of them"
    if given:
        raise InputError([Problem(field="--name", found=text, allowed=allowed)])
    advice = f"tritonstack add {source} --name NAME"
    raise InputError(
        [Problem(file=str(source), found=f"no name can be made of {text!r}", allowed=allowed, advice=advice)]
    )


DATATYPES: tuple[str, ...] = get_args(Datatype)
TENSOR_FORM = "NAME:TYPE:SHAPE with the batch first, such as x:FP32:N,3,224,224 (a letter or -1 for a free length)"
_AXIS = r"\s*(?:-1|[1-9][0-9]*|[A-Za-z_][A-Za-z0-9_]*)\s*"
_TENSOR = re.compile(
    rf"(?P<name>.+):(?P<type>{'|'.join(DATATYPES)}):(?P<axes>(?:{_AXIS}(?:,{_AXIS})*)?)", re.IGNORECASE
)


def parse_tensors(option: str, texts: Iterable[str]) -> tuple[GraphTensor, ...]:
    """Tensors as a command's option gives them. Raises :class:`InputError` with every text that is none."""
    matches = {text: _TENSOR.fullmatch(text) for text in texts}
    allowed = f"{TENSOR_FORM}; types {', '.join(DATATYPES)}"
    refuse([Problem(field=option, found=text, allowed=allowed) for text, match in matches.items() if not match])
    return tuple(_tensor_of(match) for match in matches.values() if match)


def _tensor_of(match: re.Match[str]) -> GraphTensor:
    axes = [axis.strip() for axis in match["axes"].split(",") if axis.strip()]
    return GraphTensor(
        name=match["name"],
        datatype=match["type"].upper(),
        shape=tuple(int(axis) if axis.isdecimal() else None for axis in axes),
        symbols=tuple(axis if axis[0].isalpha() or axis[0] == "_" else "" for axis in axes),
    )


def input_text(tensor: GraphTensor) -> str:
    """A tensor as ``--input`` and ``--output`` take it."""
    shape = tensor.shape or ()
    symbols = tensor.symbols or ("",) * len(shape)
    axes = (name or "-1" if axis is None else str(axis) for axis, name in zip(shape, symbols, strict=True))
    return f"{tensor.name}:{tensor.datatype}:{','.join(axes)}"


def why_no_batch(inputs: Sequence[GraphTensor], outputs: Sequence[GraphTensor]) -> str:
    """Why the first axis cannot be the batch: it is fixed, or not the same for all inputs; empty where it can."""
    for tensor in (*inputs, *outputs):
        if tensor.shape is not None and (not tensor.shape or tensor.shape[0] is not None):
            return f"the first axis of {tensor.name} {shape_text(tensor)} is fixed"
    if not inputs or any(tensor.shape is None for tensor in inputs):
        return "the shape of an input is unknown"
    names = _first_names(inputs) - {""}
    return f"the inputs' first axes have different names: {', '.join(sorted(names))}" if len(names) > 1 else ""


def same_names(inputs: Sequence[GraphTensor], outputs: Sequence[GraphTensor]) -> bool:
    """Whether the outputs' first axes have the name of the inputs', or none as these: then they are one axis."""
    return _first_names(outputs) <= (_first_names(inputs) - {""} or {""}) and all(each.shape for each in outputs)


def _first_names(tensors: Sequence[GraphTensor]) -> set[str]:
    return {tensor.symbols[0] if tensor.symbols else "" for tensor in tensors}


def shape_text(tensor: GraphTensor) -> str:
    """``[N, 3, 224]``: the name of a free axis, -1 where it has none."""
    if tensor.shape is None:
        return "of unknown shape"
    symbols = tensor.symbols or ("",) * len(tensor.shape)
    axes = (str(axis) if axis is not None else name or "-1" for axis, name in zip(tensor.shape, symbols, strict=True))
    return f"[{', '.join(axes)}]"


def config_text(*, head: str, max_batch_size: int | None, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str:
    """Fields of config.pbtxt: ``head`` as it stands, then batch and tensors; lists without a tensor are left out."""
    lines = [head] if head else []
    if max_batch_size is not None:
        lines.append(f"max_batch_size: {max_batch_size}")
    for name, tensors in (("input", inputs), ("output", outputs)):
        if tensors:
            lines += [f"{name} [", ",\n".join(f"  {tensor_text(each)}" for each in tensors), "]"]
    return "\n".join(lines) + "\n"


def tensor_text(tensor: Tensor) -> str:
    """A tensor as an entry of config.pbtxt."""
    kind = "STRING" if tensor.data_type == "BYTES" else tensor.data_type
    reshape = " reshape { shape: [ ] }" if tensor.reshape == () else ""  # one number a row: dims cannot be empty
    dims = ", ".join(map(str, tensor.dims))
    return f"{{ name: {quoted(tensor.name)} data_type: TYPE_{kind} dims: [ {dims} ]{reshape} }}"
