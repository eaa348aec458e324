"""Every rule's page: its bad example breaks exactly that rule, its good one none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.models.lint.examples import Example, examples_of, lay_out, target_of
from tritonstack.cli.lint import page
from tritonstack.models.lint import Finding, lint_folder, lint_release
from tritonstack.models.lint.registry import rule, rule_ids, rules


@pytest.mark.parametrize("rule_id", rule_ids())
def test_the_bad_example_breaks_this_rule_and_no_other_and_the_good_one_none(tmp_path: Path, rule_id: str) -> None:
    examples = examples_of(rule_id)
    found = _found(examples.bad, examples.endpoint, tmp_path / "bad", rule_id)
    assert {finding.rule for finding in found} == {rule_id} | examples.also, [str(finding) for finding in found]
    assert [str(finding) for finding in found if not finding.allowed] == []
    found = _found(examples.good, examples.good_endpoint, tmp_path / "good", rule_id)
    assert [str(finding) for finding in found] == []
    text = page(rule(rule_id))
    assert text.startswith(f"# {rule_id} (")
    assert all(part in text for part in (rule(rule_id).title, "## Bad", "## Good", *rule(rule_id).sources))


def _found(example: Example, endpoint: Mapping[str, Any], project: Path, rule_id: str) -> list[Finding]:
    """What is found of an example; of a rule about releases also what is said of the release that serves it."""
    target = target_of(endpoint)
    found = [*lint_folder(lay_out(example, project), target=target)]
    if rule_id.startswith("release-") and target is not None:
        found += lint_release(target, file=project / "environments/examples.yaml")
    return found


def test_every_rule_about_something_that_others_made_names_its_source() -> None:
    assert [each.id for each in rules() if each.category != "house" and not each.sources] == []
