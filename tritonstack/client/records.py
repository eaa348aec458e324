"""Records (JSON objects, JSON lines, rows of CSV) as a model's input arrays: a record is one row of the batch."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tritonstack.client.body import Array
from tritonstack.client.kserve_request import typed
from tritonstack.client.manifest import TensorSpec, TensorTable, shape_text
from tritonstack.errors import InputError, Problem, nearest, refuse
from tritonstack.untrusted.foreign_text import parse_json

Record = Mapping[str, Any]
"""Input name → a value, or a nested list of values."""


def documents(text: str | bytes) -> list[Any]:
    """The JSON documents of a text: one, or one a line. Raises ValueError for other text."""
    try:
        return [parse_json(text)]
    except ValueError as error:
        lines = text.decode(errors="replace").splitlines() if isinstance(text, bytes) else text.splitlines()
        numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
        found: list[Any] = []
        for number, line in numbered:
            try:
                found.append(parse_json(line))
            except ValueError as wrong:
                if not found or len(numbered) < 2:  # so not one document a line
                    raise error from None
                raise ValueError(f"line {number}: {wrong}") from None
        if not found:
            raise
        return found


def records_of(values: Sequence[Any], table: TensorTable) -> list[Record] | None:
    """Documents as records; None where they are none. A row without a name is of the model's one input."""
    rows: list[Any] = values[0] if len(values) == 1 and isinstance(values[0], list) else list(values)
    if rows and all(isinstance(row, dict) for row in rows):
        return rows
    if rows and len(table.inputs) == 1 and not any(isinstance(row, dict) for row in rows):
        return [{table.inputs[0].name: row} for row in rows]
    return None


def arrays_from_records(records: Sequence[Record], table: TensorTable, *, file: str) -> dict[str, Array]:
    """The arrays of a batch, a row for each record; where the model does not batch, of one record.

    A single record may hold whole tensors, with their batch dimension.

    Raises InputError: with every name, value and shape that the model does not take.
    """
    refuse(list(_misnamed(records, table, file)))
    if len(records) > 1 and not table.max_batch_size:
        found = f"{len(records)} records, and the model takes no batches (max_batch_size 0)"
        raise InputError([Problem(file=file, found=found, allowed="one record a request")])
    arrays: dict[str, Array] = {}
    problems = []
    for spec in table.inputs:
        given = [record[spec.name] for record in records if spec.name in record]
        if not given:
            continue
        try:
            arrays[spec.name] = _array(given, spec, batches=table.max_batch_size > 0)
        except ValueError as error:
            allowed = f"{spec.datatype} {shape_text(_row_shape(spec, table))} in each record"
            problems.append(Problem(file=file, field=spec.name, found=str(error), allowed=allowed))
    refuse(problems)
    return arrays


def _misnamed(records: Sequence[Record], table: TensorTable, file: str) -> Iterator[Problem]:
    names = [spec.name for spec in table.inputs]
    used = {name for record in records for name in record}
    for index, record in enumerate(records):
        where = f"record {index + 1}" if len(records) > 1 else ""
        for name in record:
            if name not in names:
                allowed = "; ".join(map(str, table.inputs))
                yield Problem(
                    file=file, field=where, found=f"{name}: no such input", allowed=allowed, advice=nearest(name, names)
                )
        lacking = [name for name in names if name not in record and (name not in table.optional_inputs or name in used)]
        if lacking:
            allowed = "a value for each input of the model"
            yield Problem(file=file, field=where, found=f"nothing for {', '.join(lacking)}", allowed=allowed)


def _row_shape(spec: TensorSpec, table: TensorTable) -> tuple[int, ...]:
    return spec.shape[1:] if table.max_batch_size else spec.shape


