"""Links between pages lead somewhere, and every page is found from the index."""

from __future__ import annotations

import pytest

from tests.docs.pages import anchors, file_of, links, pages
from tests.e2e.project import REPOSITORY

INDEX = "docs/README.md"


@pytest.mark.parametrize("page", pages())
def test_relative_links_lead_to_files_and_anchors_that_are_there(page: str) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        if "://" in target or link.startswith("mailto:"):
            continue
        path = file_of(page, target)
        assert path.exists(), f"{page}: {link} leads to nothing"
        assert path.is_relative_to(REPOSITORY), f"{page}: {link} leads out of the repository"
        if anchor:
            known = anchors(path.relative_to(REPOSITORY).as_posix())
            assert anchor in known, f"{page}: {link}: no such heading; there are {', '.join(sorted(known))}"


@pytest.mark.parametrize("page", [page for page in pages() if page.startswith("docs/") and page != INDEX])
def test_the_index_leads_to_every_page(page: str) -> None:
    assert REPOSITORY / page in {file_of(INDEX, link.partition("#")[0]) for link in links(INDEX)}


def test_the_readme_fits_on_two_screens_and_begins_with_two_commands() -> None:
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 82
    assert [line.split()[:3] for line in lines if line.startswith("$ ")][:2] == [
        ["$", "make", "demo"],
        ["$", "make", "test"],
    ]
