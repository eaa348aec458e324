"""The one edit of ``config.pbtxt``, and that nothing else changes."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cases import cases
from tests.environments import needs
from tests.models.folders import write
from tests.tritonstack_local.container.conftest import SageMaker
from tests.tritonstack_local.fake_parts import wait_for
from tritonstack.archives.execution_environment import activate_script
from tritonstack.models.pbtxt import parse, to_text
from tritonstack_local.container import TritonFiles, prepare_model_data
from tritonstack_local.container.repository import ConfigSyntaxError, string_parameter, with_parameter, without_gpus


@cases("before, after")
def test_instances_are_on_the_cpu_afterwards_and_all_else_is_the_same(before: str, after: str) -> None:
    head, tail = 'name: "a" # KIND_GPU\noptimization { graph { level: 1 } }', "max_batch_size: 8"
    served = without_gpus(f"{head} {f'instance_group {before}' if before else ''} {tail}")
    assert sorted_fields(served) == sorted_fields(f"{head} instance_group {after} {tail}")
    assert without_gpus(served) == served


def sorted_fields(text: str) -> str:
    """A configuration as text, its fields in the order of their names, which the format leaves free."""
    config = parse(text)
    return to_text(replace(config, fields=tuple(sorted(config.fields, key=lambda field: field.name))))


ELSEWHERE = (
    "# instance_group { kind: KIND_GPU }\n"
    'parameters { key: "kind" value: { string_value: "kind: KIND_GPU } \\" gpus: [0]" } }\n'
    "optimization { kind: KIND_GPU gpus: [0] }\n"
    "instance_group [ { count: 1 kind: KIND_CPU } ]\r\n"
)


@pytest.mark.parametrize("text", [ELSEWHERE, "platform:'ensemble'\n", "ensemble_scheduling { step [] }"])
def test_the_words_elsewhere_and_an_ensemble_which_has_no_instances_stay(text: str) -> None:
    assert without_gpus(text) == text


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("name: 'a'\ninstance_group [ { kind: KIND_GPU", "line 2: the message opened on line 2 is not closed"),
        ("a: 1\n\n}", "line 3: a field's name was expected, found '}'"),
        ("name:", "line 1: a value was expected"),
    ],
)
def test_what_is_no_protobuf_text_is_refused_with_file_and_line(text: str, where: str) -> None:
    with pytest.raises(ConfigSyntaxError, match=f"^m/config.pbtxt: {where}"):
        without_gpus(text, file="m/config.pbtxt")


@pytest.mark.parametrize(
    "text",
    [
        'parameters { key: "a" value { string_value: "b" } }',
        "parameters: { key: 'a', value: { string_value: 'b' } }",
        'parameters [ { key: "c" value { string_value: "d" } }, { key: "a" value { string_value: "b" } } ]',
    ],
)
def test_another_value_of_a_parameter_changes_nothing_else(text: str) -> None:
    assert string_parameter(text, "a") == "b"
    changed = with_parameter(text, "a", "other/value")
    assert parse(changed) == parse(to_text(parse(text)).replace('"b"', '"other/value"'))
    assert string_parameter(changed, "no") is None


CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [1] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [1] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
parameters [ { key: "other" value { string_value: "kept" } },
  { key: "EXECUTION_ENV_PATH", value: { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } } ]  # packed
"""
SERVED = CONFIG.replace("env.tar.gz", "tritonstack-environment")
MODEL = """
import {module}
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        pb_utils.Logger.log_warn("imported from " + {module}.__file__)
        x = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", 2 * one)]) for one in x]
"""
FILES = TritonFiles.of_repository()


def model_in(folder: Path, *, packed_for: str | None = None) -> Path:
    """An unpacked archive with one model, whose environment is packed for that Python, or not packed."""
    model = folder / "twice"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(CONFIG)
    if packed_for:
        pack_environment(model / "env.tar.gz", packed_for, folder / ".made")
    return model


