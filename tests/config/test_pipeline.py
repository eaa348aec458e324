"""A pipeline's file: its settings, and which values are refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from tests.e2e.project import environment_yaml
from tritonstack.config.pipeline import LoadedPipeline, Pipeline, load_pipeline
from tritonstack.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
ENDPOINT = (
    '{name: digits, mode: multi-model, release: "24.09", instance_type: ml.g4dn.xlarge, initial_instance_count: 2, '
    "models: [digits-onnx]}"
)
CONNECTION = "arn:aws:codeconnections:us-east-1:123456789012:connection/11111111-2222-3333-4444-555555555555"


def document(**changed: Any) -> dict[str, Any]:
    """A pipeline over two environments."""
    return {
        "account": "123456789012",
        "region": "us-east-1",
        "source": {"connection": CONNECTION, "repository": "shop/models"},
        "stages": [{"environment": "first"}, {"environment": "second"}],
        **changed,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two environments, the second one production, and one in China."""
    folder = tmp_path_factory.mktemp("environments")
    for name in ("first", "second", "beijing"):
        text = environment_yaml(name=name, endpoints=[ENDPOINT])
        if name == "second":
            text = text.replace("production: false", "production: true")
        if name == "beijing":
            text = text.replace("us-east-1", "cn-north-1")
        (folder / f"{name}.yaml").write_text(text)
    return folder


def loaded(value: dict[str, Any], folder: Path) -> LoadedPipeline:
    """The settings of a file with this content."""
    file = folder.parent / "pipeline.yaml"
    file.write_text(yaml.safe_dump(value, sort_keys=False))
    return load_pipeline(file, environments=folder)


def refused(value: dict[str, Any], folder: Path) -> dict[str, str]:
    """Field → what was found and what is allowed there."""
    with pytest.raises(InputError) as raised:
        loaded(value, folder)
    return {each.field: f"{each.found} | {each.allowed} | {each.advice}" for each in raised.value.problems}


def test_the_committed_pipeline_deploys_dev_then_prod_after_an_approval() -> None:
    pipeline = load_pipeline(ROOT / "pipeline.yaml", environments=ROOT / "environments")
    assert [(stage.environment.environment, stage.approved) for stage in pipeline.stages] == [
        ("dev", False),
        ("staging", False),
        ("prod", True),
    ]


def test_the_documented_file_is_taken(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "pipeline.md").read_text()
    file = tmp_path / "pipeline.yaml"
    file.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    pipeline = load_pipeline(file, environments=ROOT / "environments")
    gates = pipeline.stages[1].settings.gates
    assert [gate.name for gate in gates] == ["load-test", "responses"]
    assert pipeline.stages[1].measured


def test_production_is_approved_unless_the_file_turns_it_off(folder: Path) -> None:
    assert [stage.approved for stage in loaded(document(), folder).stages] == [False, True]
    chosen = document(stages=[{"environment": "first", "approval": True}, {"environment": "second", "approval": False}])
    assert [stage.approved for stage in loaded(chosen, folder).stages] == [True, False]


def test_every_mistake_is_reported_at_once(folder: Path) -> None:
    wrong = document(
        account=123456789012,
        source={"connection": "arn:of:nothing", "repository": "alone", "brnach": "main"},
        stages=[{"environment": "second", "gates": [{"name": "a"}]}],
    )
    found = refused(wrong, folder)
    assert set(found) == {"account", "source.connection", "source.repository", "source.brnach", "stages[0].gates[0]"}
    assert "Did you mean branch?" in found["source.brnach"]
    gates = [{"name": "b", "commands": ["f"]}, {"name": "b", "commands": ["g"]}]
    stages = [{"environment": "frist"}, {"environment": "second"}, {"environment": "second", "gates": gates}]
    found = refused(document(region="eu-wst-1", stages=stages), folder)
    assert set(found) >= {"region", "stages[0].environment", "stages", "stages[2].gates"}
    assert "Did you mean eu-west-1" in found["region"]
    assert "Did you mean first?" in found["stages[0].environment"]


def test_a_gate_that_measures_needs_limits_in_its_environment(folder: Path) -> None:
    gates = [{"name": "load-test", "load_test": {}}]
    found = refused(document(stages=[{"environment": "first", "gates": gates}]), folder)
    assert "no load_test.gate in environments/first.yaml" in found["stages[0].gates[0].load_test"]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (
            {"stages": [{"environment": "first", "gates": [{"name": "a", "commands": ["true"], "load_test": {}}]}]},
            "stages[0].gates[0]",
            "either commands or load_test",
        ),
        ({"stages": [{"environment": "beijing"}]}, "stages[0].environment", "beijing is in cn-north-1"),
    ],
    ids=["gate of commands and a load test", "another region"],
)
def test_what_cannot_be_is_refused(folder: Path, changes: dict[str, Any], field: str, words: str) -> None:
    assert words in refused(document(**changes), folder)[field]


@pytest.fixture
def measured(folder: Path, tmp_path: Path) -> Path:
    """The same environments; the first has load tests of its one endpoint."""
    made = tmp_path / "environments"
    shutil.copytree(folder, made)
    with (made / "first.yaml").open("a") as file:
        file.write("load_test: {gate: {p95_ms: 100}}\n")
    return made


def test_a_gate_that_measures_is_taken_with_hours_for_it(measured: Path) -> None:
    gates = [
        {"name": "all", "load_test": {}},
        {"name": "short", "load_test": {}, "timeout_minutes": 90},
        {"name": "sound", "commands": ["true"]},
    ]
    [stage, _] = loaded(
        document(stages=[{"environment": "first", "gates": gates}, {"environment": "second"}]), measured
    ).stages
    assert [gate.minutes for gate in stage.settings.gates] == [480, 90, 60]
    assert stage.measured


def test_the_errors_of_an_environment_are_reported_with_those_of_the_pipeline(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "first.yaml").write_text("environment: first\n")
    found = refused(document(stages=[{"environment": "first"}]), tmp_path / "environments")
    assert {"account", "region", "endpoints"} <= set(found)


def test_a_missing_file_is_an_error_that_names_the_page_about_pipelines(folder: Path) -> None:
    with pytest.raises(InputError, match=r"tritonstack docs pipeline"):
        load_pipeline(folder / "none.yaml", environments=folder)


VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=12), inner, max_size=3),
    max_leaves=6,
)


@given(field=some.sampled_from(sorted(Pipeline.model_fields)), value=VALUES)
def test_any_value_of_any_field_is_taken_or_refused_with_its_field(folder: Path, field: str, value: object) -> None:
    try:
        loaded(document(**{field: value}), folder)
    except InputError as error:
        assert error.problems
        assert all(each.found and each.allowed for each in error.problems)
        assert any(each.field.startswith(field) or not each.field for each in error.problems)
