"""What a review says of each change of the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.review.corpus.case import Case, case, cases
from tests.review.corpus.made import Made, said_of
from tritonstack.review.document import document_of
from tritonstack.review.markdown import markdown
from tritonstack.review.page import page

NAMES = [each.name for each in cases()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("corpus"))


def test_the_corpus_has_what_it_is_to_have() -> None:
    assert len(NAMES) >= 25
    assert not [each.name for each in cases() if not each.says]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_review_must_say(made: Made, name: str) -> None:
    """Part by part, so that a failure says which."""
    told, must = said_of(made, case(name)), case(name).says
    assert list(told) == list(must)
    for part, words in must.items():
        assert told[part] == words, f"{name}: {part}"


def test_a_report_has_the_same_bytes_from_another_folder(made: Made, tmp_path: Path) -> None:
    again = Made(tmp_path / "an other folder")
    for each in _one_of_each_base():
        assert list(_texts(made, each)) == list(_texts(again, each)) == list(_texts(again, each))


def _one_of_each_base() -> tuple[Case, ...]:
    return case("instance type"), case("single-model becomes multi-model"), case("VPC switched")


def _texts(made: Made, each: Case) -> Iterator[str]:
    """The report in every form."""
    document = document_of(made.report(each))
    yield document.text()
    yield markdown(document)
    yield page(document)
