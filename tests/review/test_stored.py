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
    Findings,
    Json,
    Snapshots,
    StackSnapshot,
    assets_of,
    assets_text,
    findings_of,
    findings_text,
    stack_of,
    stack_text,
    text_of,
)
from tritonstack.review.stored import read_snapshots, texts_of, write_snapshots
from tritonstack.review.write import out_of_date

FINDINGS = Findings(
    open=(Finding(stack="serving", path="Topic", rule="R1", severity="error", description="d"),),
    accepted=(Finding(stack="serving", path="Role", rule="R2", accepted="Because."),),
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


def test_a_second_run_touches_nothing(tmp_path: Path) -> None:
    write_snapshots(example(), tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert write_snapshots(example(), tmp_path) == ()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_files_of_what_is_gone_are_removed_and_others_stay(tmp_path: Path) -> None:
    write_snapshots(example(), tmp_path)
    write_snapshots(of(stack({}, name="old"), environment="old"), tmp_path / "beside")
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "dev" / "gone.json").write_text("{}")
    touched = write_snapshots(example(), tmp_path)
    assert touched == ("beside/old/assets.json", "beside/old/old.json", "dev/gone.json")
    assert (tmp_path / "README.md").is_file()


def test_findings_stay_where_nothing_is_known_of_them(tmp_path: Path) -> None:
    write_snapshots(example(), tmp_path)
    unknown = of(*example().environments["dev"].stacks.values())
    assert write_snapshots(unknown, tmp_path) == ()
    assert read_snapshots(tmp_path).environments["dev"].findings == FINDINGS
    assert out_of_date(unknown, tmp_path) == []


@settings(max_examples=50)
@given(stacks())
def test_any_stack_reads_as_it_was_written(one: StackSnapshot) -> None:
    assert stack_of(one.name, json.loads(stack_text(one)), one.assets) == one


@given(json_values())
def test_the_layout_is_json_and_ends_with_a_newline(value: Json) -> None:
    text = text_of(value)
    assert json.dumps(json.loads(text)) == json.dumps(value)
    assert text.endswith("\n")


def test_each_property_has_a_line_of_its_own() -> None:
    text = text_of({"Statement": [{"Action": ["a", "b"], "Condition": {"StringEquals": {"x": ["y"]}}, "Sid": "R"}]})
    assert text.splitlines() == [
        "{",
        '  "Statement": [',
        "    {",
        '      "Action": ["a", "b"],',
        '      "Condition": {"StringEquals": {"x": ["y"]}},',
        '      "Sid": "R"',
        "    }",
        "  ]",
        "}",
    ]


def test_assets_read_as_they_were_written() -> None:
    [environment] = example().environments.values()
    assert assets_of(json.loads(assets_text(environment))) == {"serving": code("Handler/Code", handler="1")}


def test_a_reason_stands_once_for_all_that_it_is_given_for() -> None:
    accepted = tuple(
        Finding(stack="serving", path=path, rule=rule, accepted="Because.")
        for path, rule in (("A", "R1"), ("A", "R2"), ("B/C", "R1"))
    )
    text = findings_text(Findings(open=(), accepted=accepted))
    assert json.loads(text)["Accepted"] == [
        {"Rule": "R1", "Reason": "Because.", "On": ["serving/A", "serving/B/C"]},
        {"Rule": "R2", "Reason": "Because.", "On": ["serving/A"]},
    ]
    assert findings_of(json.loads(text)) == Findings(open=(), accepted=accepted)


def test_a_stack_that_is_called_as_another_file_is_refused() -> None:
    with pytest.raises(InputError, match="dev/findings"):
        texts_of(of(stack({}, name="findings")))


def test_a_folder_without_snapshots_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="make snapshots"):
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


def test_files_that_differ_are_out_of_date(tmp_path: Path) -> None:
    write_snapshots(example(), tmp_path)
    assert out_of_date(example(), tmp_path) == []
    assert out_of_date(example(image="triton:24.10"), tmp_path) == ["dev/serving.json"]
    (tmp_path / "dev" / "more.json").write_text("{}")
    (tmp_path / "dev" / "assets.json").write_text((tmp_path / "dev" / "assets.json").read_text() + "\n")
    (tmp_path / "dev" / "serving.json").unlink()
    assert out_of_date(example(), tmp_path) == ["dev/assets.json", "dev/more.json", "dev/serving.json"]
