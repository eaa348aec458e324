"""The folder of snapshots: what is written reads the same, and nothing else stays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.review.small import code, of, resource, serving, stack
from tests.review.values import json_values, stacks
from tritonstack.errors import InputError
from tritonstack.review.snapshot import (
    PIPELINE,
    TOP_LEVEL,
    EnvironmentSnapshot,
    Finding,
    Findings,
    Json,
    Snapshots,
    StackSnapshot,
    added_by_pipeline,
    joined,
    stack_of,
    stack_text,
    text_of,
    without,
)
from tritonstack.review.stored import read_snapshots, write_snapshots

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


def test_findings_stay_where_nothing_is_known_of_them(tmp_path: Path) -> None:
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


# Environments and what a pipeline adds to them, as one.


def environments(environments: Mapping[str, tuple[str, ...]], *, known: bool = True) -> Snapshots:
    """Environments of these stacks, with a finding that is accepted and one that stands open in each."""
    return Snapshots(
        environments={
            name: EnvironmentSnapshot(
                name=name,
                stacks={each: stack({"A": resource("AWS::SNS::Topic")}, name=each) for each in stacks},
                findings=findings(*stacks) if known else None,
            )
            for name, stacks in environments.items()
        }
    )


def findings(*stacks: str) -> Findings:
    return Findings(
        open=tuple(Finding(stack=each, path="A", rule="B") for each in sorted(stacks)),
        accepted=tuple(Finding(stack=each, path="A", rule="C", accepted="So.") for each in sorted(stacks)),
    )


WHOLE = environments({TOP_LEVEL: ("pipeline",), "dev": ("pipeline-access", "serving"), "local": ("serving",)})


def test_a_part_has_its_stacks_and_their_findings_and_the_rest_has_the_others() -> None:
    part = added_by_pipeline(WHOLE)
    assert part == environments({TOP_LEVEL: ("pipeline",), "dev": ("pipeline-access",)})
    assert without(WHOLE, part) == environments({"dev": ("serving",), "local": ("serving",)})


def test_joined_they_are_one_again_and_the_pipeline_has_a_name() -> None:
    part = added_by_pipeline(WHOLE)
    both = joined(without(WHOLE, part), part)
    assert list(both.environments) == ["dev", "local", PIPELINE]
    assert both.environments["dev"] == WHOLE.environments["dev"]
    assert (both.environments[PIPELINE].name, list(both.environments[PIPELINE].stacks)) == (PIPELINE, ["pipeline"])
    assert both.environments[PIPELINE].findings == findings("pipeline")


def test_findings_of_one_part_alone_are_those_of_the_environments() -> None:
    own, unknown = environments({"dev": ("serving",)}), environments({"dev": ("pipeline-access",)}, known=False)
    assert joined(own, unknown).environments["dev"].findings == findings("serving")
    assert joined(unknown, own).environments["dev"].findings is None
