"""An engine's three phases, with the stand-ins: the GPU job's input, and results that are packed or refused."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engines.stand_ins import doubling_graph
from tests.models.folders import source_of, write
from tests.preparation.tiny_engine import FOLDER, TinyProject, output_of, task_of, write_real_output, write_tiny
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.manifest import Manifest, measurements_of, read_manifest
from tritonstack.naming import Platform
from tritonstack.preparation.export_step import EngineJob, EngineWork
from tritonstack_local.trtexec.launchers import machine_with, make_stand_ins

PACKED = {"tiny-engine/config.pbtxt", "tiny-engine/1/model.plan", "tiny-engine/1/model.plan.json"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> TinyProject:
    return TinyProject.make(tmp_path_factory.mktemp("project"))


@pytest.fixture
def work(project: TinyProject, tmp_path: Path) -> EngineWork:
    return project.export_step(tmp_path / "work")


@pytest.fixture(scope="module")
def exported(project: TinyProject, tmp_path_factory: pytest.TempPathFactory) -> EngineWork:
    """It, for tests that pack nothing."""
    return project.export_step(tmp_path_factory.mktemp("exported") / "work")


@pytest.fixture
def refused(exported: EngineWork, project: TinyProject) -> Iterator[EngineWork]:
    """It, without an output of the GPU step yet; at the end nothing of it was packed or taken away."""
    yield exported
    shutil.rmtree(output_of(_job(exported)), ignore_errors=True)
    assert not project.places.archives.exists()
    assert (exported.staged.repository / "tiny-engine/1/model.onnx").is_file()


def _job(work: EngineWork) -> EngineJob:
    (job,) = work.jobs
    return job


def _members(archive: Path) -> dict[str, int]:
    with tarfile.open(archive) as opened:
        return {member.name: member.size for member in opened if member.isfile()}


def test_the_stand_ins_plan_is_packed_in_the_graph_s_place_and_marked_as_theirs(
    project: TinyProject, work: EngineWork, tmp_path: Path
) -> None:
    status, log = project.phase_two(_job(work))
    assert status == 0, log
    manifest = project.pack_step(work, archives=tmp_path / "archives")

    (archive,) = (tmp_path / "archives/24.09-a10g").glob("*.tar.gz")
    members = _members(archive)
    assert set(members) == PACKED
    assert read_manifest(archive.with_name(archive.name.replace(".tar.gz", ".json"))) == manifest
    entry = manifest.engines["tiny-engine"]
    assert (entry.stand_in, manifest.plan, manifest.target) == (True, False, "24.09-a10g")
    assert (entry.plan, entry.bytes) == ("tiny-engine/1/model.plan", members["tiny-engine/1/model.plan"])
    assert (entry.tensorrt, entry.compute_capability, entry.driver) == ("10.4.0", "8.6", "0.0.stand-in")
    assert entry.inputs[0].model_dump() == {"name": "x", "datatype": "FP32", "min": (1, 4), "max": (8, 4)}
    assert "--fp16" in entry.options
    assert set(entry.durations) == {"build_seconds", "proof_seconds"}
    assert 0 <= entry.difference <= entry.tolerance == 1e-2
    assert manifest.figures["engine_difference"] == entry.difference
    assert any(line.startswith("trtexec-stand-in") for line in manifest.stand_ins)


def test_a_plan_of_tensorrt_is_a_plan(project: TinyProject, work: EngineWork, tmp_path: Path) -> None:
    write_real_output(_job(work))
    manifest = project.pack_step(work, archives=tmp_path / "archives")
    entry = manifest.engines["tiny-engine"]
    assert (manifest.plan, entry.stand_in, entry.cuda, entry.driver) == (True, False, "12.6.1.006", "550.127.05")
    assert entry.durations == {"build_seconds": 12.5, "proof_seconds": 2.0}
    assert not any(line.startswith("trtexec-stand-in") for line in manifest.stand_ins)
    assert Manifest.model_validate_json(manifest.to_json()) == manifest


def test_a_plan_of_another_graph_is_refused_with_tensor_and_difference(
    project: TinyProject, work: EngineWork, tmp_path: Path
) -> None:
    graph = bytearray((_job(work).folder / "model.onnx").read_bytes())
    weights = np.float32(np.random.default_rng(7).standard_normal((4, 3)))  # as the export draws them
    place = graph.index(weights.tobytes())
    graph[place : place + weights.nbytes] = (weights + np.float32(0.5)).tobytes()
    (_job(work).folder / "model.onnx").unlink()
    (_job(work).folder / "model.onnx").write_bytes(bytes(graph))
    assert project.phase_two(_job(work))[0] == 0
    message = r"engine of tiny-engine: tensor y: differs by up to 1\.\d+ from ONNX Runtime, 0\.01 allowed"
    with pytest.raises(WorkFailedError, match=message):
        project.pack_step(work, archives=tmp_path / "archives")
    assert not (tmp_path / "archives").exists()


def _write_result(output: Path, **changes: Any) -> None:
    result = json.loads((output / "result.json").read_text())
    for key, value in changes.items():
        result[key] = {**result[key], **value} if isinstance(value, dict) else value
    (output / "result.json").write_text(json.dumps(result))


def _rewrite(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda output: (output / name).write_bytes(change((output / name).read_bytes()))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a truncated plan": (
        _rewrite("model.plan", lambda plan: plan[:-1]),
        r"model\.plan is not what the engine step wrote: 21 bytes",
    ),
    "another answer": (
        _rewrite("outputs.json", lambda outputs: outputs.replace(b"y", b"z")),
        r"outputs\.json is not what the engine step wrote",
    ),
    "no response": (lambda output: (output / "outputs.json").unlink(), "left no such file"),
    "a stand-in without its mark": (lambda o: _write_result(o, trtexec={"stand_in": True}), "no stand-in's mark"),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_an_output_that_is_not_the_step_s_is_refused_and_nothing_is_packed(
    project: TinyProject, refused: EngineWork, change: Callable[[Path], object], message: str
) -> None:
    change(write_real_output(_job(refused)))
    with pytest.raises(WorkFailedError, match=message):
        project.pack_step(refused)


def test_engine_tolerance_replaces_the_samples_and_changes_no_export(tmp_path: Path, project: TinyProject) -> None:
    here = replace(project, places=replace(write_tiny(tmp_path), exports=project.places.exports))
    _edit(here, "workspace_mib: 64", "workspace_mib: 64\n  tolerance: 0.5")
    before = sorted(path.name for path in project.places.exports.iterdir())
    job = _job(here.export_step(tmp_path / "work"))
    assert job.tolerance == 0.5
    assert sorted(path.name for path in project.places.exports.iterdir()) == before


def _edit(project: TinyProject, old: str, new: str) -> None:
    recipe = project.places.folder("tiny-engine") / "recipe.yaml"
    assert old in recipe.read_text()
    recipe.write_text(recipe.read_text().replace(old, new))


@pytest.fixture
def fresh(project: TinyProject, tmp_path: Path) -> TinyProject:
    """A project of its own for tests that change the folder."""
    return TinyProject(tmp_path, write_tiny(tmp_path), project.programs)


TWO_PROFILES = """- x: {min: [1, 4], opt: [1, 4], max: [1, 4]}
    - x: {min: [2, 4], opt: [4, 4], max: [8, 4]}"""


def _use_two_profiles(project: TinyProject) -> None:
    _edit(project, "x: {min: [1, 4], opt: [4, 4], max: [8, 4]}", TWO_PROFILES)
    config = project.places.folder("tiny-engine") / "tiny-engine/config.pbtxt"
    config.write_text(config.read_text().replace("kind: KIND_GPU", 'kind: KIND_GPU profile: [ "0", "1" ]'))


def test_an_engine_with_several_profiles_is_proven_and_measured_with_each(fresh: TinyProject, tmp_path: Path) -> None:
    _use_two_profiles(fresh)
    work = fresh.export_step(tmp_path / "work")
    job = _job(work)
    shapes = [each["x"]["shape"] for each in (job.job["inputs"], *job.job["more_inputs"])]
    assert shapes == [[1, 4], [2, 4]], "the sample request is a batch of 2: profile 0 gets random numbers"
    assert job.job["measure"] == {"seconds": 3, "shapes": [{"x": [1, 4]}, {"x": [4, 4]}]}
    measured = [
        {"profile": n, "shapes": {"x": [batch, 4]}, "throughput": 9.5, "latency": {"p99": 2}, "gpu_compute": {"p99": 1}}
        for n, batch in ((0, 1), (1, 4))
    ]
    write_real_output(job, measurements=measured)
    manifest = fresh.pack_step(work)
    (bound,) = manifest.engines["tiny-engine"].inputs
    assert (bound.min, bound.max) == ((1, 4), (8, 4))
    found = measurements_of(manifest.figures)
    assert [(each.profile, each.batch, each.throughput, each.latency) for each in found] == [
        (0, 1, 9.5, {"p99": 2}),
        (1, 4, 9.5, {"p99": 2}),
    ]
    assert Manifest.model_validate_json(manifest.to_json()) == manifest


def test_the_stand_in_builds_and_proves_an_engine_with_several_profiles(fresh: TinyProject, tmp_path: Path) -> None:
    _use_two_profiles(fresh)
    work = fresh.export_step(tmp_path / "work")
    status, log = fresh.phase_two(_job(work))
    assert status == 0, log
    manifest = fresh.pack_step(work)
    assert "--profile=1" in manifest.engines["tiny-engine"].options
    assert measurements_of(manifest.figures) == (), "a stand-in has no speed"


def test_a_profile_with_another_result_is_refused_by_its_number(fresh: TinyProject, tmp_path: Path) -> None:
    _use_two_profiles(fresh)
    work = fresh.export_step(tmp_path / "work")
    output = write_real_output(_job(work))
    wrong = json.loads((output / "outputs1.json").read_text())
    wrong[0]["values"][0] += 1
    content = json.dumps(wrong).encode()
    (output / "outputs1.json").write_bytes(content)
    files = json.loads((output / "result.json").read_text())["files"]
    files["outputs1.json"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    _write_result(output, files=files)
    with pytest.raises(WorkFailedError, match="engine of tiny-engine, profile 1: tensor y: differs"):
        fresh.pack_step(work)


def test_what_has_no_engine_in_its_recipe_is_refused(fresh: TinyProject, tmp_path: Path) -> None:
    text = (fresh.places.folder("tiny-engine") / "recipe.yaml").read_text()
    start, end = text.index("engine:\n"), text.index("sample:\n")
    (fresh.places.folder("tiny-engine") / "recipe.yaml").write_text(text[:start] + text[end:])
    with pytest.raises(InputError, match="tiny-engine has neither a plan nor engine:"):
        fresh.export_step(tmp_path / "work")


def test_two_versions_without_a_plan_are_refused(fresh: TinyProject, tmp_path: Path) -> None:
    _edit(fresh, "tiny-engine/1/model.onnx,", "tiny-engine/1/model.onnx, tiny-engine/2/model.onnx,")
    script = fresh.places.folder("tiny-engine") / "export.py"
    copied = '(path.parents[1] / "2").mkdir()\n    (path.parents[1] / "2/model.onnx").write_bytes(path.read_bytes())\n'
    script.write_text(script.read_text().replace("    with np.load", f"    {copied}    with np.load"))
    with pytest.raises(InputError, match="with the versions 1, 2, of which 2 have an ONNX graph"):
        fresh.export_step(tmp_path / "work")


def test_an_engine_of_a_used_folder_is_built_from_its_recipe_and_proven_with_seeded_numbers(
    fresh: TinyProject, tmp_path: Path
) -> None:
    _write_user(fresh)
    works = [fresh.export_step(tmp_path / name, task_of(fresh.places, "user")) for name in ("a", "b")]
    jobs = [_job(work) for work in works]
    assert [(job.model, job.proof, job.inputs["x"].shape) for job in jobs] == [("tiny-engine", "random", (1, 4))] * 2
    assert np.array_equal(jobs[0].inputs["x"], jobs[1].inputs["x"])
    assert fresh.phase_two(jobs[0])[0] == 0
    manifest = fresh.pack_step(works[0])
    assert manifest.engines["tiny-engine"].proof == "random"
    assert "tiny-engine/1/model.plan" in _members(fresh.places.archive(works[0].staged.task.name, "24.09-a10g"))


def _write_user(project: TinyProject) -> None:
    """A folder with an ensemble around ``tiny-engine``."""
    folder = project.places.folder("user")
    sample = (FOLDER / "sample/request.json").read_text().replace('"x"', '"X"')
    outputs = {"outputs": [{"name": "Y", "datatype": "FP32", "shape": [2, 3], "data": [0.0] * 6}]}
    config = """name: "user"
