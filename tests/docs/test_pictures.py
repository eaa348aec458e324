"""The pictures show what the templates and the imports say, and a browser can draw them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.documentation import access_picture, package_picture, stack_picture
from scripts.documentation.drawing import Box, Drawing
from scripts.documentation.import_graph import OUTBUILDINGS, SINGLE, direct, import_graph, joined, layers, reachable
from scripts.documentation.markdown import MARK
from scripts.documentation.stack_graph import (
    SHOWN,
    SHOWN_SERVING,
    construct_of,
    in_order,
    shown_environment,
    stack_graph,
)
from tests.e2e.project import REPOSITORY
from tritonstack.pages import chromium
from tritonstack.pages.chromium import find_chromium

PICTURES = sorted((REPOSITORY / "docs" / "pictures").glob("*.svg"))
MEASURE = """
let box = null, out = [];
for (const each of document.querySelectorAll('svg > rect, svg > text')) {
  if (each.tagName == 'rect') box = each.classList.contains('page') ? null : each.getBoundingClientRect();
  else if (box && (each.classList.contains('title') || each.classList.contains('small'))) {
    const text = each.getBoundingClientRect();
    if (text.left < box.left || text.right > box.right || text.top < box.top || text.bottom > box.bottom)
      out.push(each.textContent);
  }
}
const told = document.createElement('pre');
told.textContent = out.join(', ') || 'all inside';
document.body.append(told);
"""
SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(picture).iter(f"{SVG}text")]  # noqa: S314 - our own


def test_every_stack_and_resource_of_the_snapshot_is_drawn() -> None:
    shown = texts(stack_picture.stack_picture())
    resources = 0
    for file in (REPOSITORY / "snapshots" / SHOWN).glob("*.json"):
        if file.stem in {"assets", "findings"} or (file.stem.startswith("serving-") and file.stem != SHOWN_SERVING):
            continue
        assert f"{SHOWN}-{file.stem}" in shown
        found = json.loads(file.read_text())["Resources"].values()
        resources += len(found)
        for each in found:
            kind = each["Type"].removeprefix("AWS::").replace("::", " ")
            assert any(re.fullmatch(rf"(\d+ x )?{re.escape(kind)}", text) for text in shown), kind
    drawn = sum(
        sum(types.values()) for stack in stack_graph(shown_environment()).types.values() for types in stack.values()
    )
    assert drawn == resources


def test_an_endpoint_reads_bucket_key_and_network() -> None:
    outer = stack_graph(shown_environment()).outer
    assert outer[SHOWN_SERVING, "artifacts"] == {"bucket-name", "key-arn"}
    assert "security-group-0" in outer[SHOWN_SERVING, "network"]
    assert not [pair for pair in outer if pair[0] == "artifacts"], "the artifacts stack reads from nobody"


def test_what_has_a_function_of_its_own_is_a_construct_of_its_own() -> None:
    stack = shown_environment().stacks[SHOWN_SERVING]
    assert construct_of(stack, "Endpoint/Scaling/Target") == "Endpoint/Scaling"
    assert construct_of(stack, "Endpoint/Endpoint") == "Endpoint"
    assert construct_of(stack, "Verification") == "Verification"


def test_what_is_referred_to_stands_above_and_a_circle_ends() -> None:
    names = dict.fromkeys("abc")
    assert in_order(names, frozenset({("a", "b"), ("b", "c")})) == ["c", "b", "a"]
    assert sorted(in_order(names, frozenset({("a", "b"), ("b", "a")}))) == ["a", "b", "c"]


def test_only_the_verification_may_call_and_only_the_activation_moves_records() -> None:
    found = access_picture.access(shown_environment())
    may = [
        who for allowed in found.values() for who, actions in allowed.items() if "sagemaker:InvokeEndpoint" in actions
    ]
    assert may == [f"{SHOWN_SERVING}/Verification"]
    writes = {who for allowed in found.values() for who, actions in allowed.items() if "ssm:PutParameter" in actions}
    assert writes == {f"{SHOWN_SERVING}/Activation"}


def test_imports_go_one_way() -> None:
    """The rule of the architecture page; the picture is drawn from the same graph."""
    graph = import_graph()
    for name in graph:
        if name.startswith("tritonstack"):
            assert not {"app.py", "stacks", "constructs_lib"} & graph[name], name
        if name not in OUTBUILDINGS:
            assert not set(OUTBUILDINGS) & graph[name], name
    assert "stacks" not in graph["constructs_lib"]
    assert "app.py" not in reachable(graph, "stacks")


def test_no_packages_import_each_other_around_a_circle() -> None:
    assert [name for name in joined(import_graph()) if ", " in name] == []


def test_the_graph_of_imports_is_that_of_python_itself() -> None:
    """What loading a package really brings in is below it in the graph."""
    code = "import sys, tritonstack.config; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, text=True, capture_output=True, check=True)
    packages = {".".join(name.split(".")[:2]) for name in loaded.stdout.split() if name.startswith("tritonstack.")}
    known = reachable(import_graph(), "tritonstack.config") | {"tritonstack.config"}
    assert {name for name in packages if name in import_graph()} <= known
    assert "tritonstack.catalogue" in packages
    assert SINGLE in known


def test_each_row_imports_from_rows_below() -> None:
    graph = {"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset("d"), "d": frozenset("c")}
    together = joined(graph)
    assert layers(together) == [["a"], ["b"], ["c, d"]]
    assert sorted(direct(together)) == [("a", "b"), ("b", "c, d")]


def test_every_package_is_drawn() -> None:
    shown = ", ".join(texts(package_picture.package_picture()))
    for name in import_graph():
        assert name == SINGLE or name.removeprefix("tritonstack.") in shown, name


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_needs_nothing_from_outside_and_no_text_leaves_it(path: Path) -> None:
    text = path.read_text()
    assert "://" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "<script" not in text
    root = ElementTree.fromstring(text)  # noqa: S314 - our own
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.get("x", 0)) + float(rect.get("width", 0)) <= float(root.get("width", 0))
        assert float(rect.get("y", 0)) + float(rect.get("height", 0)) <= float(root.get("height", 0))


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this system (apt install chromium)")
@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_in_a_browser_every_text_lies_in_its_box(path: Path, tmp_path: Path) -> None:
    assert seen_in_a_browser(path.read_text(), tmp_path) == "all inside"


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this system (apt install chromium)")
def test_a_text_that_leaves_its_box_is_seen(tmp_path: Path) -> None:
    drawing = Drawing(title="t", description="d")
    drawing.box(Box(x=10, y=10, width=40, title="far too long for its box"))
    assert seen_in_a_browser(drawing.svg(), tmp_path) == "far too long for its box"


def seen_in_a_browser(picture: str, folder: Path) -> str:
    """The texts that leave the box before them, as Chromium lays them out."""
    browser = find_chromium()
    assert browser is not None
    page = folder / "page.html"
    page.write_text(f"<!doctype html><meta charset='utf-8'><body>{picture}<script>{MEASURE}</script></body>")
    document = chromium._run(browser, folder, "--window-size=1600,1400", "--dump-dom", page.as_uri())
    found = re.search(r"<pre>(.*?)</pre>", document, re.DOTALL)
    assert found, document[:500]
    return found[1]


@pytest.mark.parametrize(
    ("path", "tables"),
    [("docs/architecture.md", ["packages", "stacks"]), ("README.md", ["costs"]), ("docs/review.md", ["costs"])],
)
def test_the_page_names_every_table_once(path: str, tables: list[str]) -> None:
    assert sorted(each[2] for each in MARK.finditer((REPOSITORY / path).read_text())) == tables
