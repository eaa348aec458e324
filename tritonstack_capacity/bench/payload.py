"""What is sent: the model's own sample request in either format, or a person's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonstack.archives.manifest import ModelEntry, SampleEntry
from tritonstack.archives.sample_request import request_arrays
from tritonstack.client.body import Array, Body, encode
from tritonstack.client.files import InputFile, read_inputs
from tritonstack.client.model_client import ModelClient
from tritonstack.client.questions import outputs_meant
from tritonstack.errors import InputError, Problem

Format = Literal["binary", "json"]
FORMATS: tuple[Format, ...] = ("binary", "json")


@dataclass(frozen=True, kw_only=True)
class Payload:
    """A request's inputs, and the outputs that are asked for (None for all)."""

    inputs: dict[str, Array]
    outputs: tuple[str, ...] | None
    source: str

    def body(self, payload_format: Format) -> Body:
        """The request in one format, for both ways. Raises InputError where JSON cannot carry it."""
        return encode(self.inputs, outputs=self.outputs, payload_format=payload_format)


def payload_of(client: ModelClient, name: str, *, files: Sequence[str], outputs: Sequence[str]) -> Payload:
    """What ``files`` hold, else the sample that the model's manifest holds.

    Raises:
        InputError: nothing to send, or what the model would not take.
        WorkFailedError: a client file cannot be had.
    """
    table = client.tensor_table(name)
    if files:
        inputs = read_inputs([InputFile.parse(file) for file in files], table, fetch=client.client_files)
        source = ", ".join(Path(file).name for file in files)
    else:
        manifest = client.manifest(name)
        if manifest is None or table is None:
            found = f"{name}, whose manifest this caller cannot read"
            raise InputError([Problem(field="--input", found=found, allowed="--input FILE")])
        sample = SampleEntry.model_validate(manifest["sample"])
        adapter = table.adapters.of(sample.adapter) if sample.adapter else None
        inputs = request_arrays(
            sample,
            adapters=table.adapters,
            model=ModelEntry.model_validate(manifest["model"]),
            files={} if adapter is None else client.client_files(table, adapter.files),
            file=sample.file,
        )
        source = f"the sample of the recipe ({sample.file})"
    if table is not None and (problems := table.problems(inputs, outputs)):
        raise InputError(problems)
    wanted = outputs_meant(table, outputs)
    return Payload(inputs=inputs, outputs=None if wanted is None else tuple(wanted), source=source)
