"""Tables of cases: what a row must be, and that every table is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases, table
from tritonstack.config.yaml_loader import read_yaml

TESTS = Path(__file__).parent
MODULES = [path for path in TESTS.rglob("*.py") if re.search(r"^from tests\.cases import", path.read_text(), re.M)]
BESIDE = sorted(path for path in MODULES if path.with_suffix(".yaml").is_file())


@pytest.mark.parametrize("module", BESIDE, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_every_table_is_read_by_the_module_beside_it(module: Path) -> None:
    source = module.read_text()
    tables: dict[str, Any] = read_yaml(module.with_suffix(".yaml")).value
    assert [
        name for name in tables if not re.search(rf'^def {name}\(|"{name}"', source, re.M) and name != "shared"
    ] == []


def decorated(folder: Path, rows: str) -> pytest.Mark:
    """The mark of a test of two columns, a text and numbers, whose table has these rows."""
    (folder / "here.yaml").write_text(f"test_it:\n{rows}")
    given: dict[str, Any] = {"cases": cases}
    source = "@cases('name, numbers')\ndef test_it(name: str, numbers: tuple[int, ...]) -> None: ..."
    exec(compile(source, str(folder / "here.py"), "exec"), given)  # noqa: S102  (a module in another folder)
    [mark] = given["test_it"].pytestmark
    assert isinstance(mark, pytest.Mark)
    return mark


def test_rows_are_typed_and_have_the_ids_of_their_names(tmp_path: Path) -> None:
    assert decorated(tmp_path, "  one: [a, [1, 2]]\n").args == (
        ["name", "numbers"],
        [pytest.param("a", (1, 2), id="one")],
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("- [1, [1]]\n", "row 0 of test_it, columns name, numbers: .*valid string"),
        ("  one: [a, ['1']]\n", "row one of test_it, columns name, numbers: .*valid integer"),
        ("- [a]\n", "row 0 of test_it, columns name, numbers: .*shorter"),
        ("- [a, [1], 2]\n", "row 0 of test_it, columns name, numbers: .*longer"),
    ],
)
def test_a_row_that_is_wrong_is_named(tmp_path: Path, rows: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){words}"):
        decorated(tmp_path, rows)


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here.yaml").write_text("a: 1\na: 2\n")
    with pytest.raises(AssertionError, match="stand twice"):
        table(str(tmp_path / "here.py"), "a", int)
