"""The Price List is asked page by page, and what ends badly ends with a word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.preflight.fakes import Answer, FakeSession, pages
from tests.tritonstack_capacity.price_list.documents import text
from tritonstack.errors import WorkFailedError
from tritonstack.read_only_aws import ReadOnlyCalls
from tritonstack_capacity.price_list import API_REGIONS, MOST_PAGES, hosting_documents


def asked(answer: Answer, *, api_region: str = "us-east-1") -> tuple[tuple[str, ...], FakeSession, list[str]]:
    """The documents of eu-west-3, the session that was asked, and what was said meanwhile."""
    session, said = FakeSession({"pricing.GetProducts": answer}), list[str]()
    calls = ReadOnlyCalls(session)
    found = hosting_documents(calls, region="eu-west-3", api_region=api_region, say=said.append)
    return found, session, said


def test_every_page_is_read_and_the_request_names_region_and_component() -> None:
    one, two = text("ml.g4dn.xlarge"), text("ml.g5.xlarge")
    found, session, said = asked(pages("PriceList", [one], [two]))
    assert found == (one, two)
    assert said == ["eu-west-3: 1 products", "eu-west-3: 2 products"]
    [(_, first), (_, second)] = session.calls
    assert first == {
        "ServiceCode": "AmazonSageMaker",
        "Filters": [
            {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "eu-west-3"},
            {"Type": "TERM_MATCH", "Field": "component", "Value": "Hosting"},
        ],
        "FormatVersion": "aws_v1",
        "MaxResults": 100,
    }
    assert second == {**first, "NextToken": "1"}


@pytest.mark.parametrize("api_region", API_REGIONS)
def test_the_list_is_asked_where_it_answers_not_where_the_prices_are(api_region: str) -> None:
    _, session, _ = asked({"PriceList": [text()]}, api_region=api_region)
    assert session.clients == [("pricing", api_region)]


@pytest.mark.parametrize("answer", [{"PriceList": []}, {}])
def test_a_region_without_a_single_product_is_no_answer(answer: dict[str, Any]) -> None:
    with pytest.raises(WorkFailedError, match="no hosting product in eu-west-3: nothing is written"):
        asked(answer)


def test_a_list_without_an_end_is_given_up() -> None:
    with pytest.raises(WorkFailedError, match="one page of eu-west-3 again and again"):
        asked({"PriceList": [text()], "NextToken": "same"})
    with pytest.raises(WorkFailedError, match=f"more than {MOST_PAGES} pages"):
        asked(lambda request: {"PriceList": [text()], "NextToken": request.get("NextToken", "") + "x"})
