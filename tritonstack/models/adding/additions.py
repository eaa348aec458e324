"""A model folder before it is written: its Triton models with their files, its recipe, its sample request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tritonstack.config.fields import MAXIMUM_NAME, PATTERNS
from tritonstack.errors import InputError, Problem
from tritonstack.models.adding.seeded_request import lengths, seeded_tensor
from tritonstack.models.lint.onnx_graph import GraphTensor
from tritonstack.models.model_config import read_config
from tritonstack.models.recipe import Dependency
from tritonstack.naming import NAME_PATTERN

SUPPORTED = (
    "an ONNX file, a TorchScript file, a Triton model folder or repository, or a model.tar.gz of one for SageMaker"
)
PLAN = (
    "a TensorRT plan, which runs on one TensorRT and one kind of GPU alone",
    "add the ONNX file that it was built from; docs/engines.md builds the plan on the endpoint's GPU",
)
"""What a plan is, and what to add in its place: nothing here could answer its sample request."""
ANSWER = "sample/answer.json"
TOLERANCE = 1e-3
"""Of a recorded response whose values are at most 1: a GPU rounds otherwise than the CPU that answered."""


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """Options: what a user states about a model beside its file."""

    name: str | None = None  # of the model folder
    inputs: tuple[GraphTensor, ...] = ()  # tensors that the file does not state
    outputs: tuple[GraphTensor, ...] = ()
    image: str | None = None  # the input that images become
    text: str | None = None  # the input that texts become
    tokenizer: Path | None = None  # of Hugging Face's tokenizers; without it a text is sent as it is


@dataclass(frozen=True, kw_only=True)
class TritonModel:
    """One Triton model of a folder."""

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
    unknown: tuple[str, ...] = ()  # what the files do not state, and what was taken instead
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # input → values that it may have; else any
    adapters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # as the recipe has them
    sample_file: tuple[str, bytes] | None = None  # the request for an adapter: its name in the folder, its content
    client_files: Mapping[str, Path] = field(default_factory=dict)  # name in the folder → file

    @property
    def addressed(self) -> TritonModel:
        """The model that requests reach."""
        return next(model for model in self.models if model.name == self.model)

    @property
    def request_file(self) -> str:
        """The sample request's name in the folder."""
        return self.sample_file[0] if self.sample_file else "sample/request.json"

    def sample_request(self) -> tuple[Mapping[str, Any], ...]:
        """The tensors of the sample request, one row where the model has a batch; optional inputs are left out."""
        config = read_config(self.addressed.config)
        row = (None,) if config.max_batch_size > 0 else ()
        return tuple(
            seeded_tensor(
                tensor.name,
                tensor.data_type,
                lengths((*row, *tensor.dims), rows=len(row)),
                values=self.values.get(tensor.name),
            )
            for tensor in config.inputs
            if not tensor.optional
        )

    def recipe(self, *, tolerance: float, schema: str) -> str:
        """The text of recipe.yaml. ``schema``: the path of its JSON Schema, empty for none."""
        fields = {
            "description": self.description,
            "kind": self.kind,
            "model": self.model if self.model != self.name else None,
            "dependency": self.dependency if self.dependency != "none" else None,
            "sample": {"request": self.request_file, "answer": ANSWER, "tolerance": tolerance},
            "adapters": dict(self.adapters),
            "client_files": list(self.client_files),
        }
        head = f"# yaml-language-server: $schema={schema}\n" if schema else ""
        head += f"# tritonstack build {self.name} --record-sample renews {ANSWER}.\n"
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
