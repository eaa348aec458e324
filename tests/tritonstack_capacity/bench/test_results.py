"""What is written: a document by its schema, pages that load nothing, the table that `capacity size` reads."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest

from tests.tritonstack_capacity.bench.documents import CONFIG, document, point, result
from tritonstack_capacity.bench.document import COLUMNS, BenchDocument, ResultPart, measurements_csv
from tritonstack_capacity.bench.document import notes as notes_of
from tritonstack_capacity.bench.page import results_page as page
from tritonstack_capacity.bench.results_folder import read_results, write_results
from tritonstack_capacity.sizing.capacity import Demand, capacity_table
from tritonstack_capacity.sizing.measurements import Measurement, prices, read_measurements

SCHEMA = Path(__file__).resolve().parents[3] / "schemas" / "bench.schema.json"
FOUND = document(
    result("plain", point(users=1, per_minute=1000, p95=60), point(users=8, per_minute=2000, p95=200)),
    result("both <b>", point(users=1, per_minute=3000, p95=50)),
    limit_ms=500,
)


def test_the_document_fits_its_schema_and_reads_back(tmp_path: Path) -> None:
    write_results(tmp_path / "results", FOUND)
    written = tmp_path / "results" / "results.json"

    jsonschema.validate(json.loads(written.read_text()), json.loads(SCHEMA.read_text()))
    assert read_results(written) == FOUND
    assert sorted(path.name for path in written.parent.iterdir()) == ["index.html", "measurements.csv", "results.json"]


def test_the_page_shows_every_configuration_and_loads_nothing() -> None:
    html = page(FOUND)

    assert "both &lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<figure>") == 3
    assert "3\u202f000 (1.50 \u00d7)" in html
    assert not any(word in html for word in ("http://", "https://", "<script", "<link"))


def titled(html: str, title: str) -> str:
    """The figure with this title."""
    figures: list[str] = re.findall(r"<figure>.*?</figure>", html, flags=re.DOTALL)
    [found] = [part for part in figures if f"<figcaption><h3>{title}<" in part]
    return found


ABOVE = point(users=1, per_minute=500, p95=900)
WITHIN, FASTER = point(users=1, per_minute=1000, p95=60), point(users=1, per_minute=3000, p95=500)


def test_a_result_above_the_limit_is_named_and_not_drawn_as_within_it() -> None:
    found = (result("plain", ABOVE), result("batched", WITHIN), result("both <b>", FASTER), result("slow", ABOVE))

    html = page(document(*found, limit_ms=500))

    spread = titled(html, "Percentiles of the best load")
    assert "Above the limit at every load, and left out: plain, slow." in spread
    assert "p95 within the limit, ms" in spread
    assert spread.count("<polyline points=") == 2 + 2, "two lines and their two keys"
    highest = titled(html, "Highest throughput within the limit")
    assert "batched = 1 \u00d7." in highest
    assert re.findall(r">([^<]+) \(([\d.]+) \u00d7\)", highest) == [("1\u202f000", "1.00"), ("3\u202f000", "3.00")]
    assert "Above the limit at every load, and left out: plain, slow." in highest
    assert titled(html, "Latency against throughput").count("<li>") == 4, "all of them"


def test_the_page_shows_what_the_terminal_shows_of_a_result() -> None:
    found = result(
        "plain",
        {**point(users=1, per_minute=1000, p95=60), "failures": {"503: busy": 7}},
        ended_by="failed: no",
        cold={"milliseconds": [1234.0], "failures": ["507: full"]},
        calls=90,
        endpoint_figures=[
            {"metric": "ModelLatency", "invocations": 100, "mean_ms": 1, "p50_ms": 2, "p95_ms": 3, "p99_ms": 4}
        ],
    )

    counted = "of the 100 requests that are counted in those minutes"
    lines = notes_of(document(found))

    assert lines == [
        "plain (binary): failed: no",
        "plain (binary): cold starts 1,234 ms; first request 20 ms",
        "plain (binary): cold starts that failed: 1, 507: full",
        f"plain (binary): ModelLatency p50 2, p95 3, p99 4 ms {counted}; this test sent 90",
        "plain (binary): 1 user: 7 times 503: busy",
    ]
    assert all(f"<li>{line}</li>" in page(document(found)) for line in lines)


def test_models_of_very_different_latency_on_one_endpoint_are_noted_at_their_least() -> None:
    slow = result("slow", point(users=1, per_minute=90, p95=600), point(users=4, per_minute=90, p95=2400))
    fast, apart = (
        result("fast", point(users=1, per_minute=1, p95=60), endpoint=name) for name in ("prod-bert", "other")
    )
    [note] = notes_of(document(slow, fast))
    assert note.startswith("prod-bert: slow takes 300 ms (p50) and fast 30 ms: requests of fast take longer")
    assert notes_of(document(slow, apart, result("none", point(users=1, per_minute=1, p95=None)))) == []


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


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (CONFIG, ("tensorrt_plan", "Yes", "2")),
        ('backend: "python"\n# no dynamic_batching\ninstance_group {\n  count: 3\n}\n', ("python", "No", "3")),
        ("}", ("NA", "NA", "NA")),
    ],
    ids=["as a person writes it", "as a build writes it", "no text format"],
)
def test_a_row_holds_the_configuration(config: str, expected: tuple[str, ...]) -> None:
    header, row = measurements_csv(document(result("both", SLOW_AND_FAST[0], config={"bert": config}))).splitlines()

    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert tuple(cells[name] for name in COLUMNS[1:4]) == expected


def test_a_result_without_a_response_has_no_row() -> None:
    assert len(measurements_csv(document(result("plain"))).splitlines()) == 1


def job(configuration: str, instance_type: str, *, per_minute: float, ms: float, count: int = 1) -> ResultPart:
    cells = point(users=1, per_minute=per_minute, p95=ms)
    cells["all"] = {**cells["all"], "percentiles_ms": {}, "answered": 0}
    return result(
        configuration, {**cells, "rounds": []}, instance_type=instance_type, instance_count=count, ended_by="COMPLETED"
    )


FAST = job("fast <b>", "ml.g4dn.xlarge", per_minute=1200, ms=90, count=2)
SLOW = job("slow", "ml.g5.xlarge", per_minute=400, ms=800)


def recommended(*results: ResultPart, local: bool = False) -> BenchDocument:
    made = document(*results, limit_ms=500)
    settings = {**made.settings, "recommender": {}}
    return made.model_copy(update={"settings": settings, "machine": {"generator": "its own"}, "local": local})


def rows(page: str) -> list[list[str]]:
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in page.split("<tr>")[2:]]


def test_each_job_is_a_point_a_bar_and_a_row_by_one_instance() -> None:
    html = page(recommended(FAST, SLOW))
    assert "<title>fast &lt;b&gt;, g4dn.xlarge: 600, 90</title>" in html
    assert "<title>slow, g5.xlarge: 400, 800</title>" in html
    assert html.count("<circle") == html.count("<rect") == 2
    assert rows(html) == [
        ["fast &lt;b&gt;", "ml.g4dn.xlarge", "2", "1\u202f200", "600", "90", "yes"],
        ["slow", "ml.g5.xlarge", "1", "400", "400", "800", "no"],
    ]
