"""What the benchmark of reviews makes of its measurements."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import review
from benchmarks.review import Sampler, copied, ratio
from tritonstack.config import load_environments
from tritonstack.errors import WorkFailedError


def test_the_first_round_is_not_counted() -> None:
    assert ratio([90.0, 2.0, 4.0, 6.0], [1.0, 1.0, 1.0, 1.0]) == 4.0


def test_the_copies_are_environments_of_their_own(tmp_path: Path) -> None:
    names = [each.environment for each in load_environments(copied(tmp_path / "copies", 3))]
    assert names == ["copy0", "copy1", "copy2"]


def test_the_memory_is_that_of_a_process_and_of_what_it_starts() -> None:
    child = "import sys; held = bytearray(60 << 20); print('up', flush=True); sys.stdin.read()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        sampler = Sampler(process.pid)
        first = sampler._held()
        process.communicate("")
        assert first > 60 << 20
        sampler.end()


def test_a_review_that_sees_no_change_is_no_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with pytest.raises(WorkFailedError, match="ended with 0"):
        review.review(tmp_path)
