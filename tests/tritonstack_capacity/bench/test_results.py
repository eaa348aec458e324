"""What is written: a document by its schema, a page that loads nothing, and files that are never half there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from tests.tritonstack_capacity.bench.documents import document, point, result
from tritonstack.errors import InputError, WorkFailedError
from tritonstack_capacity.bench.document import result_notes
from tritonstack_capacity.bench.page import bench_page as page
from tritonstack_capacity.bench.results_folder import ResultsFolder, read_results

SCHEMA = Path(__file__).resolve().parents[3] / "schemas" / "bench.schema.json"
FOUND = document(
    result("plain", point(users=1, per_minute=1000, p95=60), point(users=8, per_minute=2000, p95=200)),
    result("both <b>", point(users=1, per_minute=3000, p95=50)),
    limit_ms=500,
)


def test_the_document_is_what_its_schema_says_and_reads_back(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path / "results")
    folder.write(FOUND)
    written = tmp_path / "results" / "results.json"

    jsonschema.validate(json.loads(written.read_text()), json.loads(SCHEMA.read_text()))
    assert read_results(written) == FOUND
    assert sorted(path.name for path in written.parent.iterdir()) == ["index.html", "measurements.csv", "results.json"]


def test_results_of_another_version_are_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(json.dumps({**FOUND.model_dump(mode="json"), "schema_version": 2}))

    with pytest.raises(InputError, match="schema_version"):
        read_results(file)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ResultsFolder(tmp_path)
    folder.write(FOUND)
    before = (tmp_path / "results.json").read_bytes()

    def broken(file: Path, _: Path) -> Path:
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(WorkFailedError, match="No space"):
        folder.write(FOUND.model_copy(update={"complete": False}))

    assert (tmp_path / "results.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 3, "nothing half written lies about"


def test_a_folder_that_cannot_be_is_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match="--to"):
        ResultsFolder(tmp_path / "file" / "results").make()


def test_the_page_shows_every_configuration_and_loads_nothing() -> None:
    html = page(FOUND)

    assert "both &lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<figure>") == 3
    assert "1.5 \u00d7" in html
    assert not any(word in html for word in ("http://", "https://", "<script", "<link"))


def test_formats_of_a_configuration_share_its_colour_and_are_drawn_apart() -> None:
    loads = point(users=1, per_minute=1000, p95=60)
    html = page(document(result("plain", loads), result("plain", loads, payload_format="json"), result("both", loads)))

    keys = re.findall(r'class="(c\d d\d)"/></svg>([^<]+)', html)

    assert keys == [("c0 d0", "plain, binary"), ("c0 d1", "plain, json"), ("c1 d0", "both, binary")] * 2


def titled(html: str, title: str) -> str:
    """The figure with this title."""
    figures: list[str] = re.findall(r"<figure>.*?</figure>", html, flags=re.DOTALL)
    [found] = [part for part in figures if f"<figcaption>{title}<" in part]
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
    speed_up = titled(html, "Speed-up within the limit")
    assert "throughput of batched = 1" in speed_up
    assert re.findall(r">([\d.]+) \u00d7", speed_up) == ["1", "3"]
    assert (
        "Above the limit at every load, and left out: plain, slow. Compared with batched in place of plain." in speed_up
    )
    assert titled(html, "Latency against throughput").count("<li>") == 4, "all of them"


def test_where_every_result_is_above_the_limit_a_note_takes_the_plots_place() -> None:
    html = page(document(result("plain", ABOVE), result("slow", ABOVE), limit_ms=500))

    spread = titled(html, "Percentiles of the best load")
    assert "left out: plain, slow.</p>" in spread
    assert "<polyline" not in spread
    assert "Speed-up" not in html


@pytest.mark.parametrize(("limit_ms", "drawn"), [(120.0, 1), (180.0, 1), (2000.0, 0), (None, 0)])
def test_a_limit_is_drawn_where_it_leaves_room_for_the_values(limit_ms: float | None, drawn: int) -> None:
    html = page(document(result("plain", point(users=1, per_minute=1000, p95=60)), limit_ms=limit_ms))

    assert html.count('<line class="limit"') == drawn
    assert ("p95, ms<" if limit_ms is None else f"p95, ms, limit {limit_ms:g}<") in html


def test_the_page_says_what_the_terminal_says_of_a_result() -> None:
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

    counted = "of the 100 calls that are counted in those minutes"
    lines = list(result_notes(found))

    assert lines == [
        "plain (binary): failed: no",
        "plain (binary): cold starts 1,234 ms; first call 20 ms",
        "plain (binary): cold starts that failed: 1, 507: full",
        f"plain (binary): ModelLatency p50 2, p95 3, p99 4 ms {counted}; this test made 90",
        "plain (binary): 1 user: 7 times 503: busy",
    ]
    assert all(f"<li>{line}</li>" in page(document(found)) for line in lines)


@pytest.mark.parametrize(("late_ms", "told"), [(5.9, False), (6.1, True)])
def test_calls_that_began_late_are_told_where_that_counts(late_ms: float, told: bool) -> None:
    load = point(users=1, per_minute=1000, p95=120)
    load["all"] = {**load["all"], "late_ms": late_ms}

    lines = list(result_notes(result("plain", load)))

    assert lines == (
        ["plain (binary): 1 user: calls began up to 6.1 ms late (p99): beyond the generator"] if told else []
    )
