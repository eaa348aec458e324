"""The folder of snapshots: what is written reads the same, and nothing else stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.review.small import code, of, resource, serving, stack
from tests.review.values import json_values, stacks
from tritonstack.errors import InputError
from tritonstack.review.snapshot import (
    Finding,
    Json,
    Snapshots,
    StackSnapshot,
    stack_of,
    stack_text,
    text_of,
)
from tritonstack.review.stored import read_snapshots, write_snapshots

FINDINGS = (
    Finding(stack="serving", path="Role", rule="R2", accepted="Because."),
    Finding(stack="serving", path="Topic", rule="R1", severity="error", description="d"),
)


def example(image: str = "triton:24.09") -> Snapshots:
    template = {**serving(image=image), "Role": resource("AWS::IAM::Role", DeletionPolicy="Retain")}
    made = stack(
        template,
        sections={"Outputs": {"A": {"Value": "1"}}, "Description": "d"},
        tags={"team": "a"},
        documents={"Set": {"models": {"a": "1"}}},
        assets=code("Handler/Code", handler="1"),
    )
    return of(made, findings=FINDINGS)


def test_what_is_written_reads_the_same(tmp_path: Path) -> None:
    assert write_snapshots(example(), tmp_path) == ("dev/assets.json", "dev/findings.json", "dev/serving.json")
    assert read_snapshots(tmp_path) == example()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert write_snapshots(example(), tmp_path) == (), "a second run touches nothing"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_files_of_what_is_gone_are_removed_and_others_stay(tmp_path: Path) -> None:
    write_snapshots(example(), tmp_path)
    write_snapshots(of(stack({}, name="old"), environment="old"), tmp_path / "beside")
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "dev" / "gone.json").write_text("{}")
    touched = write_snapshots(example(), tmp_path)
    assert touched == ("beside/old/assets.json", "beside/old/old.json", "dev/gone.json")
    assert (tmp_path / "README.md").is_file()


def test_findings_stay_where_they_are_unknown_on_one_side(tmp_path: Path) -> None:
    write_snapshots(example(), tmp_path)
    unknown = of(*example().environments["dev"].stacks.values())
    assert write_snapshots(unknown, tmp_path) == ()
    assert read_snapshots(tmp_path).environments["dev"].findings == FINDINGS


@settings(max_examples=50)
@given(stacks())
def test_any_stack_reads_as_it_was_written(one: StackSnapshot) -> None:
    assert stack_of(one.name, json.loads(stack_text(one)), one.assets) == one


@given(json_values())
def test_the_layout_is_json_and_ends_with_a_newline(value: Json) -> None:
    text = text_of(value)
    assert json.dumps(json.loads(text)) == json.dumps(value)
    assert text.endswith("\n")


def test_a_folder_without_snapshots_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tritonstack snapshots"):
        read_snapshots(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [("serving.json", "{"), ("serving.json", "{}"), ("serving.json", "[]"), ("assets.json", '{"serving": {"a": {}}}')],
)
def test_a_file_that_is_no_snapshot_is_refused_by_name(tmp_path: Path, name: str, text: str) -> None:
    write_snapshots(example(), tmp_path)
    (tmp_path / "dev" / name).write_text(text)
    with pytest.raises(InputError, match="dev"):
        read_snapshots(tmp_path)
