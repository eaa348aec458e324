"""``tritonstack explain``: the list of rules, a rule's page, near names for a wrong one."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tritonstack.cli.lint import explain_command as command
from tritonstack.cli.lint import page
from tritonstack.errors import InputError
from tritonstack.models.lint.registry import CATEGORIES, rule, rule_ids


def _run(*arguments: str) -> str:
    return CliRunner().invoke(command, arguments, catch_exceptions=False).stdout


def test_without_a_rule_every_one_is_listed_once_below_its_category() -> None:
    lines = _run().splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(listed) == list(rule_ids())
    assert [line.split(":")[0] for line in lines if line and not line.startswith(" ")] == list(CATEGORIES)


@pytest.mark.parametrize("rule_id", rule_ids())
def test_a_page_has_explanation_examples_and_source(rule_id: str) -> None:
    text = page(rule(rule_id))
    assert text.startswith(f"# {rule_id} (")
    assert all(part in text for part in (rule(rule_id).title, "## Bad", "## Good", *rule(rule_id).sources))


def test_a_rules_page_is_printed_as_it_is_where_there_is_no_terminal() -> None:
    assert _run("instance-gpus") == page(rule("instance-gpus"))


def test_near_rules_are_named_for_one_that_does_not_exist() -> None:
    with pytest.raises(InputError) as caught:
        _run("instance-gpu")
    assert caught.value.problems[0].allowed.split(", ")[0] in {"instance-gpus", "instance-count"}
    with pytest.raises(InputError, match="the list"):
        _run("xyzzy")
