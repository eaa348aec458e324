"""The linter against the real Triton on repositories that nobody chose: how many of each verdict it gives alike."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.differential.corpus import Case, corpus
from tests.differential.server import Server, judged
from tests.differential.tables import lint_errors
from tests.differential.test_agreement import SEED

HELD_OUT = "held out"
"""The seed of the cases that count: no rule was changed for one of them."""

CASES = 220
SECONDS = 40.0
"""After this a server is taken to load a case no more."""

LEAST = 0.95
LEAST_LOADED = 90


def verdicts_of(cases: Sequence[Case], folder: Path) -> list[tuple[Case, bool, list[str], str]]:
    """For each case whether Triton loads it, the linter's errors, and what Triton says of it."""

    def judge(server: Server, case: Case) -> tuple[tuple[Case, bool, list[str], str], bool]:
        case.write(folder / "cases" / case.name)
        errors = sorted(lint_errors(folder / "cases" / case.name))
        try:
            answer, _ = server.load_laid_out(case.write, seconds=SECONDS)
        except (TimeoutError, ConnectionError):
            return (case, False, errors, "no answer"), False
        return (case, answer.accepted, errors, answer.told), True

    return judged(cases, judge, folder)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_on_cases_held_out_the_linter_gives_nearly_every_verdict_of_the_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = os.environ.get(SEED, HELD_OUT)
    verdicts = verdicts_of(corpus(seed, CASES), tmp_path)
    table = Counter((loads, not errors) for _, loads, errors, _ in verdicts)
    kinds = Counter((case.kind, loads, not errors) for case, loads, errors, _ in verdicts)
    with capsys.disabled():
        print(f"\n{len(verdicts)} cases of seed {seed!r}; Triton loads / refuses, of which lint agrees")
        for kind in sorted({case.kind for case in corpus(seed, CASES)}):
            loaded = kinds[kind, True, True] + kinds[kind, True, False]
            refused = kinds[kind, False, True] + kinds[kind, False, False]
            print(f"{kind:18} {kinds[kind, True, True]:3}/{loaded:3}  {kinds[kind, False, False]:3}/{refused:3}")
        loaded, refused = table[True, True] + table[True, False], table[False, True] + table[False, False]
        print(f"loaded and accepted {table[True, True]}/{loaded}, refused and refused {table[False, False]}/{refused}")
        for case, loads, errors, told in verdicts:
            if loads == bool(errors):
                print(f"{case.name}: {'loads' if loads else told[:300]!r}, lint: {errors}")
    assert loaded >= LEAST_LOADED
    assert table[True, True] >= LEAST * loaded
    assert table[False, False] >= LEAST * refused
