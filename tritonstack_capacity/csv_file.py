"""CSV files of users: columns of measurements, and errors with file, line and column."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonstack.errors import InputError, Problem

# The published load test's (AWS Machine Learning Blog, BERT large), for own tables too: `bench` writes them, `size`
# reads them.
CONFIGURATION = "configuration_name"
INSTANCE_TYPE = "instance_type"
RATE = "invocations_per_min_per_instance"
LATENCY = "model_latency_as_printed"
"""Milliseconds."""
PRICE = "implied_hourly_price_usd"
GPUS = "gpus"
CONSTRUCTED_MARK = " (constructed)"
"""Ends the name of a configuration whose figures the local AWS constructed."""
THIS_MACHINE = "this-machine"
"""The instance type of what was measured on the local AWS, whatever type the endpoint names."""


def csv_problem(file: Path, place: str, found: str, allowed: str, advice: str = "") -> Problem:
    """A problem of a file; ``place``: ``line 3, hour``, or empty for the whole."""
    return Problem(file=str(file), field=place, found=found, allowed=allowed, advice=advice)


@contextmanager
def reading(file: Path, *, allowed: str = "comma-separated values in UTF-8") -> Iterator[None]:
    """Raise InputError where ``file`` cannot be read as CSV."""
    try:
        yield
    except (csv.Error, UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError([csv_problem(file, "", f"no CSV: {error}", allowed)]) from error
    except OSError as error:
        raise InputError([csv_problem(file, "", error.strerror or "unreadable", "a CSV file")]) from error
