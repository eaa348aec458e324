"""All checks together: order, the wrong account, time, and mistakes of our own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_aws import DENIED, SILENCE, Response
from tests.preflight.subjects import ACCOUNT, served, subject_of
from tritonstack.aws.read_only import NotKnownError
from tritonstack.preflight.runner import CHECKS, Check, run_checks
from tritonstack.preflight.subject import CheckedItem, PreflightResult, Subject


def caller(account: str = ACCOUNT) -> dict[str, Response]:
    """STS of an account."""
    return {"sts.GetCallerIdentity": {"Account": account, "Arn": f"arn:aws:iam::{account}:user/me", "UserId": "u"}}


def check_of(name: str, *outcomes: str, after: threading.Event | None = None) -> Check:
    """A check with these results, the last of them only after an event."""

    def run(subject: Subject) -> Iterator[PreflightResult]:
        for number, outcome in enumerate(outcomes):
            if after is not None and number == len(outcomes) - 1:
                after.wait(60)
            item = CheckedItem(check=name, subject=f"{name} {number}", needed="n")
            yield item.passes("f") if outcome == "passes" else item.fails("f", advice="a")

    return Check(name=name, title=f"title of {name}", run=run)


def test_results_come_in_the_order_of_the_checks_after_the_account(tmp_path: Path) -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    subject = subject_of(served(tmp_path), caller())
    second = threading.Event()
    messages: list[str] = []

    def report(text: str) -> None:
        messages.append(text)
        if "waiting for slow" in text and "quick" not in text:
            second.set()

    checks = (check_of("slow", "fails", after=second), check_of("quick", "passes", "passes"))
    results = run_checks(subject, checks=checks, say=report)
    assert [result.check for result in results] == ["account", "slow", "quick", "quick"]
    assert messages[0].startswith("0 of 2 checks; waiting for slow, quick")
    assert messages[1] == "1 of 2 checks; waiting for slow"


def test_another_account_fails_without_further_requests_there(tmp_path: Path) -> None:
    subject = subject_of(served(tmp_path), caller("999999999999"))
    results = run_checks(subject, checks=(check_of("quick", "passes"),))
    assert [(result.check, result.outcome) for result in results] == [("account", "fails"), ("quick", "unknown")]


@pytest.mark.parametrize("error", [DENIED, SILENCE])
def test_an_account_that_does_not_return_its_id_is_unknown(tmp_path: Path, error: Exception) -> None:
    subject = subject_of(served(tmp_path), {"sts.GetCallerIdentity": error})
    results = run_checks(subject, checks=(check_of("quick", "passes"),))
    assert [result.outcome for result in results] == ["unknown", "passes"]


def test_a_check_that_never_ends_is_unknown_and_keeps_what_it_had_found(tmp_path: Path) -> None:
    never = threading.Event()
    checks = (check_of("stuck", "passes", "passes", after=never), check_of("quick", "passes"))
    subject = subject_of(served(tmp_path), caller())
    results = run_checks(subject, checks=checks, seconds=0.5)
    never.set()
    found = [(result.check, result.outcome) for result in results[1:]]
    assert found == [("stuck", "passes"), ("stuck", "unknown"), ("quick", "passes")]
    assert "in time" in results[2].found
    with pytest.raises(NotKnownError, match="no time left"):  # checks that still run send no further request
        subject.calls.must("sts", "get_caller_identity")


def test_a_mistake_in_a_check_is_no_result(tmp_path: Path) -> None:
    def run(_subject: Subject) -> Iterator[PreflightResult]:
        raise ZeroDivisionError
        yield

    with pytest.raises(ZeroDivisionError):
        run_checks(subject_of(served(tmp_path), caller()), checks=(Check(name="bad", title="bad", run=run),))
