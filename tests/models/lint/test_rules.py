"""Every rule's page: its bad example breaks exactly that rule, its good one none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.models.lint.examples import lay_out, target_of
from tritonstack.models.lint import Finding, lint_folder, lint_release
from tritonstack.models.lint.registry import CATEGORIES, Example, RuleFileError, parse_rule, rule, rule_ids, rules


@pytest.mark.parametrize("rule_id", rule_ids())
def test_the_bad_example_breaks_this_rule_and_no_other(tmp_path: Path, rule_id: str) -> None:
    page = rule(rule_id)
    found = _found(page.bad, page.endpoint, tmp_path, rule_id)
    assert {finding.rule for finding in found} == {rule_id} | page.also, [str(finding) for finding in found]


@pytest.mark.parametrize("rule_id", rule_ids())
def test_the_good_example_breaks_none(tmp_path: Path, rule_id: str) -> None:
    page = rule(rule_id)
    found = _found(page.good, page.good_endpoint, tmp_path, rule_id)
    assert [str(finding) for finding in found] == []


def _found(example: Example, endpoint: Mapping[str, Any], project: Path, rule_id: str) -> list[Finding]:
    """What is found of an example; of a rule about releases also what is said of the release that serves it."""
    target = target_of(endpoint)
    found = [*lint_folder(lay_out(example, project), target=target)]
    if rule_id.startswith("release-") and target is not None:
        found += lint_release(target, file=project / "environments/examples.yaml")
    return found


def test_every_rule_about_something_that_others_made_names_its_source() -> None:
    assert [each.id for each in rules() if each.category != "house" and not each.sources] == []


def test_rules_are_sorted_by_category_and_every_category_has_one() -> None:
    order = [list(CATEGORIES).index(each.category) for each in rules()]
    assert order == sorted(order)
    assert set(order) == set(range(len(CATEGORIES)))


PAGE = """\
---
level: error
category: house
title: A title
base: python
---
Why.

## Bad

`double/config.pbtxt`, instead of `max_batch_size: 8`:

```pbtxt
max_batch_size: 9
```

Without `double/1/model.py`.

Folder `double/2`.

## Good

`notes.txt`:

```text
one
```

`double/config.pbtxt`, added:

```pbtxt
dynamic_batching { }
```
"""


def test_a_page_says_how_examples_change_the_base() -> None:
    page = parse_rule("made-up", PAGE)
    assert "max_batch_size: 9" in page.bad.files["double/config.pbtxt"].text
    assert "double/1/model.py" not in page.bad.files
    assert page.bad.folders == {"double/2"}
    assert page.good.files["notes.txt"].text == "one\n"
    assert page.good.files["double/config.pbtxt"].text.endswith("dynamic_batching { }\n")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("level: error", "level: fatal", "unknown level"),
        ("category: house", "category: home", "unknown level or category"),
        ("title: A title\n", "", "with level, category and title"),
        ("title:", "colour: red\ntitle:", "with level, category and title"),
        ("## Good", "## Better", "then ## Good"),
        ("Why.\n", "", "an explanation"),
        ("instead of `max_batch_size: 8`", "instead of `max_batch_size: 7`", "has no 'max_batch_size: 7'"),
        ("Without `double/1/model.py`.", "Without `double/2/model.py`.", "to leave out"),
        ("`notes.txt`:\n\n```text\none\n```", "```text\none\n```", "names its file"),
        ("dynamic_batching { }\n```", "dynamic_batching { }", "does not end"),
    ],
)
def test_a_page_that_cannot_be_read_is_refused_with_the_reason(old: str, new: str, reason: str) -> None:
    assert old in PAGE
    with pytest.raises(RuleFileError, match=reason.replace("#", "[#]")):
        parse_rule("made-up", PAGE.replace(old, new, 1))


def test_there_is_no_rule_of_another_name() -> None:
    with pytest.raises(KeyError):
        rule("../rules/config")
