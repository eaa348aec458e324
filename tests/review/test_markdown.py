"""The report for a pull request's comment."""

from __future__ import annotations

import re

import pytest

from tests.review.reports import before, document, report
from tests.review.small import resource
from tritonstack.review.views.markdown import LIMIT, MARKER, code, markdown, text
from tritonstack.review.views.wording import sections


@pytest.fixture(scope="module")
def page() -> str:
    return markdown(document(fail_on="replacement"))


def test_it_begins_with_the_marker_and_a_line_for_every_environment(page: str) -> None:
    assert page.startswith(f"{MARKER}\n")
    rows = re.findall(r"^\| `(\w+)` \| \S+ ([\w ]+) \|", page, flags=re.M)
    close = dict.fromkeys(("dev", "lost", "new"), "look closely")
    assert dict(rows) == {**close, "prod": "nothing changes"}


def test_it_states_what_it_compares_with_and_what_the_policy_refuses(page: str) -> None:
    assert "`0123456789ab`, where this branch left `origin/main` (the default: none was named)" in page
    assert "- `replacement` dev: serving: Bucket (`AWS::S3::Bucket`) is replaced" in page


def test_changes_are_grouped_by_meaning_and_those_that_can_hurt_are_first(page: str) -> None:
    [dev] = re.findall(r"^## `dev` [^\n]+\n(.*?)^## ", page, flags=re.M | re.S)
    titles = re.findall(r"^###+ ([^:\n]+)(?:: .+)?$", dev, flags=re.M)
    wanted = ["Replaced", "Removed", "Removed from the stack, kept in the account", "New", "Changed in place"]
    assert [each for each in titles if each in wanted] == wanted
    assert titles[0] == "Traffic"
    assert {"Permissions", "What opens and closes", "Cost", "Policy findings", "Resources"} <= set(titles)


def test_a_wildcard_is_called_out_where_a_permission_widens(page: str) -> None:
    assert "- serving/Role may now: `s3:*` on `*`. Wildcards: action `s3:*` (every action of s3) — no reason" in page


def test_an_accepted_wildcard_is_folded_with_its_reason_and_another_is_not() -> None:
    [dev] = [each for each in document().environments if each.name == "dev"]
    [permission] = dev.permissions
    reasoned = permission.model_copy(
        update={"wildcards": ("resource a* — accepted: Why.", "resource b* — accepted: So")}
    )
    half = permission.model_copy(update={"wildcards": ("resource a* — accepted: Why.", "resource b*")})
    narrower = permission.model_copy(update={"kind": "narrower", "statement": "may no longer: s3:Get*"})
    entry = dev.model_copy(update={"permissions": (reasoned, half, narrower)})
    [found] = [each for each in sections(entry) if each.title == "Permissions"]
    assert found.shown == (
        "serving/Role may now: s3:* on *. Wildcards: resource a* — accepted: Why; resource b*.",
        "serving/Role may now: s3:* on *.",
    )
    assert found.folded == (
        "serving/Role may now: s3:* on *. Wildcards: resource a* — accepted: Why; resource b* — accepted: So.",
        "serving/Role may no longer: s3:Get*.",
    )


def test_new_findings_are_shown_and_accepted_ones_folded_and_counted() -> None:
    [dev] = [each for each in document().environments if each.name == "dev"]
    [new] = dev.findings
    kinds = ("accepted", "no longer accepted", "accepted")
    page = (new, *(new.model_copy(update={"change": kind, "reason": "Why."}) for kind in kinds))
    [found] = [each for each in sections(dev.model_copy(update={"findings": page})) if each.title == "Policy findings"]
    assert [line.partition(":")[0] for line in found.shown] == ["new"]
    assert (len(found.folded), found.fold) == (3, "2 accepted, 1 no longer accepted")