def _array(values: Sequence[Any], spec: TensorSpec, *, batches: bool) -> Array:
    """One input of all records. Raises ValueError: shapes that differ, or values of another type."""
    if all(side in (1, -1) for side in (spec.shape[1:] if batches else spec.shape)):
        values = [value if isinstance(value, list) else _nested(value, spec, batches=batches) for value in values]
    shapes = [_shape_of(value) for value in values]
    if batches and len(values) == 1 and len(shapes[0]) == len(spec.shape):  # a whole tensor
        return typed(datatype=spec.datatype, shape=shapes[0], data=values[0])
    if len(set(shapes)) > 1:
        found = " and ".join(dict.fromkeys(map(shape_text, shapes)))
        raise ValueError(f"rows of shapes {found}; those of a batch have the same: pad them, or send them one by one")
    shape = (len(values), *shapes[0]) if batches else shapes[0]
    return typed(datatype=spec.datatype, shape=shape, data=list(values) if batches else values[0])


def _nested(value: Any, spec: TensorSpec, *, batches: bool) -> Any:
    """A plain value as the row of an input of one element."""
    for _ in spec.shape[1:] if batches else spec.shape:
        value = [value]
    return value


def _shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a nested list. Raises ValueError where its rows differ."""
    if not isinstance(value, list):
        return ()
    inner = {_shape_of(each) for each in value}
    if len(inner) > 1:
        raise ValueError("a list whose rows have different lengths")
    return (len(value), *next(iter(inner), ()))


# --- CSV: a column is an input of one value, or all columns are the values of the model's one input ---


def records_from_csv(content: bytes, table: TensorTable, *, file: str) -> list[Record]:
    """The rows of a CSV file with a heading.

    Raises InputError: the heading names other columns than the model's inputs, or a cell has another type.
    """
    try:
        rows = [row for row in csv.reader(io.StringIO(content.decode("utf-8-sig")), strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError([Problem(file=file, found=str(error), allowed="CSV in UTF-8, with commas")]) from error
    heading, *rest = rows or [[]]
    specs = {spec.name: spec for spec in table.inputs}
    only = table.inputs[0] if len(table.inputs) == 1 else None
    if heading and set(heading) <= specs.keys():
        columns = [specs[name] for name in heading]
    elif only is not None and _row_shape(only, table) in ((len(heading),), (-1,)):
        columns = [only] * len(heading)
        if all(_is_cell(cell, only.datatype) for cell in heading):  # values: there is no heading
            rest = rows
    else:
        names = ",".join(specs)
        found = f"columns {', '.join(heading) or 'none'}"
        raise InputError([Problem(file=file, field="line 1", found=found, allowed=f"a heading of inputs: {names}")])
    problems = list(_misread(rest, columns, file))
    if not rest:
        problems.append(Problem(file=file, found="no rows", allowed="a row below the heading"))
    refuse(problems)
    values = [[_cell(cell, spec.datatype) for cell, spec in zip(row, columns, strict=True)] for row in rest]
    if only is not None and len(columns) > 1:
        return [{only.name: row} for row in values]
    return [{spec.name: value for spec, value in zip(columns, row, strict=True)} for row in values]


def _misread(rows: Iterable[Sequence[str]], columns: Sequence[TensorSpec], file: str) -> Iterator[Problem]:
    for index, row in enumerate(rows):
        where = f"row {index + 1}"
        if len(row) != len(columns):
            yield Problem(file=file, field=where, found=f"{len(row)} cells", allowed=f"{len(columns)} cells")
            continue
        for cell, spec in zip(row, columns, strict=True):
            if not _is_cell(cell, spec.datatype):
                yield Problem(file=file, field=f"{where}, {spec.name}", found=repr(cell), allowed=spec.datatype)


_TRUTH = {"true": True, "false": False, "1": True, "0": False}


def _is_cell(cell: str, datatype: str) -> bool:
    try:
        _cell(cell, datatype)
    except (ValueError, KeyError):
        return False
    return True


def _cell(cell: str, datatype: str) -> Any:
    """A cell as JSON's value of a datatype. Raises ValueError or KeyError: it is none."""
    if datatype == "BYTES":
        return cell
    if datatype == "BOOL":
        return _TRUTH[cell.strip().lower()]
    return int(cell) if "INT" in datatype else float(np.float64(cell))
