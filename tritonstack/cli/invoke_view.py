"""What ``tritonstack invoke`` prints: JSON, tables of arrays, or what the answer means."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.client.body import Array
from tritonstack.client.manifest import datatype_of, shape_text
from tritonstack.client.model_client import Answer
from tritonstack.client.postprocessing import Classes, Embedding, Meaning
from tritonstack.client.postprocessing import Text as TextMeaning

FIRST_VALUES = 6
"""How many of a vector's values are shown."""


def as_json(answers: Sequence[Answer]) -> dict[str, Any]:
    """KServe's form of the last answer, and who answered how fast."""
    last = answers[-1]
    meanings = {"meanings": [_meaning_json(meaning) for meaning in last.meanings]} if last.meanings else {}
    return {
        "model_name": last.model_name,
        "model_version": last.model_version,
        "endpoint_name": last.endpoint_name,
        "target_model": last.target_model,
        "variant": last.variant,
        "milliseconds": [round(answer.milliseconds, 3) for answer in answers],
        "attempts": [answer.attempts for answer in answers],
        "bytes_sent": last.bytes_sent,
        "bytes_received": last.bytes_received,
        "outputs": [
            {"name": name, "datatype": datatype_of(array), "shape": list(array.shape), "data": _plain(array)}
            for name, array in last.outputs.items()
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


def show(answers: Sequence[Answer]) -> None:
    """Print the last answer, by its meaning where it has one, and a line about who answered how fast."""
    last = answers[-1]
    console = Console(highlight=False)
    for meaning in last.meanings:
        _show_meaning(console, meaning)
    if not last.meanings:
        console.print(_arrays(last))
    form = "binary" if last.content_type.startswith("application/vnd") else "JSON"
    who = f"{last.target_model or last.model_name} at {last.endpoint_name} ({last.variant})"
    console.print(
        Text(f"{who}: {_times(answers)}; {last.bytes_sent:,} bytes sent as {form}, {last.bytes_received:,} received"),
        soft_wrap=not console.is_terminal,  # at words on a screen, one line for a program
    )


def _show_meaning(console: Console, meaning: Meaning) -> None:
    if isinstance(meaning, TextMeaning):
        written = _harmless(meaning.text) if console.is_terminal else meaning.text
        console.print(Text(written) if written.strip() else Text("(an empty text)", style="dim"), soft_wrap=True)
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


def _times(answers: Sequence[Answer]) -> str:
    """The milliseconds of one call, or the spread of many."""
    times = sorted(answer.milliseconds for answer in answers)
    if len(times) == 1:
        tries = f" after {answers[0].attempts} attempts" if answers[0].attempts > 1 else ""
        return f"{times[0]:.1f} ms{tries}"
    p99 = times[min(len(times) - 1, round(0.99 * (len(times) - 1)))]
    first, median = answers[0].milliseconds, times[len(times) // 2]
    return (
        f"{len(times)} calls, first {first:.1f} ms, least {times[0]:.1f}, median {median:.1f}, "
        f"p99 {p99:.1f}, most {times[-1]:.1f} ms"
    )