def pack_environment(target: Path, python: str, work: Path) -> None:
    """An environment with a package of its own, and the NumPy of the local backends."""
    site = work / "lib" / f"python{python}" / "site-packages"
    (site / "only_here").mkdir(parents=True)
    (site / "only_here" / "__init__.py").touch()
    for found in FILES.python.glob("lib/python3*/site-packages/numpy*"):
        (site / found.name).symlink_to(found.resolve())
    (work / "bin").mkdir()
    (work / "bin" / "activate").write_text(activate_script(python))
    with tarfile.open(target, "w:gz") as archive:
        for part in ("bin", "lib"):
            archive.add(work / part, part)
    shutil.rmtree(work)


@pytest.mark.parametrize(("packed_for", "place"), [(None, "the release's 3.10"), ("3.4", "its Python 3.4")])
def test_an_environment_that_is_not_packed_or_for_another_python_gets_a_stand_in(
    packed_for: str | None, place: str, tmp_path: Path
) -> None:
    model = model_in(tmp_path, packed_for=packed_for)
    (change,) = prepare_model_data(tmp_path, release="24.09", files=replace(FILES, torch=tmp_path / "torch"))
    assert parse((model / "config.pbtxt").read_text()) == parse(to_text(parse(SERVED)))
    local = f"execution environment env.tar.gz: {tmp_path / 'torch'}, Python {FILES.python_version}"
    assert change == f"twice/config.pbtxt: {local} in place of {place}"
    assert prepare_model_data(tmp_path, release="24.09", files=FILES) == ()
    activate = (model / "tritonstack-environment" / "bin" / "activate").read_text()
    assert "python3 scripts/setup.py torch" in activate, "it is not installed here"
    assert "tritonstack stand-in:" not in activate


@pytest.mark.parametrize("kind", ["the archive's own", "damaged", "none"])
def test_an_environment_for_the_local_python_a_damaged_one_and_none_stay_as_they_are(kind: str, tmp_path: Path) -> None:
    model = model_in(tmp_path, packed_for=FILES.python_version if kind == "the archive's own" else None)
    text = CONFIG.replace("EXECUTION_ENV_PATH", "SOMETHING_ELSE") if kind == "none" else CONFIG
    (model / "config.pbtxt").write_text(text)
    if kind == "damaged":
        (model / "env.tar.gz").write_bytes(b"no archive")
    assert prepare_model_data(tmp_path, release="24.09", files=FILES) == ()
    assert (model / "config.pbtxt").read_text() == text


@pytest.mark.parametrize(
    "path", ["env.tar.gz", "twice/env.tar.gz", "$TRITON_MODEL_DIRECTORY/env.tar.gz", "$$TRITON_MODEL_DIRECTORY/../no"]
)
def test_a_path_that_the_image_lacks_too_gets_no_stand_in(path: str, tmp_path: Path) -> None:
    model = model_in(tmp_path, packed_for=FILES.python_version)
    text = CONFIG.replace("$$TRITON_MODEL_DIRECTORY/env.tar.gz", path)
    (model / "config.pbtxt").write_text(text)
    assert prepare_model_data(tmp_path, release="24.09", files=FILES) == ()
    assert (model / "config.pbtxt").read_text() == text


OTHER = "3.10" if FILES.python_version != "3.10" else "3.12"


def add_files(archive: Path, *names: str) -> None:
    """Empty files in an environment that is packed already."""
    unpacked = archive.with_suffix(".unpacked")
    with tarfile.open(archive) as packed:
        packed.extractall(unpacked, filter="tar")
    write(unpacked, dict.fromkeys(names, ""))
    with tarfile.open(archive, "w:gz") as packed:
        for part in ("bin", "lib"):
            packed.add(unpacked / part, part)
    shutil.rmtree(unpacked)


