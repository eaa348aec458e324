"""A question as a person has it, an image or a text, to a model's inputs; and which outputs answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tritonstack.adapters import Kind
from tritonstack.client.adapters import to_arrays
from tritonstack.client.body import Array
from tritonstack.client.files import Fetch
from tritonstack.client.tables import TensorTable
from tritonstack.errors import InputError, Problem

Image = Path | str | bytes
Text = Path | str


def question_inputs(
    table: TensorTable, *, image: Image | None = None, text: Text | None = None, fetch: Fetch
) -> dict[str, Array]:
    """The inputs of a question, a batch of one where the model batches.

    Args:
        table: the model's.
        image: an image file, or what one holds.
        text: the text itself; a Path is a file that holds it.
        fetch: gives the client files that the adapters name.

    Raises:
        InputError: nothing is asked, the model has no adapter for it, or the image or text is none.
        WorkFailedError: a client file cannot be had.
    """
    asked: dict[Kind, Path | bytes] = {}
    if image is not None:
        asked["image"] = Path(image) if isinstance(image, str) else image
    if text is not None:
        asked["text"] = text.encode() if isinstance(text, str) else text
    if not asked:
        raise InputError([Problem(field="question", found="neither image nor text", allowed="image=… or text=…")])
    arrays: dict[str, Array] = {}
    for kind, source in asked.items():
        adapter = table.adapters.of(kind)
        if adapter is None:
            have = " and ".join(table.adapters.present) or "arrays only: the model's recipe has no adapters"
            found = f"{'an image' if kind == 'image' else 'a text'}, and the model's recipe has no adapter for it"
            raise InputError([Problem(field=kind, found=found, allowed=have)])
        files = fetch(table, adapter.files)
        try:
            arrays |= to_arrays(adapter, source, files, inputs=table.inputs)
        except InputError as error:
            problems = [replace(one, field=one.field or ("" if one.file else kind)) for one in error.problems]
            raise InputError(problems) from error
    return arrays


def outputs_meant(table: TensorTable | None, outputs: Sequence[str] | None) -> list[str] | None:
    """The outputs to ask for: those that are named, else the one with a meaning, else all (None)."""
    if outputs:
        return list(outputs)
    kind = table.answers.kind if table is not None else None
    return [kind.output] if kind is not None else None
