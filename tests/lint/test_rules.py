"""Every rule's page: its bad example breaks exactly that rule, its good one none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lint.examples import Example, examples_of, lay_out, target_of
from tritonstack.cli.lint import page
from tritonstack.lint import Finding, lint_endpoint, lint_folder, lint_release
from tritonstack.lint.registry import rule, rule_ids, rules
from tritonstack.lint.view import view_folder

OF_ENDPOINTS = {"mixed-sizes", "response-cache-unused"}


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
    """Findings in an example; for a rule about releases or endpoints, also those of the endpoint that serves it."""
    target, root = target_of(endpoint), lay_out(example, project)
    # Of a rule about an endpoint an example may have several archives, each in a folder.
    folders = sorted(root.iterdir()) if rule_id in OF_ENDPOINTS and not [*root.glob("*/config.pbtxt")] else [root]
    found = [finding for folder in folders for finding in lint_folder(folder, target=target)]
    if rule_id in OF_ENDPOINTS and target is not None:
        views = {folder.name: view_folder(folder, replace(target, unpacked_bytes=0)) for folder in folders}
        found += lint_endpoint(views, target=target, file=project / "environments/examples.yaml")
    if rule_id.startswith("release-") and target is not None:
        found += lint_release(target, file=project / "environments/examples.yaml")
    return found


def test_every_rule_about_something_that_others_made_names_its_source() -> None:
    assert [each.id for each in rules() if each.category != "house" and not each.sources] == []