platform: "ensemble"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 3 ] } ]
ensemble_scheduling { step [ {
  model_name: "tiny-engine" model_version: -1
  input_map { key: "x" value: "X" } output_map { key: "y" value: "Y" }
} ] }
"""
    recipe = """description: An ensemble around an engine.
kind: ensemble
dependency: engine
uses: [{folder: tiny-engine, models: [tiny-engine]}]
sample: {request: sample/request.json, answer: sample/answer.json}
"""
    write(folder, {"recipe.yaml": recipe, "user/config.pbtxt": config})
    write(folder, {"sample/request.json": sample, "sample/answer.json": json.dumps(outputs)})
    assert source_of(folder).recipe.uses


def test_weights_in_a_file_of_their_own_go_with_the_graph_and_make_room_for_the_plan(
    fresh: TinyProject, tmp_path: Path
) -> None:
    folder = fresh.places.folder("tiny-engine")
    script = (folder / "export.py").read_text()
    saved = "onnx.save(graph(weights, bias, options['graph']), path, save_as_external_data=True, size_threshold=0,"
    saved += " location='weights.bin')"
    line = 'path.write_bytes(graph(weights, bias, options["graph"]).SerializeToString(deterministic=True))'
    assert line in script
    (folder / "export.py").write_text(script.replace(line, saved))
    _edit(fresh, "tiny-engine/1/model.onnx,", "tiny-engine/1/model.onnx, tiny-engine/1/weights.bin,")
    work = fresh.export_step(tmp_path / "work")
    assert {"model.onnx", "weights.bin"} <= {path.name for path in _job(work).folder.iterdir()}
    assert set(_job(work).parts) == {"model.onnx", "weights.bin"}
    write_real_output(_job(work))
    fresh.pack_step(work)
    assert set(_members(fresh.places.archive(work.staged.task.name, "24.09-a10g"))) == PACKED


DOUBLING = """name: "doubling"
platform: "tensorrt_plan"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] }, { name: "k" data_type: TYPE_INT32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] }, { name: "m" data_type: TYPE_INT32 dims: [ 3 ] } ]
"""
DOUBLING_RECIPE = """description: Doubles numbers, whole ones too.
kind: tensorrt
dependency: engine
engine:
  shapes: {x: {min: [1, 3], opt: [2, 3], max: [8, 3]}, k: {min: [1, 3], opt: [2, 3], max: [8, 3]}}
