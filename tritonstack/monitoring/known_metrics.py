"""Which metrics AWS documents, with their dimensions, units and statistics."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

from tritonstack.monitoring.metric import Metric


def unit_of(metric: Metric) -> str:
    """The unit that AWS writes the metric in (``Microseconds``).

    Raises:
        LookupError: AWS documents no such metric, not with these dimensions, or not with this statistic.
    """
    namespace = _document()["namespaces"].get(metric.namespace)
    row = namespace["metrics"].get(metric.name) if namespace else None
    if namespace is None or row is None:
        raise LookupError(f"no metric {metric.name} in {metric.namespace}")
    names = [name for name, _ in metric.dimensions]
    if names != namespace["dimensions"]:
        raise LookupError(f"{metric.name} has the dimensions {namespace['dimensions']}, not {names}")
    statistic = "percentiles" if re.fullmatch(r"p\d{1,2}(\.\d+)?", metric.statistic) else metric.statistic
    if statistic not in row["statistics"]:
        raise LookupError(f"{metric.name} has the statistics {row['statistics']}, not {metric.statistic}")
    return str(row["unit"])


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    text = files("tritonstack.monitoring").joinpath("data", "metrics.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