def test_one_for_another_python_with_that_pythons_library_runs_with_the_stub_for_it(tmp_path: Path) -> None:
    model = model_in(tmp_path, packed_for=OTHER)
    add_files(model / "env.tar.gz", f"lib/libpython{OTHER}.so.1.0")
    for _ in range(2):  # the container starts again
        assert prepare_model_data(tmp_path, release="24.09", files=FILES) == ()
        assert (model / "config.pbtxt").read_text() == CONFIG
        stub = FILES.stubs / OTHER / "triton_python_backend_stub"
        assert (model / stub.name).read_bytes() == stub.read_bytes()


@pytest.mark.parametrize("packed_for", [FILES.python_version, OTHER])
def test_one_with_numpy_2_gets_a_stand_in_for_the_local_triton_reads_its_arrays_wrong(
    packed_for: str, tmp_path: Path
) -> None:
    model = model_in(tmp_path, packed_for=packed_for)
    numpy = f"lib/python{packed_for}/site-packages/numpy-2.1.3.dist-info/METADATA"
    add_files(model / "env.tar.gz", f"lib/libpython{packed_for}.so.1.0", numpy)
    (change,) = prepare_model_data(tmp_path, release="24.09", files=FILES)
    wanted = f"in place of its Python {packed_for} and NumPy 2.1.3: the local Triton reads arrays of NumPy 1 alone"
    assert change.endswith(wanted)


@pytest.mark.parametrize(("packed_for", "changes"), [(FILES.python_version, 0), ("3.4", 1)])
def test_an_environment_in_the_model_folder_is_the_archives_own(packed_for: str, changes: int, tmp_path: Path) -> None:
    model = model_in(tmp_path)
    pack_environment(tmp_path / "env.tar.gz", packed_for, tmp_path / ".made")
    (model / "config.pbtxt").write_text(CONFIG.replace("env.tar.gz", "../env.tar.gz"))
    assert len(prepare_model_data(tmp_path, release="24.09", files=FILES)) == changes


def test_an_environment_out_of_the_archive_is_never_read(tmp_path: Path) -> None:
    model = model_in(tmp_path / "archive")
    pack_environment(tmp_path / "env.tar.gz", "3.4", tmp_path / ".made")
    (model / "config.pbtxt").write_text(CONFIG.replace("env.tar.gz", "../../env.tar.gz"))
    assert prepare_model_data(tmp_path / "archive", files=FILES) == ()


@needs("torch")
def test_a_model_finds_the_stand_ins_packages_and_the_log_names_the_stand_in(sagemaker: SageMaker) -> None:
    archive = {"needs-torch/config.pbtxt": CONFIG, "needs-torch/1/model.py": MODEL.format(module="torch")}
    reply = sagemaker.load("needstorch", archive)
    assert reply.status == 200, reply.text
    assert sagemaker.invoke("needstorch", x=("FP32", [1, 1], [4.0])).outputs == {"y": [8.0]}
    log = log_with(sagemaker, f"imported from {FILES.torch}")
    assert "tritonstack stand-in: execution environment env.tar.gz: .envs/torch, Python " in log
    assert "(model needs-torch)" in log


def test_a_model_finds_the_packages_of_its_own_environment(sagemaker: SageMaker, tmp_path: Path) -> None:
    pack_environment(tmp_path / "env.tar.gz", FILES.python_version, tmp_path / ".made")
    archive: dict[str, str | Path] = {
        "own-packages/config.pbtxt": CONFIG,
        "own-packages/1/model.py": MODEL.format(module="only_here"),
        "own-packages/env.tar.gz": tmp_path / "env.tar.gz",
    }
    reply = sagemaker.load("ownpackages", archive)
    assert reply.status == 200, reply.text
    assert sagemaker.invoke("ownpackages", x=("FP32", [1, 1], [4.0])).outputs == {"y": [8.0]}
    assert "(model own-packages)" not in log_with(sagemaker, "imported from /tmp/python_env_")


def log_with(sagemaker: SageMaker, text: str) -> str:
    """The container's log, once it has a text: the Python backend may write a model's lines after its response."""
    wait_for(lambda: text in sagemaker.container.log_path.read_text())
    return sagemaker.container.log_path.read_text()
