"""What ``tritonstack invoke`` prints: JSON, tables of arrays, or what the answer means."""

from __future__ import annotations

import sys
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.cli.conventions import result_console
from tritonstack.client.body import Array
from tritonstack.client.manifest import datatype_of, shape_text
from tritonstack.client.model_client import Answer
from tritonstack.client.postprocessing import Classes, Embedding, Meaning
from tritonstack.client.postprocessing import Text as TextMeaning

FIRST_VALUES = 6
"""How many of a vector's values are shown."""


def as_json(answer: Answer) -> dict[str, Any]:
    """KServe's form of an answer, and who answered how fast."""
    meanings = {"meanings": [_meaning_json(meaning) for meaning in answer.meanings]} if answer.meanings else {}
    return {
        "model_name": answer.model_name,
        "model_version": answer.model_version,
        "endpoint_name": answer.endpoint_name,
        "target_model": answer.target_model,
        "variant": answer.variant,
        "milliseconds": round(answer.milliseconds, 3),
        "attempts": answer.attempts,
        "bytes_sent": answer.bytes_sent,
        "bytes_received": answer.bytes_received,
        "outputs": [
            {"name": name, "datatype": datatype_of(array), "shape": list(array.shape), "data": _plain(array)}
            for name, array in answer.outputs.items()
        ],
        **meanings,
    }


def _meaning_json(meaning: Meaning) -> dict[str, Any]:
    if isinstance(meaning, Classes):
        return {"classes": [{"index": one.index, "name": one.name, "score": one.score} for one in meaning.best]}
    if isinstance(meaning, TextMeaning):
        return {"text": meaning.text}
    return {"embedding": _plain(meaning.vector)}


def _plain(array: Array) -> list[Any]:
    """An array's elements for JSON, flat; bytes as text, with escapes where they are none."""
    if array.dtype == object:
        return [item.decode(errors="backslashreplace") for item in array.ravel()]
    if array.dtype.kind in "biu":
        values: list[Any] = array.ravel().tolist()
        return values
    # The shortest decimal that reads back as the same number of the array's own type: 0.1, not 0.10000000149.
    return [float(str(value)) for value in array.ravel()]


def show(answer: Answer) -> None:
    """Print an answer, by its meaning where it has one, and a line about who answered how fast."""
    console = result_console()
    for meaning in answer.meanings:
        _show_meaning(console, meaning)
    if not answer.meanings:
        console.print(_arrays(answer))
    form = "binary" if answer.content_type.startswith("application/vnd") else "JSON"
    who = f"{answer.target_model or answer.model_name} at {answer.endpoint_name} ({answer.variant})"
    tries = f" after {answer.attempts} attempts" if answer.attempts > 1 else ""
    time = f"{answer.milliseconds:.1f} ms{tries}"
    console.print(
        Text(f"{who}: {time}; {answer.bytes_sent:,} bytes sent as {form}, {answer.bytes_received:,} received"),
        soft_wrap=not console.is_terminal,  # at words on a screen, one line for a program
    )


def _show_meaning(console: Console, meaning: Meaning) -> None:
    if isinstance(meaning, TextMeaning):
        written = _harmless(meaning.text) if console.is_terminal else meaning.text
        if written.strip():
            click.echo(written)  # as it is, blanks included
        else:
            console.print(Text("(an empty text)", style="dim"))
    elif isinstance(meaning, Embedding):
        vector = meaning.vector
        first = ", ".join(f"{float(value):.4f}" for value in vector[:FIRST_VALUES])
        rest = ", …" if vector.size > FIRST_VALUES else ""
        console.print(Text(f"{vector.size} values of {datatype_of(vector)}: {first}{rest}"), soft_wrap=True)
    else:
        table = Table("class", "name", "score")
        for label in meaning.best:
            table.add_row(str(label.index), Text(label.name), f"{label.score:.4f}")
        console.print(table)


def _harmless(text: str) -> str:
    """A model's text without what would steer a terminal."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _arrays(answer: Answer) -> Table:
    """A table of an answer's outputs."""
    table = Table("output", "type", "shape", "values")
    for name, array in answer.outputs.items():
        shown = np.array(_plain(array), dtype=object).reshape(array.shape) if array.dtype == object else array
        # One line a row, however long: the table wraps it to the screen, and wrapped twice it would be in shreds.
        values = np.array2string(shown, threshold=40, edgeitems=5, precision=4, max_line_width=sys.maxsize)
        table.add_row(Text(name), datatype_of(array), Text(shape_text(array.shape)), Text(values))
    return table
