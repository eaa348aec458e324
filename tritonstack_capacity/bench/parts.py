"""What was measured, as parts of the document."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict

from tritonstack.client.body import Body
from tritonstack_capacity.bench.confidence import Interval
from tritonstack_capacity.bench.document import (
    THIS_MACHINE,
    FiguresPart,
    IntervalPart,
    PointPart,
    ResultPart,
    ServerPart,
)
from tritonstack_capacity.bench.figures import Figures
from tritonstack_capacity.bench.measuring import Point
from tritonstack_capacity.bench.subject import Subject
from tritonstack_capacity.bench.triton_statistics import ServerFigures

UNDER_WAY = "under way"
"""What stands for the reason of the end, until there is one."""


def result_part(subject: Subject, body: Body, *, local: bool, container: bool) -> ResultPart:
    """A result without a figure of a load.

    ``local``: on the local AWS; ``container``: straight at its container.
    """
    target, manifest = subject.target, subject.manifest or {}
    return ResultPart(
        configuration=subject.configuration,
        name=target.name,
        endpoint=target.call.endpoint_name,
        archive=str(target.release.archive),
        archive_sha256=manifest.get("archive", {}).get("sha256"),
        config=dict(manifest.get("configs", {})),
        variant=target.fleet.variant,
        instance_type=THIS_MACHINE if local else target.fleet.instance_type or "unknown",
        instance_count=1 if local else target.fleet.instance_count or 1,
        image=target.fleet.image,
        way="container" if container else "endpoint",
        generator="aiohttp, one process",
        payload_format=subject.payload_format,
        payload=subject.payload.source,
        request_bytes=len(body.content),
        request_sha256=hashlib.sha256(body.content).hexdigest(),
        answer_bytes=0,
        first_call_ms=None,
        cold=None,
        points=[],
        endpoint_figures=[],
        published=0,
        ended_by=UNDER_WAY,
    )


def point_part(point: Point, server: Sequence[ServerFigures]) -> PointPart:
    """A load."""
    agreement = point.agreement
    return PointPart(
        load=point.load,
        users=point.users,
        rate_per_second=point.rate_per_second,
        stable=agreement.stable,
        per_minute=_interval(agreement.per_minute),
        latency_ms=None if agreement.latency_ms is None else _interval(agreement.latency_ms),
        all=_figures(point.all),
        rounds=[_figures(one) for one in point.rounds],
        failures=point.failures,
        server=[ServerPart(**asdict(one)) for one in server],
    )


def _figures(found: Figures) -> FiguresPart:
    shares = {f"{share:g}": value for share, value in found.percentiles_ms.items()}
    return FiguresPart(**{**asdict(found), "percentiles_ms": shares})


def _interval(found: Interval) -> IntervalPart:
    return IntervalPart(mean=found.mean, half_width=found.half_width)
