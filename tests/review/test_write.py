"""The command behind ``make snapshots``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.review.small import of, resource, stack
from tritonstack.review import write

SNAPSHOTS = of(stack({"Topic": resource("AWS::SNS::Topic", {"DisplayName": "a"})}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command reads and writes, in place of the repository."""
    monkeypatch.setattr(write, "ROOT", tmp_path)
    return tmp_path / "snapshots"


def test_it_says_which_files_it_wrote_and_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir()
    (folder / "old.json").write_text("{}")
    assert write.write(SNAPSHOTS) == 0
    assert capsys.readouterr().out.splitlines() == [
        "snapshots/dev/assets.json",
        "snapshots/dev/serving.json",
        "snapshots/old.json (removed)",
        "1 stacks of 1 environments: 3 files written or removed",
    ]


def test_a_check_writes_nothing_and_fails_where_they_differ(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write.write(SNAPSHOTS)
    capsys.readouterr()
    assert write.check(SNAPSHOTS) == 0
    assert "is up to date" in capsys.readouterr().out
    other = of(stack({"Topic": resource("AWS::SNS::Topic", {"DisplayName": "b"})}))
    before = (folder / "dev" / "serving.json").read_text()
    assert write.check(other) == 1
    assert "snapshots/dev/serving.json: differs" in capsys.readouterr().out
    assert (folder / "dev" / "serving.json").read_text() == before


def test_unknown_arguments_are_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert write.main(["--chek"]) == 2
    assert "--check" in capsys.readouterr().err
