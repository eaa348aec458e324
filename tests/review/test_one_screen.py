"""A change of seven values in one environment: the part of its report that is not folded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.review import changed_project
from tests.cli.test_review import review
from tests.review.corpus.case import Case, Edit, Side
from tests.review.corpus.made import Made
from tests.review.projects import git
from tritonstack.review.change import Effect, Level
from tritonstack.review.document import ReviewDocument
from tritonstack.review.views.markdown import markdown

ONE_SCREEN = 50
"""Lines that are not empty."""
TOKEN = re.compile(r"\$\{\w+[0-9A-F]{8}\b")
"""A reference by a logical id, which ends with a hash."""


def visible(text: str) -> list[str]:
    """The lines of a report in Markdown while nothing of it is unfolded; the title of what is folded is one."""
    lines, inside = [], 0
    for line in text.splitlines():
        if inside == 0 and line:
            lines.append(line)
        inside += line.count("<details>") - line.count("</details>")
    return lines


def check(document: ReviewDocument, *, name: str, moved: set[str], paid: set[str], alarm: str) -> list[str]:
    """What holds of either change. Returns the lines that are seen.

    Args:
        document: the report.
        name: the environment's.
        moved: endpoints whose traffic shifts.
        paid: endpoints that cost another amount.
        alarm: a word that names an alarm which rolls an update back.
    """
    text = markdown(document)
    lines = visible(text)
    assert len(lines) <= ONE_SCREEN, f"{len(lines)} lines"
    assert len(text.splitlines()) > 3 * ONE_SCREEN
    [environment] = [each for each in document.environments if each.name == name]
    seen = "\n".join(lines)
    for each in environment.settings:
        assert re.search(rf"^\| `{re.escape(each.path)}` \| {each.before} → {each.after} \|", seen, flags=re.M)
    assert {each.endpoint for each in environment.traffic if each.touched} == moved
    assert all(f"{each} is updated: " in seen for each in moved)
    assert alarm in seen
    assert all(re.search(rf"cost of {each} [^;|]*→", seen) for each in paid)
    assert all(f"| endpoint {each} |" in seen for each in paid)
    hurt = [each for each in environment.resources if each.effect is Effect.REPLACED]
    assert hurt
    hurtful = "".join(line for line in lines if line.startswith("- replaced: "))
    assert all(f"`{each.stack}/{each.path}` {each.type}" in hurtful for each in hurt)
    assert any(each.only_follows for each in environment.resources)
    # Folded is not lost.
    assert all(f"`{each.stack}/{each.path}`" in text for each in environment.resources)
    assert text.count("@@ ") >= sum(len(each.properties) for each in environment.resources)
    assert not TOKEN.search(text)
    return lines


DIGITS = {
    "alarms.thresholds.p99_latency_ms": 800,
    "endpoints.digits.container": {"environment": {"OMP_NUM_THREADS": "4"}},
    "endpoints.digits.initial_instance_count": 2,
    "endpoints.digits.release": "24.05",
    "endpoints.digits.scaling.invocations_per_instance": 900,
    "endpoints.digits.scaling.maximum": 8,
    "logs.endpoint_days": 90,
}


def test_seven_values_of_one_endpoint_are_shown_on_one_screen(tmp_path: Path) -> None:
    """The corpus's environment, without a trial of each setting."""
    sides = [Side(base="scaled", edit=Edit(set=each)) for each in ({}, DIGITS)]
    seven = Case(name="seven values", before=sides[0], after=sides[1], facts={})
    made = Made(tmp_path)
    document = made.document(seven)
    lines = check(document, name="dev", moved={"dev-digits"}, paid={"dev-digits"}, alarm="RollbackAlarms/ModelErrors")
    assert not any(line.startswith("| `environments/") for line in lines)


PROD: dict[str, tuple[Any, Any]] = {
    "alarms.thresholds.p99_latency_ms": (500, 800),
    "endpoints.engines.scaling.invocations_per_instance": (3000, 2500),
    "endpoints.engines.scaling.maximum": (8, 12),
    "endpoints.inception.container.thread_count": (16, 32),
    "endpoints.inception.initial_instance_count": (2, 3),
    "endpoints.translation.release": ("25.09", "25.04"),
    "logs.endpoint_days": (365, 180),
}


@pytest.mark.long
def test_each_of_seven_values_of_prod_has_a_verdict_of_its_own_on_one_screen(tmp_path: Path) -> None:
    """By the command, in a clone of this repository as it is committed."""
    project = changed_project(tmp_path / "project")
    git(project, "checkout", "-q", "--", "environments")
    file = project / "environments" / "prod.yaml"
    settings = Edit(set={path: after for path, (_, after) in PROD.items()}).applied(yaml.safe_load(file.read_text()))
    file.write_text(yaml.safe_dump(settings, sort_keys=False))
    out = tmp_path / "review.json"
    ran = review(project, "--base", "HEAD", "--output", str(out))
    assert ran.returncode == 0, ran.stderr
    document = ReviewDocument.model_validate_json(out.read_text())
    moved = {"prod-inception", "prod-translation"}
    check(document, name="prod", moved=moved, paid={"prod-engines"}, alarm="RollbackAlarms/ModelErrors")
    [prod] = [each for each in document.environments if each.name == "prod"]
    assert {each.path: (each.before, each.after) for each in prod.settings} == {
        path: (str(before), str(after)) for path, (before, after) in PROD.items()
    }
    text = {each.path: " ".join(one.text for one in each.effect or ()) for each in prod.settings}
    levels = {each.path: each.level for each in prod.settings}
    for quiet in ("alarms.thresholds.p99_latency_ms", "logs.endpoint_days"):
        assert levels[quiet] is Level.PLAIN
        assert not re.search("traffic|cost|permission|replaced", text[quiet])
    assert "cost of prod-engines at maximum" in text.pop("endpoints.engines.scaling.maximum")
    assert not any("cost" in each for each in text.values())
    release = text["endpoints.translation.release"]
    assert "traffic of prod-translation shifts" in release
    assert "permissions wider" in release
    threads = text["endpoints.inception.container.thread_count"]
    assert "traffic of prod-inception shifts" in threads
    assert "permission" not in threads
