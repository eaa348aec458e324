"""What each word of --fail-on matches, and which words there are."""

from __future__ import annotations

import pytest

from tests.cases import cases
from tests.review.releases import A, release_stack
from tests.review.reports import ALL, BASE, READ, ROLE, before, document, policy, report
from tests.review.small import Template, of, resource, serving, stack
from tritonstack.errors import InputError
from tritonstack.review.document import ReviewDocument
from tritonstack.review.fail_on import WORDS, matches_of, parse_fail_on
from tritonstack.review.model_changes.vulnerable_releases import vulnerable_releases
from tritonstack.review.report import Known, document_of
from tritonstack.review.snapshot import NO_ENVIRONMENT, EnvironmentSnapshot


def matched(given: ReviewDocument, words: str) -> list[str]:
    return [f"{each.environment}: {each.sentence}" for each in matches_of(given, parse_fail_on(words))]


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("replacement,nonsense,cost:10,finding:x", "nonsense, cost:10, finding:x"),
        *((each, each) for each in ("cost", "cost:", "cost:+", "cost:-5%", "replacement:", "iam:", "any:thing")),
        *((each, "no word") for each in ("", ",")),
    ],
)
def test_words_that_are_unknown_or_half_written_are_refused_with_all_that_are_allowed(words: str, wrong: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_fail_on(words)
    [problem] = raised.value.problems
    assert problem.found == wrong
    assert all(name in problem.allowed for name in (*WORDS, "cost:+N%"))


def test_no_word_matches_where_nothing_changes() -> None:
    assert parse_fail_on(" iam , cost:+10%,iam,") == ("iam", "cost:+10%"), "a word that stands twice counts once"
    same = report(before(), before())
    every = ",".join({"cost": "cost:+0%"}.get(name, name) for name in WORDS if name != "finding")
    assert matched(same, every) == []


@cases("words, wanted")
def test_a_word_matches_its_kind_of_change(words: str, wanted: list[str]) -> None:
    matching = [each.replace("at minimum ", "") for each in matched(document(), words)]
    assert sorted(each for each in matching if not each.startswith("new:")) == sorted(wanted)


@cases("old, new, expected")
def test_a_vulnerable_release_is_one_that_the_change_adds(old: str | None, new: str, expected: str) -> None:
    def on(release: str | None) -> Template:
        return {} if release is None else serving(image=f"{'0' * 12}.dkr.ecr/triton:{release}-py3")

    given = report({"Role": ROLE, **on(old)}, {"Role": ROLE, **on(new)})
    matching = matched(given, "vulnerable-release")
    assert [each.startswith(f"dev: serving: dev-digits {expected}") for each in matching] == (
        [True] if expected else []
    )
    assert all("the gravest CVE-" in each for each in matching)


def test_a_release_set_gives_the_release_of_an_image_of_ones_own() -> None:
    """The release set is right where the image's tag names another release."""
    made = release_stack({"bert": A}, platform="25.09-t4")
    [found] = vulnerable_releases(
        NO_ENVIRONMENT, EnvironmentSnapshot(name="dev", stacks={made.name: made}, findings=None)
    )
    assert "is new on release 25.09" in found


def test_a_permission_that_widens_matches_iam_and_by_a_wildcard_also_wildcard() -> None:
    other = {**READ, "Resource": "arn:aws:s3:::models/b.tar.gz"}
    by_name = report(before(), {**before(), "Policy": policy(READ, other)})
    [matching] = matched(by_name, "iam")
    assert "s3:GetObject on arn:aws:s3:::models/b.tar.gz" in matching
    assert matched(by_name, "wildcard") == []
    by_wildcard = report(before(), {**before(), "Policy": policy(READ, ALL)})
    assert matched(by_wildcard, "iam")
    assert "s3:*" in matched(by_wildcard, "wildcard")[0]
    assert matched(report({**before(), "Policy": policy(READ, ALL)}, before()), "iam,wildcard") == []


def test_a_renamed_inline_policy_is_neither_removed_nor_replaced() -> None:
    old = before()
    new = {**{name: each for name, each in old.items() if name != "Policy"}, "Policy2": policy(READ, name="q")}
    given = report(old, new)
    assert matched(given, "any") == ["dev: 1 renamed; no endpoint's traffic is touched"]
    assert matched(given, "removal,replacement,iam,traffic") == []


def test_an_unknown_price_is_no_cost_but_an_unknown_cost() -> None:
    new = {**before(), **serving(variant={"InstanceType": "ml.nowhere.xlarge"})}
    given = report(before(), new, known=Known())
    assert matched(given, "cost:+0%") == []
    [matching] = matched(given, "unknown-cost")
    assert "ml.nowhere.xlarge" in matching


def test_unknown_findings_match_finding_and_any_matches_every_change() -> None:
    [matching] = matched(report(before(), {**before(), "Queue": resource("AWS::SQS::Queue")}), "finding")
    assert "not known" in matching
    assert {each.partition(":")[0] for each in matched(document(), "any")} == {"dev", "lost", "new"}


def test_a_stack_under_another_name_is_reported_by_the_deployed_name() -> None:
    old, new = (of(stack(before(), stack_name=name)) for name in ("old-serving", "new-serving"))
    given = document_of(old, new, base=BASE)
    assert matched(given, "replacement") == ["dev: the stack old-serving is replaced by another stack"]
    [environment] = given.environments
    assert environment.verdict[0].text == "another stack takes the place of old-serving"
