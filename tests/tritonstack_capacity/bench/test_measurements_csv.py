"""The table that `tritonstack capacity size` reads, read by it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.tritonstack_capacity.bench.documents import CONFIG, document, point, result
from tritonstack_capacity.bench.document import COLUMNS, BenchDocument, measurements_csv
from tritonstack_capacity.sizing.capacity import Demand, capacity_table
from tritonstack_capacity.sizing.measurements import Measurement, prices, read_measurements

SLOW_AND_FAST = (
    point(users=1, per_minute=1000, p95=60),
    point(users=8, per_minute=6000, p95=480),
    point(users=16, per_minute=9000, p95=900),
)


def read(folder: Path, found: BenchDocument) -> tuple[Measurement, ...]:
    file = folder / "measurements.csv"
    file.write_text(measurements_csv(found))
    return read_measurements(file)


def test_size_reads_it_and_recommends_from_it(tmp_path: Path) -> None:
    found = read(tmp_path, document(result("trt-db-ig", *SLOW_AND_FAST), limit_ms=500))

    demand = Demand(invocations_per_minute=Decimal(30_000), latency_ms=Decimal(500))
    table = capacity_table(found, demand=demand, price_of=prices(region="us-east-1", overrides={}))

    [row] = table.rows
    assert row.measurement.configuration == "trt-db-ig"
    assert row.measurement.invocations_per_minute == 3000, "of one of its two instances"
    assert row.measurement.latency_ms == 480
    assert row.instances == 10
    assert table.recommended is not None


def test_where_no_load_is_within_the_limit_the_row_is_the_fastest_and_misses_it(tmp_path: Path) -> None:
    [row] = read(tmp_path, document(result("plain", *SLOW_AND_FAST), limit_ms=50))

    assert row.latency_ms == 60


def test_both_formats_of_a_configuration_are_two_rows_with_names_of_their_own(tmp_path: Path) -> None:
    both = (result("plain", SLOW_AND_FAST[0]), result("plain", SLOW_AND_FAST[1], payload_format="json"))

    names = [row.configuration for row in read(tmp_path, document(*both))]

    assert names == ["plain-binary", "plain-json"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (CONFIG, ("tensorrt_plan", "Yes", "2")),
        ('backend: "python"\n# no dynamic_batching\ninstance_group {\n  count: 3\n}\n', ("python", "No", "3")),
        ("}", ("NA", "NA", "NA")),
    ],
    ids=["as a person writes it", "as a build writes it", "no text format"],
)
def test_it_tells_what_the_configuration_is(config: str, expected: tuple[str, ...]) -> None:
    header, row = measurements_csv(document(result("both", SLOW_AND_FAST[0], config={"bert": config}))).splitlines()

    told = dict(zip(header.split(","), row.split(","), strict=True))
    assert tuple(told[name] for name in COLUMNS[1:4]) == expected


def test_a_result_without_an_answer_has_no_row() -> None:
    assert len(measurements_csv(document(result("plain"))).splitlines()) == 1
