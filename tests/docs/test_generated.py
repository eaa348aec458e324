"""The pages that are made from the code are current; they say how they are made, and have every field and command."""

from __future__ import annotations

import json
import re

import pytest

from scripts.documentation.__main__ import MAKERS
from scripts.documentation.commands_page import command_of, every_command
from scripts.documentation.markdown import COMMAND, cell
from tests.e2e.project import REPOSITORY
from tritonstack.cli.docs import heading_anchor


@pytest.mark.parametrize("path", MAKERS)
def test_a_generated_page_is_current(path: str) -> None:
    committed = (REPOSITORY / path).read_text(encoding="utf-8")
    assert committed == MAKERS[path](), f"{path} is not current. Run: {COMMAND}, and commit what it writes"


@pytest.mark.parametrize(("page", "schema"), [("settings", "environment"), ("recipes", "recipe")])
def test_every_field_of_the_schema_has_its_row(page: str, schema: str) -> None:
    """The schema is made by pydantic itself, the page by our own walk through the types."""
    whole = json.loads((REPOSITORY / f"schemas/{schema}.schema.json").read_text(encoding="utf-8"))
    text = (REPOSITORY / f"docs/reference/{page}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .*", text, re.MULTILINE)
    objects = [each for each in (whole, *whole["$defs"].values()) if "properties" in each]
    assert sorted(rows) == sorted(name for each in objects for name in each["properties"])
    for each in objects:
        for field in each["properties"].values():
            assert cell(field.get("description", "")) in text


def test_every_command_has_its_usage_and_every_option() -> None:
    text = (REPOSITORY / "docs/reference/commands.md").read_text(encoding="utf-8")
    for name in every_command():
        section = text.partition(f"## tritonstack {name}\n")[2].partition("\n## ")[0]
        options = [each.opts[-1] for each in command_of(name).params if each.opts[-1].startswith("-")]
        assert [option for option in options if f"`{option}`" not in section] == [], name


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Exit codes", "exit-codes"),
        ("endpoints[].scaling", "endpointsscaling"),
        ("ResNet50: image → top-5", "resnet50-image--top-5"),
        ("What you'd call `invoke`", "what-youd-call-invoke"),
    ],
)
def test_anchors_are_those_of_github(heading: str, expected: str) -> None:
    assert heading_anchor(heading) == expected
