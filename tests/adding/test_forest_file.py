"""Files of XGBoost and LightGBM as users have them → model folders of backend FIL."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.models.folders import places_in
from tritonstack.adding.additions import Addition, AddOptions, parse_tensors
from tritonstack.adding.new_folder import write_folder
from tritonstack.adding.sources import read_source
from tritonstack.errors import InputError
from tritonstack.lint import ServingTarget
from tritonstack.models.model_config import read_config

FIXTURES = Path(__file__).with_name("fixtures")
CLASSES = {"output_class": "true", "threshold": "0.5", "predict_proba": "true"}


def _addition(path: Path, root: Path, options: AddOptions | None = None) -> Addition:
    with read_source(path, options or AddOptions(), places=places_in(root), report=lambda _: None) as (found,):
        return found


@pytest.mark.parametrize(
    ("fixture", "given", "file", "numbers", "parameters"),
    [
        ("forest.json", "loan.json", "xgboost.json", 2, {"model_type": "xgboost_json", **CLASSES}),
        ("forest.ubj", "loan.ubj", "xgboost.ubj", 3, {"model_type": "xgboost_ubj", **CLASSES}),
        ("forest.ubj", "loan.model", "xgboost.ubj", 3, {"model_type": "xgboost_ubj", **CLASSES}),
        ("forest.txt", "loan.txt", "model.txt", 1, {"model_type": "lightgbm", "output_class": "false"}),
    ],
)
def test_a_forest_becomes_a_folder_that_the_linter_passes_with_what_its_file_states(  # noqa: PLR0917  (a row of the table)
    tmp_path: Path, fixture: str, given: str, file: str, numbers: int, parameters: dict[str, str]
) -> None:
    path = Path(shutil.copy(FIXTURES / fixture, tmp_path / given))
    addition = _addition(path, tmp_path)
    config = read_config(addition.addressed.config)
    assert [(each.name, each.data_type, each.dims) for each in (*config.inputs, *config.outputs)] == [
        ("input__0", "FP32", (4,)),
        ("output__0", "FP32", (numbers,)),
    ]
    entries = config.node.entries("parameters").items()
    assert {
        key: entry if isinstance(entry, str) else entry.text("string_value") for key, entry in entries
    } == parameters
    assert addition.addressed.files == {f"1/{file}": path}
    added = write_folder(addition, places=places_in(tmp_path), target=None, report=lambda _: None)
    assert [each.rule for each in added.findings] == []


def test_what_cannot_be_proved_here_says_so_and_names_the_way_to_onnx(tmp_path: Path) -> None:
    addition = _addition(Path(shutil.copy(FIXTURES / "forest.json", tmp_path / "loan.json")), tmp_path)
    added = write_folder(addition, places=places_in(tmp_path), target=None, report=lambda _: None)
    assert added.recorded is None
    assert "the proof is skipped, for no server here runs it: the local Triton has no backend fil" in str(added.failure)
    assert added.remedy.startswith("write ")
    assert "onnxmltools.convert_xgboost(" in added.remedy
    assert added.remedy.endswith(" && tritonstack add loan.onnx --name loan-onnx")


def test_of_a_forest_that_has_no_onnx_form_no_way_to_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "loan.json"
    path.write_text((FIXTURES / "forest.json").read_text().replace('"name":"gbtree"', '"name":"dart"'))
    added = write_folder(_addition(path, tmp_path), places=places_in(tmp_path), target=None, report=lambda _: None)
    assert added.remedy.endswith("by what made the model")


def test_what_the_endpoints_release_does_not_read_is_said_too(tmp_path: Path) -> None:
    text = (FIXTURES / "forest.json").read_text().replace('"base_score":"', '"base_score":"[')
    path = tmp_path / "loan.json"
    path.write_text(text)
    addition = _addition(path, tmp_path)
    assert any("need release 26.01 or newer" in line for line in addition.unknown)
    target = ServingTarget.of_names(release="25.09", instance_type=None)
    added = write_folder(addition, places=places_in(tmp_path), target=target, report=lambda _: None)
    assert "whose base_score is a list [fil-file]" in str(added.failure)


@pytest.mark.parametrize(
    ("fixture", "old", "new", "found"),
    [
        ("forest.json", '"name":"gbtree"', '"name":"gblinear"', "booster gblinear"),
        ("forest.json", '"num_target":"1"', '"num_target":"2"', "a forest of 2 targets"),
        ("forest.json", '"num_feature":"4"', '"num_feature":"0"', "does not state how many features"),
        ("forest.json", '{"learner":', '{"settings":', "it has no learner"),
        ("forest.json", '"objective":', "", "a value without"),
        ("forest.txt", "is_linear=0", "is_linear=1", "linear functions in its leaves"),
        ("forest.txt", "max_feature_idx=3", "", "without max_feature_idx"),
        ("forest.tl", "", "", "a checkpoint of treelite"),
    ],
)
def test_what_no_release_serves_is_refused(tmp_path: Path, fixture: str, old: str, new: str, found: str) -> None:
    path = tmp_path / fixture
    path.write_bytes((FIXTURES / fixture).read_bytes().replace(old.encode(), new.encode()))
    with pytest.raises(InputError) as error:
        _addition(path, tmp_path)
    assert found in str(error.value)


def test_options_for_tensors_are_refused_for_the_file_states_them(tmp_path: Path) -> None:
    options = AddOptions(inputs=parse_tensors("--input", ["x:FP32:N,4"]))
    with pytest.raises(InputError, match="the file states its features"):
        _addition(FIXTURES / "forest.json", tmp_path, options)
