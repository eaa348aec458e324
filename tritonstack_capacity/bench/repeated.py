"""What is another in a test than in the one that it repeats, and what came of that."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack_capacity.bench.document import BenchDocument, PointPart, ResultPart


def differences(then: BenchDocument, now: BenchDocument) -> Iterator[str]:
    """A line for each thing that must be the same for figures to be compared, and is not."""
    for what, before, after in (("machine", then.machine, now.machine), ("versions", then.versions, now.versions)):
        for name in sorted((before.keys() | after.keys()) - {"load_before"}):
            if before.get(name) != after.get(name):
                yield f"{what}: {name} was {before.get(name, 'unknown')}, is {after.get(name, 'unknown')}"
    for one, other in _pairs(then, now):
        for what, was, found in (
            ("archive", one.archive, other.archive),
            ("request", _short(one.request_sha256), _short(other.request_sha256)),
            ("instances", _fleet(one), _fleet(other)),
            ("Triton", one.server_version, other.server_version),
        ):
            if was != found:
                yield f"{other.configuration} ({other.payload_format}): {what} was {was}, is {found}"


def comparisons(then: BenchDocument, now: BenchDocument) -> Iterator[str]:
    """A line for each load that both have: the rate as so many times what it was, and the latency."""
    percentile = f"{now.settings['rule']['percentile']:g}"
    for one, other in _pairs(then, now):
        before = {point.load: point for point in one.points}
        for point in other.points:
            if (was := before.get(point.load)) is not None and was.all.per_minute and point.all.percentiles_ms:
                yield f"{other.configuration} ({other.payload_format}): {_compared(was, point, percentile)}"


def _pairs(then: BenchDocument, now: BenchDocument) -> Iterator[tuple[ResultPart, ResultPart]]:
    before = {(result.configuration, result.payload_format): result for result in then.results}
    for result in now.results:
        found = before.get((result.configuration, result.payload_format))
        if found is not None:
            yield found, result


def _compared(was: PointPart, found: PointPart, percentile: str) -> str:
    times = found.all.per_minute / was.all.per_minute
    latency = was.all.percentiles_ms.get(percentile)
    before = (
        "" if latency is None else f", p{percentile} {found.all.percentiles_ms[percentile]:.4g} ms after {latency:.4g}"
    )
    return f"{found.load}: {times:.2f} times the answers a minute of then{before}"


def _fleet(result: ResultPart) -> str:
    return f"{result.instance_count} {result.instance_type}"


def _short(digest: str | None) -> str:
    return "unknown" if digest is None else digest[:16]
