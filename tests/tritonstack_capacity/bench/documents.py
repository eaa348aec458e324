"""Documents of results for tests."""

from __future__ import annotations

from typing import Any

from tritonstack_capacity.bench.document import BenchDocument, ResultPart
from tritonstack_capacity.bench.load import Users

CONFIG = """name: "bert"
platform: "tensorrt_plan"
dynamic_batching { }
instance_group [ { count: 2 kind: KIND_GPU } ]
"""


def point(
    *, per_minute: float, p95: float | None, users: int | None = 1, failed: int = 0, rate: float | None = None
) -> dict[str, Any]:
    """A load of 100 calls, of which so many failed."""
    found = {
        "seconds": 10.0,
        "answered": 100 - failed,
        "failed": failed,
        "per_minute": per_minute,
        "mean_ms": None if p95 is None else p95 / 2,
        "least_ms": None if p95 is None else 1.0,
        "most_ms": None if p95 is None else p95 * 2,
        "percentiles_ms": {} if p95 is None else {"50": p95 / 2, "90": p95 * 0.9, "95": p95, "99": p95 * 1.5},
        "late_ms": 0.1,
    }
    return {
        "load": "a load" if users is None else Users(count=users).name,
        "users": users,
        "rate_per_second": rate,
        "stable": True,
        "per_minute": {"mean": per_minute, "half_width": per_minute / 20},
        "latency_ms": None if p95 is None else {"mean": p95, "half_width": p95 / 20},
        "all": found,
        "rounds": [found, found, found],
        "failures": {},
        "server": [],
    }


def result(configuration: str, *points: dict[str, Any], **changes: Any) -> ResultPart:
    given = {
        "configuration": configuration,
        "name": f"bert-{configuration}",
        "endpoint": "prod-bert",
        "archive": "bert-plain.0123456789abcdef.tar.gz",
        "archive_sha256": "0" * 64,
        "config": {"bert": CONFIG},
        "variant": "g4dn-xlarge",
        "instance_type": "ml.g4dn.xlarge",
        "instance_count": 2,
        "image": "image:24.09-py3",
        "way": "endpoint",
        "generator": "aiohttp",
        "payload_format": "binary",
        "payload": "the sample",
        "request_bytes": 100,
        "answer_bytes": 100,
        "first_call_ms": 20.0,
        "cold": None,
        "points": list(points),
        "endpoint_figures": [],
        "published": 0,
        "ended_by": "every load was measured",
    }
    return ResultPart.model_validate({**given, **changes})


def document(*results: ResultPart, limit_ms: float | None = None) -> BenchDocument:
    return BenchDocument(
        complete=True,
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:10:00+00:00",
        environment="prod",
        local=False,
        machine={"processor": "P", "cores": "2", "memory": "8 GiB", "system": "Linux", "load_before": "0.1"},
        versions={"commit": "abc"},
        seed=0,
        settings={"rule": {"percentile": 95.0}, "stop": {"latency_ms": limit_ms}},
        results=list(results),
    )
