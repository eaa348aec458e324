"""The linter against the real Triton on random repositories: how many verdicts of each kind agree."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.differential.corpus.kinds import KINDS, corpus
from tests.differential.corpus.repository import Case
from tests.differential.server import Server, judged
from tests.differential.tables import lint_errors
from tests.differential.test_agreement import SEED
from tritonstack.lint.registry import rule

HELD_OUT = "held out"
"""The seed of the cases that count: no rule was changed for one of them."""

CASES = 640
SECONDS = 40.0
"""After this a server is taken to load a case no more."""

LEAST = 0.99


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """Both verdicts on a case: whether Triton loads it and its messages; the rules by which the linter refuses it.

    Rules about SageMaker are left out: Triton loads what they refuse.
    """

    case: Case
    loads: bool
    verdict: str
    errors: Sequence[str]

    @property
    def agree(self) -> bool:
        return self.loads != bool(self.errors)


def verdicts_of(cases: Sequence[Case], folder: Path) -> list[Verdicts]:
    """The verdicts on each case, in their order."""

    def judge(server: Server, case: Case) -> tuple[Verdicts, bool]:
        repository = folder / "cases" / case.name
        case.write(repository)
        errors = sorted(name for name in lint_errors(repository) if rule(name).category != "sagemaker")
        try:
            response, _ = server.load_laid_out(case.write, seconds=SECONDS)
        except (TimeoutError, ConnectionError):
            return Verdicts(case=case, loads=False, verdict="no response", errors=errors), False
        return Verdicts(case=case, loads=response.accepted, verdict=response.output, errors=errors), True

    return judged(cases, judge, folder)


def _print_table(verdicts: Sequence[Verdicts], seed: str) -> None:
    """By kind how much of what Triton loads, and of what it refuses, the linter judges alike; then every difference."""
    print(f"\n{len(verdicts)} cases of seed {seed!r}: kind, loaded and accepted, refused and refused")
    agreed = Counter((each.case.kind, each.loads) for each in verdicts if each.agree)
    counts = Counter((each.case.kind, each.loads) for each in verdicts)
    for kind in KINDS:
        loaded, refused = (f"{agreed[kind, loads]:3}/{counts[kind, loads]:3}" for loads in (True, False))
        print(f"{kind:18} {loaded}  {refused}")
    for each in verdicts:
        if not each.agree:
            verdict = "loads" if each.loads else repr(each.verdict[:300])
            print(f"{each.case.name}: Triton: {verdict}; lint: {', '.join(each.errors) or 'accepts it'}")


def test_a_seed_draws_the_same_cases_of_every_kind_each_time() -> None:
    cases = corpus("any", 3 * len(KINDS))
    assert cases == corpus("any", 3 * len(KINDS))
    assert Counter(case.kind for case in cases) == dict.fromkeys(KINDS, 3)
    assert cases[-1].files != corpus("another", 3 * len(KINDS))[-1].files


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_on_cases_held_out_the_linter_gives_nearly_every_verdict_of_the_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = os.environ.get(SEED, HELD_OUT)
    verdicts = verdicts_of(corpus(seed, CASES), tmp_path)
    loaded, refused = ([each for each in verdicts if each.loads == loads] for loads in (True, False))
    agreed = [sum(each.agree for each in part) for part in (loaded, refused)]
    with capsys.disabled():
        _print_table(verdicts, seed)
        print(f"loaded and accepted {agreed[0]}/{len(loaded)}, refused and refused {agreed[1]}/{len(refused)}")
    assert len(loaded) >= len(refused)
    assert agreed[0] >= LEAST * len(loaded)
    assert agreed[1] >= LEAST * len(refused)
