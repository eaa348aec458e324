"""The comment under a pull request: written once, then rewritten in place. The API is a stand-in on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.review.github import TOKEN, StandIn, stand_in
from tests.review.reports import document
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.review.post import MARKER, PullRequest, main, pull_request_of
from tritonstack.review.views.markdown import markdown


@pytest.fixture
def api() -> Iterator[StandIn]:
    with stand_in() as state:
        yield state


def to(api: StandIn, **members: str) -> PullRequest:
    return pull_request_of(
        {
            "GITHUB_API_URL": api.address,
            "GITHUB_REPOSITORY": "owner/name",
            "PULL_REQUEST": "7",
            "GITHUB_TOKEN": TOKEN,
            **members,
        }
    )


def test_a_comment_is_written_once_and_then_rewritten_in_place(api: StandIn) -> None:
    body = markdown(document())
    api.add("Nice!", author="somebody")
    assert to(api).post(body) == "comment on #7 written"
    assert to(api).post(body) == "comment on #7 is as it should be"
    assert to(api).post(f"{body}more") == "comment on #7 rewritten"
    assert [each["body"] for each in api.comments] == ["Nice!", f"{body}more"]
    assert [each for each in api.asked if not each.startswith("GET")] == [
        "POST /repos/owner/name/issues/7/comments",
        "PATCH /repos/owner/name/issues/comments/101",
    ]


def test_the_comment_is_found_behind_hundreds_of_others(api: StandIn) -> None:
    for number in range(250):
        api.add(f"comment {number}", author="somebody")
    api.add(f"{MARKER}\nold")
    assert to(api).post(f"{MARKER}\nnew") == "comment on #7 rewritten"
    assert len(api.comments) == 251


def test_a_comment_of_somebody_else_is_left_alone_whatever_it_begins_with(api: StandIn) -> None:
    api.add(f"{MARKER}\nnot ours", author="somebody")
    to(api).post(f"{MARKER}\nours")
    assert [each["body"] for each in api.comments] == [f"{MARKER}\nnot ours", f"{MARKER}\nours"]
    assert to(api, REVIEW_AUTHOR="somebody").post(f"{MARKER}\nx") == "comment on #7 rewritten"
    assert api.comments[0]["body"] == f"{MARKER}\nx"


def test_the_longest_report_is_taken(api: StandIn) -> None:
    assert to(api).post(MARKER + "x" * (65_536 - len(MARKER))) == "comment on #7 written"
    with pytest.raises(WorkFailedError, match="too long"):
        to(api).post(MARKER + "x" * 65_536)


def set_variables(monkeypatch: pytest.MonkeyPatch, api: StandIn) -> None:
    for name, value in {"API_URL": api.address, "REPOSITORY": "owner/name", "TOKEN": TOKEN}.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    monkeypatch.setenv("PULL_REQUEST", "7")


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_token_that_may_not_write_is_no_failure_but_said(
    api: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    set_variables(monkeypatch, api)
    (tmp_path / "r.md").write_text(f"{MARKER}\n")
    api.answer = status
    assert main([str(tmp_path / "r.md")]) == 0
    assert (
        f"may not write one, as that of a pull request from a fork (GitHub answered {status}" in capsys.readouterr().out
    )


def test_an_api_that_fails_is_failed_work(api: StandIn) -> None:
    api.answer = 500
    with pytest.raises(WorkFailedError, match="answered 500"):
        to(api).post(MARKER)


def test_wrong_input_is_said_all_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError) as raised:
        pull_request_of({"GITHUB_REPOSITORY": "owner", "GITHUB_API_URL": "file:///etc", "GITHUB_TOKEN": "secret one"})
    assert [each.field for each in raised.value.problems] == [
        "GITHUB_REPOSITORY",
        "PULL_REQUEST",
        "GITHUB_TOKEN",
        "GITHUB_API_URL",
    ]
    assert "secret" not in str(raised.value)
    (tmp_path / "other.md").write_text("# Something else")
    assert main([str(tmp_path / "other.md")]) == 2
    assert "does not begin as a report" in capsys.readouterr().err
    assert main([]) == 2
