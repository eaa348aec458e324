"""The folder of results: document, measurements.csv and a self-contained page, written anew after each load."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.paths import write_text
from tritonstack_capacity.bench.document import BenchDocument, measurements_csv
from tritonstack_capacity.bench.page import results_page

JSON, CSV, PAGE = "results.json", "measurements.csv", "index.html"


def make_folder(folder: Path) -> None:
    """Make a folder of results, and see that it can be written to. Raises InputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        problem = Problem(
            field="--to", found=f"{folder}: {error.strerror}", allowed="a folder that can be made and written to"
        )
        raise InputError([problem]) from error


def write_results(folder: Path, document: BenchDocument) -> None:
    """Write the document, its table for `tritonstack capacity size`, and its page.

    Raises WorkFailedError: they cannot be written, as on a full disk; what was written before is still there.
    """
    try:
        write_text(folder / JSON, json.dumps(document.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")
        write_text(folder / CSV, measurements_csv(document))
        write_text(folder / PAGE, results_page(document))
    except OSError as error:
        raise WorkFailedError(f"{folder}: results cannot be written: {error.strerror}") from error


def results_file(named: Path) -> Path:
    """The file of results that a person names by itself, or by its folder."""
    # Path.is_dir() raises where a folder above may not be entered; reading the file reports that as a problem.
    return named / JSON if os.path.isdir(named) else named  # noqa: PTH112


def read_results(file: Path) -> BenchDocument:
    """Results that were written earlier. Raises InputError."""
    try:
        return BenchDocument.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        found = (
            error.strerror or "unreadable"
            if isinstance(error, OSError)
            else f"no UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}"
        )
        problem = Problem(file=str(file), found=found, allowed="results of tritonstack capacity bench")
        raise InputError([problem]) from error
    except ValidationError as error:
        allowed = "results of tritonstack capacity bench, schema_version 1"
        wrong = [(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors()[:10]]
        problems = [Problem(file=str(file), field=field, found=found, allowed=allowed) for field, found in wrong]
        raise InputError(problems) from error
