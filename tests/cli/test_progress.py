"""Steps: one line each in a log, a live line on a terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from tritonstack.cli.progress import SHOWN, ShownStep, Steps


def steps(*, terminal: bool = False, width: int = 80) -> tuple[Steps, io.StringIO]:
    """Steps and what they write to."""
    file = io.StringIO()
    return Steps(Console(file=file, force_terminal=terminal, width=width, highlight=False)), file


def test_a_step_is_a_line_when_it_begins_and_one_with_its_time_when_it_ends() -> None:
    shown, file = steps()
    with shown.step("deploy") as step:
        step.say("12 of 20")
    assert re.fullmatch(r"… deploy\n✓ deploy  \d+\.\d s\n", file.getvalue())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_step_that_fails_or_is_interrupted_is_marked_and_the_error_goes_on(error: type[BaseException]) -> None:
    shown, file = steps()
    with pytest.raises(error), shown.step("deploy"):
        raise error
    assert re.search(r"^✗ deploy  \d+\.\d s$", file.getvalue(), re.MULTILINE)


def test_in_a_log_a_line_stays_one_however_long() -> None:
    shown, file = steps()
    with shown.step("start") as step:
        step.end_with("http://127.0.0.1:4566, " * 10)
    assert len(file.getvalue().splitlines()) == 2


def test_on_a_terminal_the_live_line_goes_away_and_the_outcome_stays() -> None:
    shown, file = steps(terminal=True)
    with shown.step("deploy") as step:
        step.say("CREATE_IN_PROGRESS")
    assert "\x1b[" in file.getvalue()
    assert "✓ " in file.getvalue()


def test_a_live_line_is_never_wider_than_the_terminal() -> None:
    step = ShownStep("deploy")
    step.say("x" * 500)
    step.say("")
    assert len(step.detail) == SHOWN, "an empty detail changes nothing"
    lines = Console(file=io.StringIO(), width=40).render_lines(step)
    assert len(lines) == 1
    assert sum(len(segment.text) for segment in lines[0]) == 40
