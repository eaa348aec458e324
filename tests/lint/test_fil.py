"""Forests of backend FIL: configurations against what the backend reads by release, and against their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases import cases
from tests.models.folders import write
from tritonstack.lint import ServingTarget, lint_folder
from tritonstack.model_files.forest_file import Forest, ForestError, forest_format, read_forest
from tritonstack.models.model_config import FIL_FILES

FIXTURES = Path(__file__).parents[1] / "adding/fixtures"
RULES = ("fil-", "parameter-", "backend-file", "model-file-content")
TYPES = {
    "forest.json": "xgboost_json",
    "forest.ubj": "xgboost_ubj",
    "forest.txt": "lightgbm",
    "forest.tl": "treelite_checkpoint",
}


def _parameters(given: dict[str, str]) -> str:
    return "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n' for name, value in given.items()
    )


def _tensors(features: int, numbers: int) -> str:
    return (
        f'input [ {{ name: "input__0" data_type: TYPE_FP32 dims: [ {features} ] }} ]\n'
        f'output [ {{ name: "output__0" data_type: TYPE_FP32 dims: [ {numbers} ] }} ]\n'
    )


def _found(
    root: Path, config: str, files: dict[str, bytes], release: str | None = None, *, batch: int = 8
) -> list[str]:
    write(root / "net", {"config.pbtxt": f'backend: "fil"\nmax_batch_size: {batch}\n{config}', "1/keep": ""})
    for name, content in files.items():
        (root / "net/1" / name).write_bytes(content)
    target = ServingTarget.of_names(release=release, instance_type=None) if release else None
    found = (each for each in lint_folder(root, target=target) if each.rule.startswith(RULES))
    return sorted(f"{each.rule}: {each.found}" for each in found)


def _begin(found: list[str], wanted: list[str]) -> bool:
    return len(found) == len(wanted) and all(map(str.startswith, found, wanted))


@cases("fixture, parameters, features, numbers, release, wanted")
def test_a_configuration_is_judged_as_the_releases_backend_does(  # noqa: PLR0917  (a row of the table)
    tmp_path: Path,
    fixture: str,
    parameters: dict[str, str],
    features: int,
    numbers: int,
    release: str | None,
    wanted: list[str],
) -> None:
    kind = TYPES[fixture]
    config = _tensors(features, numbers) + _parameters({"model_type": kind} | parameters)
    found = _found(tmp_path, config, {FIL_FILES[kind]: (FIXTURES / fixture).read_bytes()}, release)
    assert _begin(found, wanted), found


@cases("inputs, outputs, wanted")
def test_tensors_have_the_names_and_types_that_the_backend_requires(
    tmp_path: Path, inputs: str, outputs: str, wanted: list[str]
) -> None:
    config = f"{inputs}\n{outputs}\n{_parameters({'model_type': 'lightgbm', 'output_class': 'false'})}"
    found = _found(tmp_path, config, {"model.txt": (FIXTURES / "forest.txt").read_bytes()})
    assert _begin(found, wanted), found


@cases("fixture, old, new, release, wanted")
def test_a_file_is_one_that_the_releases_treelite_reads(  # noqa: PLR0917  (a row of the table)
    tmp_path: Path, fixture: str, old: str, new: str, release: str | None, wanted: str
) -> None:
    content = (FIXTURES / fixture).read_bytes()
    assert old.encode() in content
    config = _tensors(4, 1) + _parameters({"model_type": TYPES[fixture], "output_class": "false"})
    files = {FIL_FILES[TYPES[fixture]]: content.replace(old.encode(), new.encode())}
    found = _found(tmp_path, config, files, release)
    assert _begin(found, [wanted] if wanted else []), found


def test_fields_that_treelite_lacks_may_be_ignored(tmp_path: Path) -> None:
    given = {"model_type": "xgboost_json", "output_class": "false", "xgboost_allow_unknown_field": "true"}
    files = {"xgboost.json": (FIXTURES / "forest.json").read_bytes()}
    assert _found(tmp_path, _tensors(4, 1) + _parameters(given), files, "23.10") == []


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [("4", ["fil-dims: input__0 [4] with max_batch_size 0"]), ("-1, 4", []), ("-1, 5", ["fil-dims: "])],
)
def test_without_a_batch_the_input_has_an_axis_for_its_rows(tmp_path: Path, shape: str, wanted: list[str]) -> None:
    config = _tensors(4, 1).replace("[ 4 ]", f"[ {shape} ]") + _parameters(
        {"model_type": "lightgbm", "output_class": "false"}
    )
    files = {"model.txt": (FIXTURES / "forest.txt").read_bytes()}
    found = _found(tmp_path, config, files, batch=0)
    assert _begin(found, wanted), found


def test_what_a_wrong_configuration_needs_is_shown_as_it_is_written(tmp_path: Path) -> None:
    config = _tensors(4, 1) + _parameters({"output_class": "true"})
    write(tmp_path / "net", {"config.pbtxt": f'backend: "fil"\nmax_batch_size: 8\n{config}', "1/xgboost.json": ""})
    found = {each.rule: each for each in lint_folder(tmp_path)}
    assert found["backend-file"].advice == (
        'xgboost.json is there: parameters { key: "model_type" value { string_value: "xgboost_json" } }'
    )
    assert found["fil-required"].allowed == 'parameters { key: "threshold" value { string_value: "0.5" } }'


def test_a_file_by_another_name_is_named(tmp_path: Path) -> None:
    config = f"{_tensors(4, 1)}{_parameters({'model_type': 'xgboost_json', 'output_class': 'false'})}"
    write(tmp_path / "net", {"config.pbtxt": f'backend: "fil"\nmax_batch_size: 8\n{config}', "1/model.json": ""})
    (found,) = lint_folder(tmp_path)
    assert (found.found, found.advice) == ("no xgboost.json", 'default_model_filename: "model.json" loads it')


FOREST = {
    "forest.json": Forest(
        format="xgboost_json", features=4, classes=1, targets=1, objective="binary:logistic", booster="gbtree",
        version=(2, 1, 4),
    ),
    "forest.ubj": Forest(
        format="xgboost_ubj", features=4, classes=3, targets=1, objective="multi:softprob", booster="gbtree",
        version=(2, 1, 4),
    ),
    "forest.txt": Forest(format="lightgbm", features=4, classes=1, targets=1, objective="regression"),
    "forest.tl": Forest(format="treelite_checkpoint", features=4, classes=1, targets=1, version=(4, 4, 1)),
}  # fmt: skip


@pytest.mark.parametrize("fixture", FOREST)
def test_a_file_states_its_features_classes_and_objective(fixture: str) -> None:
    assert read_forest(FIXTURES / fixture) == FOREST[fixture]


def test_a_snapshot_holds_its_model_next_to_its_settings(tmp_path: Path) -> None:
    model = json.loads((FIXTURES / "forest.json").read_text())
    (tmp_path / "snapshot.json").write_text(json.dumps({"Config": {"learner": {"x": "1"}}, "Model": model}))
    assert read_forest(tmp_path / "snapshot.json") == FOREST["forest.json"]


@pytest.mark.parametrize("fixture", FOREST)
def test_a_file_that_is_cut_off_anywhere_ends_in_one_kind_of_error_or_less_knowledge(
    tmp_path: Path, fixture: str
) -> None:
    content = (FIXTURES / fixture).read_bytes()
    for length in range(1, len(content), 37):
        path = tmp_path / f"{length}-{fixture}"
        path.write_bytes(content[:length])
        try:
            read_forest(path)
        except ForestError:
            continue
        assert fixture in ("forest.txt", "forest.tl") or forest_format(path) is None


LARGE = b"\x7f" + b"\xff" * 7
HOSTILE = {
    "lists in lists": b"[" * 1_000_000,
    "objects in objects": b'{"a":' * 1_000_000,
    "a text without an end": b'{"a":"' + b"\\n" * 1_000_000,
    "brackets that do not match": b'{"a": [}',
    "no names": b"{1: 2}",
    "more items than bytes": b"{i\1a[$d#L" + LARGE,
    "items without bytes": b"{i\1a[$Z#L" + LARGE + b"}",
    "names without bytes": b"{i\1a{$Z#L" + LARGE,
    "lists of a kind": b"{i\1a[$[#L" + LARGE,
    "a negative length": b"{L" + b"\xff" * 8 + b"a",
    "binary lists in lists": b"{i\1a" + b"[" * 1_000_000,
    "nothing": b"{i\1a" + b"N" * 1_000_000,
    "a mark that is none": b"{i\1ax",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_ends_in_a_finding(tmp_path: Path, content: bytes) -> None:
    kind = forest_format(_written(tmp_path / "given", content)) or "xgboost_json"
    config = _tensors(4, 1) + _parameters({"model_type": kind, "output_class": "false"})
    (found,) = _found(tmp_path / "models", config, {FIL_FILES[kind]: content})
    assert found.startswith("model-file-content: "), found


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_a_file_with_more_brackets_than_are_read_has_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tritonstack.model_files.outline.MOST_TOKENS", 50)
    path = _written(tmp_path / "xgboost.json", (FIXTURES / "forest.json").read_bytes())
    assert read_forest(path) == Forest(format="xgboost_json")
