"""Fields that Triton's core takes by release, by backend and by the directory's name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cases import cases
from tests.models.folders import CONFIG, MODEL, write
from tritonstack.catalogue import load_catalogue, release_order
from tritonstack.lint import ServingTarget, lint_folder
from tritonstack.models.model_config import first_releases, message_fields

RELEASES = sorted(load_catalogue().releases, key=release_order)


def _rules(folder: Path, release: str | None = None, *, multi_model: bool | None = None) -> list[str]:
    target = ServingTarget.of_names(release=release, instance_type=None) if release else None
    target = replace(target, multi_model=multi_model) if target else None
    return [finding.rule for finding in lint_folder(folder, target=target) if finding.level == "error"]


def _double(root: Path, *lines: str, config: str = CONFIG) -> Path:
    text = config + "".join(f"{line}\n" for line in lines)
    write(root / "r", {"double/config.pbtxt": text, "double/1/model.py": MODEL})
    return root / "r"


def test_the_fields_that_not_every_release_has_are_fields_of_the_messages() -> None:
    pairs = [name.rpartition(".") for name in first_releases()]
    assert [name for message, _, name in pairs if name not in message_fields(message)] == []


@cases("text, since")
def test_a_field_is_refused_for_releases_before_its_first_one(tmp_path: Path, text: str, since: str) -> None:
    config = CONFIG
    if text.startswith("input"):
        config, text = CONFIG.replace('name: "x"', f'name: "x" {text.removeprefix("input ")}'), ""
    folder = _double(tmp_path, text, config=config)
    refused = [release for release in RELEASES if "field-newer" in _rules(folder, release)]
    assert refused == [release for release in RELEASES if release_order(release) < release_order(since)]
    assert refused
    assert "field-newer" not in _rules(folder)


@cases("backend, runtime, release, is_refused")
def test_a_runtime_is_the_backends_library_or_the_program_of_a_backend_written_in_python(
    tmp_path: Path, backend: str, runtime: str, release: str, *, is_refused: bool
) -> None:
    config = CONFIG.replace('"python"', f'"{backend}"')
    folder = _double(tmp_path, f'runtime: "{runtime}"', config=config)
    write(folder, {"double/libtop.so": "", "double/1/libversion.so": "", "double/lib/libdeep.so": ""})
    assert ("runtime" in _rules(folder, release)) == is_refused


ENSEMBLE = """\
platform: "ensemble"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step { model_name: "STEP" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }
"""
BARE = """\
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""


@cases("name, of_step, multi_model, is_refused")
def test_a_folder_s_name_may_name_its_backend_but_not_of_the_model_named_like_the_archive(
    tmp_path: Path, name: str, *, of_step: bool, multi_model: bool, is_refused: bool
) -> None:
    files = {f"{name}/config.pbtxt": BARE, f"{name}/1/model.dali": "x"}
    if of_step:
        files |= {"all/config.pbtxt": ENSEMBLE.replace("STEP", name), "all/1/.gitkeep": ""}
    write(tmp_path / "r", files)
    assert ("backend-missing" in _rules(tmp_path / "r", "24.09", multi_model=multi_model)) == is_refused


@pytest.mark.parametrize("directory", ["notes.old", "decode.dali"])
def test_a_folder_without_a_configuration_is_a_model_where_its_name_has_an_existing_backend(
    tmp_path: Path, directory: str
) -> None:
    folder = _double(tmp_path)
    write(folder, {f"{directory}/1/model.dali": "x"})
    found = {finding.rule for finding in lint_folder(folder) if finding.file.name == directory}
    assert found == ({"directory-without-config"} if directory == "notes.old" else set())


COMPLETES = f"""{MODEL}
    @staticmethod
    def auto_complete_config(config):
        config.add_input({{"name": "ragged", "data_type": "TYPE_FP32", "dims": [-1]}})
        return config
"""


def test_a_source_that_a_program_may_complete_is_no_finding(tmp_path: Path) -> None:
    line = 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 source_input: "ragged" }'
    folder = _double(tmp_path, line)
    assert _rules(folder) == ["batch-tensor"]
    write(folder, {"double/1/model.py": COMPLETES})
    assert _rules(folder) == []


@cases("control, lacks")
def test_a_metric_lacks_what_the_core_requires(tmp_path: Path, control: str, lacks: list[str]) -> None:
    folder = _double(tmp_path, f"model_metrics {{ metric_control {{ {control} }} }}")
    found = [finding.found for finding in lint_folder(folder) if finding.rule == "model-metrics"]
    assert sorted(found) == [f"metric_control without {name}" for name in lacks]