def test_the_cost_is_a_table_of_both_ends(page: str) -> None:
    assert "| USD/hour | how many | idle | at most |\n|---|---|---|---|\n" in page
    counts = "1 of ml.g4dn.xlarge → 1 of ml.g5.2xlarge"
    assert f"| endpoint dev-digits | {counts} | 0.75 → 1.50 | 0.75 → 1.50 |" in page
    assert "| endpoint new-digits | none → 1 of ml.g4dn.xlarge | nothing → 0.75 | nothing → 0.75 |" in page
    assert "| USD/month | 730 hours | 548 → 1,095 | 548 → 1,095 |" in page


def test_a_property_is_a_difference_with_signs_and_what_is_long_is_folded(page: str) -> None:
    assert "  @@ BucketName @@ replaces it\n  - models\n  + other-models\n" in page
    [folded] = re.findall(r"<details><summary>4 properties</summary>(.*?)</details>", page, flags=re.S)
    assert "name-029" in folded


def test_text_of_a_template_is_no_markdown_and_mentions_no_user(page: str) -> None:
    assert "<b>name" not in re.sub(r"```.*?```", "", page, flags=re.S)
    assert "no @\u2060logs #\u20601" in page
    assert text("<i> @me a~b |") == "&lt;i&gt; @\u2060me a\\~b \\|"
    assert code("a`b|c") == "``a`b\\|c``"


def test_names_in_a_sentence_are_code_and_nothing_in_them_is_escaped() -> None:
    arn = "arn:aws:s3:::${ssm:/t/dev/_artifacts/bucket-name}/endpoints/*"
    assert text(f"may: s3:Get*, on {arn}. (AWS::S3::Bucket) x") == f"may: `s3:Get*`, on `{arn}`. (`AWS::S3::Bucket`) x"
    assert text("a*b_c [x](y) `a_b` *") == "`a*b_c` `[x](y`) `` `a_b` `` `*`"
    assert text("a_b|c https://aws.amazon.com/a_b") == "a\\_b\\|c https://aws.amazon.com/a\\_b"


def test_of_many_matches_of_a_policy_the_first_are_shown_and_the_rest_is_folded() -> None:
    topics = {f"T{n}": resource("AWS::SNS::Topic", {}) for n in range(9)}
    page = markdown(document(report({**before(), **topics}, before()), fail_on="removal"))
    policy = page[page.index("## The policy rejects this") : page.index("## `dev`")]
    assert policy.count("- `removal` dev: serving: T") == 3
    assert "- <details><summary><code>removal</code> dev: 6 more</summary>\n\n  - serving: T3 (" in policy
    assert "serving: T8 (`AWS::SNS::Topic`) is removed" in policy


def test_backticks_in_a_value_do_not_end_the_fence() -> None:
    old, new = ({**before(), "T": resource("AWS::SNS::Topic", {"DisplayName": each})} for each in ("```\n# a", "````b"))
    assert "`````diff\n" in markdown(report(old, new))


def big(count: int) -> str:
    value = "x" * 150
    many = {
        f"T{n:03}": resource("AWS::SNS::Topic", {"DisplayName": f"{value}{n}", "TopicName": value})
        for n in range(count)
    }
    new = {**before(), **many, "Bucket": resource("AWS::S3::Bucket", {"BucketName": "other"})}
    return markdown(report(before(), new), whole="in [this run](https://example.com/1)")


def test_a_long_report_is_cut_what_hurts_least_first_with_a_sentence_of_it() -> None:
    page = big(300)
    assert len(page.encode("utf-16-le")) // 2 <= LIMIT
    assert "+ other\n" in page
    end = page.splitlines()[-1]
    assert end.startswith("**Cut, for a comment takes 65,536 characters.**")
    assert end.endswith("All of it is in [this run](https://example.com/1).")
    assert "`serving/T299` AWS::SNS::Topic" in page
    longer = big(3000)
    assert len(longer.encode("utf-16-le")) // 2 <= LIMIT
    assert "| `dev` |" in longer
