"""Instance types in the region: two live witnesses, and what they do not say."""

from __future__ import annotations

from pathlib import Path

from tests.preflight.fakes import DENIED, Answer, pages
from tests.preflight.subjects import results_of, served
from tests.preflight.test_endpoint_quota import quota
from tritonstack.preflight.quotas import check_instance_type

T4 = "ml.g4dn.xlarge"


def account(*, quotas: bool, prices: bool) -> dict[str, Answer]:
    """An account whose services know the type, or not."""
    rows = [quota(f"{T4} for endpoint usage", 0)] if quotas else []
    return {
        "service-quotas.ListServiceQuotas": pages("Quotas", rows),
        "service-quotas.ListAWSDefaultServiceQuotas": pages("Quotas", []),
        "pricing.GetProducts": {"PriceList": ["{}"] if prices else []},
    }


def test_one_witness_is_enough_even_a_quota_of_zero(tmp_path: Path) -> None:
    for quotas, prices in ((True, False), (False, True)):
        found = results_of(check_instance_type, served(tmp_path), account(quotas=quotas, prices=prices))[T4]
        assert found.outcome == "passes"
        assert "the catalogue has us-east-1" in found.found


def test_a_type_that_no_witness_knows_fails(tmp_path: Path) -> None:
    found = results_of(check_instance_type, served(tmp_path), account(quotas=False, prices=False))[T4]
    assert found.outcome == "fails"
    assert "no quota" in found.found
    assert "no price" in found.found


def test_a_silent_witness_beside_one_that_knows_nothing_is_unknown(tmp_path: Path) -> None:
    answers = account(quotas=False, prices=False) | {"pricing.GetProducts": DENIED}
    found = results_of(check_instance_type, served(tmp_path), answers)[T4]
    assert (found.outcome, found.permission) == ("unknown", "pricing:GetProducts")


def test_the_other_witness_is_asked_where_one_is_denied(tmp_path: Path) -> None:
    answers = account(quotas=True, prices=True) | {"service-quotas.ListServiceQuotas": DENIED}
    assert results_of(check_instance_type, served(tmp_path), answers)[T4].outcome == "passes"
