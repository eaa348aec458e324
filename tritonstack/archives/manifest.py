"""The manifest of an archive: what others need to know of it without unpacking it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.archives.adapters import Adapters, Answers
from tritonstack.archives.model_config import Tensor
from tritonstack.archives.overlay import Dependency


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TensorEntry(_Part):
    """One input or output."""

    name: str = Field(description="As in config.pbtxt.")
    datatype: str = Field(description="KServe's name of the type: FP32, INT64, BYTES, …")
    shape: tuple[int, ...] = Field(description="With the batch dimension where the model has one; -1 where variable.")
    optional: bool = Field(False, description="Whether a request may leave the input out.")


class ModelEntry(_Part):
    """The Triton model that requests reach."""

    name: str = Field(description="Its directory in the archive.")
    max_batch_size: int = Field(description="0 where the model does not batch.")
    inputs: tuple[TensorEntry, ...] = Field(description="In the order of config.pbtxt.")
    outputs: tuple[TensorEntry, ...] = Field(description="In the order of config.pbtxt.")


class ArchiveEntry(_Part):
    """The archive's file. Two machines may compress differently: the tar inside is what must agree."""

    file: str = Field(description="The archive's name, which is its TargetModel.")
    bytes: int = Field(description="Size of the .tar.gz.")
    sha256: str = Field(description="SHA-256 of the .tar.gz.")
    tar_bytes: int = Field(description="Size of the tar inside: what a container unpacks.")
    tar_sha256: str = Field(description="SHA-256 of the tar inside.")


class SampleEntry(_Part):
    """A request and its expected answer. Either ``body`` or ``content`` is set."""

    file: str = Field(description="The name of the request's file.")
    body: dict[str, Any] | None = Field(None, description="A request in KServe's JSON form.")
    content: str | None = Field(None, description="In base64: the bytes of a file for the adapter.")
    adapter: Literal["image", "text"] | None = Field(None, description="Which adapter takes the file.")
    answer: dict[str, Any] = Field(description="The expected answer in KServe's JSON form.")
    tolerance: float = Field(description="The largest absolute difference of a floating-point value.")


class Manifest(_Part):
    """Everything that is known of one archive. It holds no time and no machine's name: equal inputs, equal manifest."""

    format: Literal[1] = Field(1, description="Of the manifest itself.")
    name: str = Field(description="The model's name, as environments and callers use it.")
    digest: str = Field(description="Of the inputs; part of the archive's name.")
    description: str = Field(description="One sentence: what the model answers.")
    dependency: Dependency = Field(description="What the archive depends on beside its inputs: none, python, engine.")
    archive: ArchiveEntry = Field(description="The archive's file.")
    model: ModelEntry = Field(description="The model that requests reach.")
    backends: tuple[str, ...] = Field(description="Triton backends that the archive needs.")
    configs: dict[str, str] = Field(description="Directory → the text of its config.pbtxt.")
    adapters: Adapters = Field(description="Files that a client may turn into an input.")
    answers: Answers = Field(default_factory=Answers, description="What a client makes of an output.")
    sample: SampleEntry = Field(description="A request that the archive answers as expected.")
    figures: dict[str, float] = Field(description="What export and proof measured: accuracy, differences.")
    tools: dict[str, str] = Field(description="Tool → version, of export and proof.")

    def to_json(self) -> str:
        """The manifest as a file has it: sorted, so that equal manifests are equal bytes."""
        return json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def read_manifest(path: Path) -> Manifest:
    """A manifest that ``tritonstack build`` wrote. Raises OSError and pydantic's ValidationError (a ValueError)."""
    return Manifest.model_validate_json(path.read_bytes())


def tensor_entry(tensor: Tensor, max_batch_size: int) -> TensorEntry:
    """A configuration's tensor with the shape that requests have."""
    return TensorEntry(
        name=tensor.name,
        datatype=tensor.data_type,
        shape=tensor.shape(max_batch_size),
        optional=tensor.optional,
    )
