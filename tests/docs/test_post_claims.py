"""Each of the 189 claims of the five posts has a verdict, and what it names stands where it says."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.docs.post_claims import DECLINED, POSTS, Claim, claims, field, summary, wrong

EVERY = [(post, claim) for post, listed in claims().items() for claim in listed]


def test_all_claims_are_there_once_with_the_verdicts_of_before() -> None:
    print(summary())
    assert tuple(claims()) == POSTS
    assert len(EVERY) == len({(post, claim.claim) for post, claim in EVERY}) == 189
    before = [claim.before for _, claim in EVERY]
    assert [before.count(each) for each in ("shown", "setting", "weak", "missing")] == [125, 15, 39, 10]


@pytest.mark.parametrize("post", POSTS)
def test_each_place_has_what_shows_its_claim(post: str) -> None:
    found = {
        f"{claim.claim}: {said}"
        for claim in claims()[post]
        for place in claim.places
        for name, expected in place.items()
        if (said := wrong(name, expected))
    }
    assert found == set()


def test_what_is_declined_has_its_reason_in_the_one_list() -> None:
    places = [place for _, claim in EVERY for each in claim.declined for place in each]
    assert [place for place in places if not place.startswith(f"{DECLINED}#")] == []


@pytest.mark.parametrize(
    ("place", "expected", "said"),
    [
        ("environments/nowhere.yaml#a", 1, "is not there"),
        ("environments/dev.yaml", "no such text", "no such text"),
        ("environments/dev.yaml#endpoints[images].mode", "single-model", "is 'multi-model'"),
        ("environments/dev.yaml#endpoints[images].models", "t5-python", "not 't5-python'"),
        ("environments/dev.yaml#endpoints[pictures].mode", "multi-model", "0 items [pictures]"),
        ("environments/dev.yaml#endpoints[images].modes", "multi-model", "no field modes"),
        ("docs/not-here.md#nowhere", "Shadow", "no heading #nowhere"),
        ("docs/not-here.md#machines", "Shadow variants", "has no «Shadow variants»"),
    ],
)
def test_a_place_that_does_not_show_its_claim_is_found(place: str, expected: object, said: str) -> None:
    assert said in str(wrong(place, expected))


def test_a_field_is_found_by_name_position_and_type() -> None:
    document = {"a": [{"name": "x", "b": 1}], "c": {"Logical1": {"Type": "T", "d": 2}, "Logical2": {"Type": "U"}}}
    assert field(document, "a[x].b") == field(document, "a[0].b") == 1
    assert field(document, "c[T].d") == 2


def test_a_claim_has_exactly_one_verdict() -> None:
    with pytest.raises(ValidationError, match="exactly one of"):
        Claim(claim="x", before="weak")
    with pytest.raises(ValidationError, match="exactly one of"):
        Claim.model_validate({"claim": "x", "before": "weak", "open": "y", "shown": [{"a": "b"}]})
