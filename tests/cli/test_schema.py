"""``tritonstack schema``."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from tritonstack.cli.schema import command, schema_names, schema_text
from tritonstack.errors import InputError

COMMITTED = Path(__file__).parents[2] / "schemas"


@pytest.mark.parametrize("name", schema_names())
def test_the_committed_schema_is_current_and_is_draft_2020_12(name: str) -> None:
    text = (COMMITTED / f"{name}.schema.json").read_text(encoding="utf-8")
    assert text == schema_text(name), "run `tritonstack schema` and commit the result"
    document = json.loads(text)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(document)


def test_schemas_are_written_whole_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    runner = CliRunner()
    first = runner.invoke(command, ["--folder", str(tmp_path / "new")], catch_exceptions=False)
    assert first.output.count(": written") == len(schema_names())
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(
        f"{n}.schema.json" for n in schema_names()
    )
    some = runner.invoke(command, ["recipe", "--folder", str(tmp_path / "some")], catch_exceptions=False)
    assert some.output == f"{tmp_path}/some/recipe.schema.json: written\n"
    with pytest.raises(InputError, match=r"(?s)found:   recipes.*Did you mean recipe"):
        runner.invoke(command, ["recipes"], catch_exceptions=False)
    second = runner.invoke(command, ["--folder", str(tmp_path / "new")], catch_exceptions=False)
    assert second.output.count(": unchanged") == len(schema_names())
