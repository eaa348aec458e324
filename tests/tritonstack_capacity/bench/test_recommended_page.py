"""The page of what Inference Recommender told: a point for each job, and nothing that it did not tell."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tritonstack_capacity.bench.documents import document, point, result
from tests.tritonstack_capacity.bench.test_cloud import BUCKET, S3
from tritonstack_capacity.bench.cloud_plan import TestObjects
from tritonstack_capacity.bench.document import BenchDocument, ResultPart
from tritonstack_capacity.bench.page import recommended_page


def job(configuration: str, instance_type: str, *, per_minute: float, ms: float, count: int = 1) -> ResultPart:
    told = point(users=1, per_minute=per_minute, p95=ms)
    told["all"] = {**told["all"], "percentiles_ms": {}, "answered": 0}
    return result(
        configuration, {**told, "rounds": []}, instance_type=instance_type, instance_count=count, ended_by="COMPLETED"
    )


FAST = job("fast <b>", "ml.g4dn.xlarge", per_minute=1200, ms=90, count=2)
SLOW = job("slow", "ml.g5.xlarge", per_minute=400, ms=800)
NOTHING = result("lost", instance_type="ml.g5.xlarge", ended_by="FAILED: no capacity", failed=True)


def recommended(*results: ResultPart, local: bool = False) -> BenchDocument:
    made = document(*results, limit_ms=500)
    settings = {**made.settings, "recommender": {}}
    return made.model_copy(update={"settings": settings, "machine": {"generator": "its own"}, "local": local})


def rows(page: str) -> list[list[str]]:
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in page.split("<tr>")[2:]]


def test_each_job_is_a_point_a_bar_and_a_row_by_one_instance() -> None:
    page = recommended_page(recommended(FAST, SLOW))
    assert "<title>fast &lt;b&gt;, g4dn.xlarge: 600, 90</title>" in page
    assert "<title>slow, g5.xlarge: 400, 800</title>" in page
    assert page.count("<circle") == page.count("<rect") == 2
    assert rows(page) == [
        ["fast &lt;b&gt;", "ml.g4dn.xlarge", "2", "1\u202f200", "600", "90", "yes"],
        ["slow", "ml.g5.xlarge", "1", "400", "400", "800", "no"],
    ]


def test_a_job_without_figures_has_a_row_and_its_reason_and_no_point() -> None:
    page = recommended_page(recommended(FAST, NOTHING))
    assert page.count("<circle") == 1
    assert rows(page)[1] == ["lost", "ml.g5.xlarge", "2", "", "", "", ""]
    assert "lost (binary): FAILED: no capacity" in page
    assert "COMPLETED" not in page
    assert "Nothing was measured yet" in recommended_page(recommended(NOTHING))


def test_constructed_figures_are_called_so() -> None:
    assert "constructed" not in recommended_page(recommended(FAST))
    assert "these figures are constructed" in recommended_page(recommended(FAST, local=True))


def test_what_is_fetched_of_inference_recommender_has_its_page_beside_it(tmp_path: Path) -> None:
    s3 = S3()
    s3.objects["load-tests/one/results.json"] = recommended(FAST).model_dump_json().encode()
    assert TestObjects(s3, bucket=BUCKET, test="one").fetch(tmp_path, local=False)
    assert "fast &lt;b&gt;, g4dn.xlarge" in (tmp_path / "index.html").read_text()
