"""What prepare prints while it works: what is new, and now and then what is not."""

from __future__ import annotations

import io

from rich.console import Console

from tritonstack.cli.prepare import ArchiveLines


def lines(*said: tuple[str, str], log_seconds: float = 1000) -> list[str]:
    """The printed lines, without their times."""
    stream = io.StringIO()
    view = ArchiveLines(Console(file=stream, width=40), log_seconds=log_seconds)
    for archive, text in said:
        view.say(archive, text)
    return [line.split(" s  ", 1)[1] for line in stream.getvalue().splitlines()]


def test_only_what_an_archive_is_newly_at_is_printed() -> None:
    said = [("bert", "job to S3: 1 %"), ("bert", "job to S3: 50 %"), ("bert", ""), ("bert", "CodeBuild: BUILD, 3 s")]
    assert lines(*said) == ["bert  job to S3: 1 %", "bert  CodeBuild: BUILD, 3 s"]


def test_archives_do_not_silence_each_other() -> None:
    assert lines(("a", "export"), ("b", "export"), ("a", "export")) == ["a  export", "b  export"]


def test_what_takes_long_is_printed_again_with_its_figures() -> None:
    assert lines(("a", "CodeBuild: BUILD, 3 s"), ("a", "CodeBuild: BUILD, 18 s"), log_seconds=0) == [
        "a  CodeBuild: BUILD, 3 s",
        "a  CodeBuild: BUILD, 18 s",
    ]


def test_a_long_line_stays_one_line() -> None:
    assert lines(("a", "x" * 300)) == ["a  " + "x" * 300]