sample: {request: sample/request.json, answer: sample/answer.json}
"""


def _row(name: str, datatype: str, values: list[float]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [1, 3], "data": values}


def test_before_tensorrt_10_the_engine_has_int32_where_the_graph_has_int64(fresh: TinyProject, tmp_path: Path) -> None:
    folder = fresh.places.folder("doubling")
    request = {"inputs": [_row("x", "FP32", [1, 2, 0.5]), _row("k", "INT32", [1, -2, 3])]}
    outputs = {"outputs": [_row("y", "FP32", [2, 4, 1]), _row("m", "INT32", [2, -4, 6])]}
    write(folder, {"recipe.yaml": DOUBLING_RECIPE, "doubling/config.pbtxt": DOUBLING})
    write(folder, {"sample/request.json": json.dumps(request), "sample/answer.json": json.dumps(outputs)})
    (folder / "doubling/1").mkdir()
    (folder / "doubling/1/model.onnx").write_bytes(doubling_graph())
    machine = machine_with(tensorrt="8.6.1", gpu="A10G", compute_capability="8.6")
    older = replace(fresh, programs=make_stand_ins(tmp_path / "older", machine))

    work = older.export_step(
        tmp_path / "work", task_of(fresh.places, "doubling", Platform(release="23.10", gpu="a10g"))
    )
    assert _job(work).inputs["k"].dtype == np.int64
    assert (_job(work).folder / "input1.raw").stat().st_size == 12
    status, log = older.phase_two(_job(work))
    assert status == 0, log
    entry = older.pack_step(work).engines["doubling"]
    assert {tensor.name: tensor.datatype for tensor in (*entry.inputs, *entry.outputs)} == {
        "x": "FP32",
        "k": "INT32",
        "y": "FP32",
        "m": "INT32",
    }
    assert (entry.tensorrt, entry.difference, entry.tolerance) == ("8.6.1", 0, 0)
