"""``local dev``: what counts as a change, and how a response is compared with the one before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cases import cases
from tests.models.folders import write
from tritonstack_local.commands.dev import Stamps, Watch, Work, answer_lines, follow_changes, stamps_of


def watched(*looks: Stamps) -> tuple[Watch, Callable[[], int]]:
    """A watch that sees these one after the other, and how often it slept."""
    left = list(looks)
    slept: list[float] = []
    watch = Watch(lambda: left.pop(0), sleep=slept.append)
    return watch, lambda: len(slept)


A, B, C = Path("a"), Path("b"), Path("c")


def test_files_written_made_and_removed_count_once_they_stay_as_they_are() -> None:
    first = {A: (1, 1), B: (1, 1)}
    half, whole = {A: (2, 0), B: (1, 1)}, {A: (3, 9), C: (3, 1)}
    watch, slept = watched(first, first, half, whole, whole)
    assert watch.wait() == {A, B, C}
    assert slept() == 3


def test_what_is_as_before_when_it_comes_to_rest_is_no_change() -> None:
    first, swapped = {A: (1, 1)}, {A: (1, 1), B: (2, 1)}  # a file that an editor makes and removes
    watch, _ = watched(first, swapped, first, {A: (5, 1)}, {A: (5, 1)})
    assert watch.wait() == {A}


def test_what_changes_while_something_else_is_built_is_seen_next() -> None:
    watch, _ = watched({A: (1, 1)}, {A: (2, 1)}, {A: (2, 1)}, {A: (2, 1), B: (9, 9)}, {A: (2, 1), B: (9, 9)})
    assert [watch.wait(), watch.wait()] == [frozenset({A}), frozenset({B})]


def test_any_error_is_shown_and_the_watch_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(Work):
        def update(self) -> None:
            raise ZeroDivisionError("of nobody's making")

    looks: list[Stamps | Exception] = [
        {A: (1, 1)}, PermissionError(13, "denied"), PermissionError(13, "denied"), {A: (2, 1)}, {A: (2, 1)},
        KeyboardInterrupt(),  # type: ignore[list-item]
    ]  # fmt: skip

    def look() -> Stamps:
        found = looks.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found

    with pytest.raises(KeyboardInterrupt):
        follow_changes(Broken(environment="local"), Watch(look, sleep=lambda _: None))
    shown = capsys.readouterr().out
    assert shown.count("ZeroDivisionError: of nobody's making\nnot released: what served before serves on") == 2
    assert shown.count("the files cannot be looked at: [Errno 13] denied") == 1


def test_sources_are_watched_and_not_what_editors_leave(tmp_path: Path) -> None:
    write(tmp_path, {"local.yaml": "", "repos/m/m/1/model.py": "1", "repos/m/m/1/.model.py.swp": "", "repos/m/x~": ""})
    (tmp_path / "repos/gone").symlink_to(tmp_path / "nowhere")
    found = stamps_of(tmp_path / "local.yaml", tmp_path / "repos")
    assert {path.name for path in found} == {"local.yaml", "model.py"}


@cases("before, now, lines")
def test_each_output_is_shown_next_to_the_one_before(
    before: dict[str, list[float]] | str, now: dict[str, list[float]], lines: list[str]
) -> None:
    old = before if isinstance(before, str) else {name: np.array(value) for name, value in before.items()}
    assert list(answer_lines(old, {name: np.array(value) for name, value in now.items()})) == lines
