"""Pages whose commands run as they stand, one after the other, in a copy of the checkout with a local AWS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import CodeBlock
from tests.docs.registry import Entry, blocks_that
from tests.docs.sequence import checkout, run_sequence

RUN = blocks_that(way="run")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.mark.long
@pytest.mark.parametrize("page", sorted({block.page for block, _ in RUN}))
def test_every_block_of_a_page_runs_in_its_order(page: str, tmp_path: Path) -> None:
    of_page = [(block, entry) for block, entry in RUN if block.page == page]
    run_sequence(checkout(tmp_path), of_page, seconds=850)


def test_a_block_that_fails_is_named_with_what_it_printed(tmp_path: Path) -> None:
    """And what stands behind it in the page does not run."""
    (tmp_path / "tritonstack").mkdir()
    told = {"page": "a.md", "heading": "", "language": "console", "file": ""}
    blocks = [
        CodeBlock(**told, line=1, text="$ echo well"),
        CodeBlock(**told, line=5, text="$ echo before\n$ ls no-such-file"),
        CodeBlock(**told, line=9, text="$ echo after"),
    ]
    entry = Entry(run=True)
    with pytest.raises(
        AssertionError, match=r"(?s)a.md:5 «echo before» ended with 2:.*before\n.*no-such-file"
    ) as error:
        run_sequence(tmp_path / "tritonstack", [(block, entry) for block in blocks], seconds=60)
    assert "after" not in str(error.value)
