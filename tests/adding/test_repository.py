"""Triton model folders, repositories and archives as users have them (``triton_folders.yaml``)."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lint.examples import write_torchscript
from tests.lint.onnx_files import node, write_graph
from tests.models.folders import places_in, write
from tritonstack.adding.additions import Addition, AddOptions, parse_tensors
from tritonstack.adding.new_folder import write_folder
from tritonstack.adding.sources import read_source
from tritonstack.archives.build import build_models
from tritonstack.errors import InputError
from tritonstack.models.model_config import read_config

FOLDERS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("triton_folders.yaml").read_text())

TORCHSCRIPT = {"version": 3, "code": "torch.relu(x)"}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def written(folder: Path, files: Mapping[str, Any]) -> Path:
    for name, content in files.items():
        if isinstance(content, str):
            write(folder, {name: content})
        elif name.endswith(".pt"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_torchscript(folder / name, **content)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            nodes = [node(op, given, made, **more) for op, given, made, more in content.get("nodes", ())]
            write_graph(folder / name, {**content, "nodes": nodes})
    return folder


def additions(path: Path, root: Path, options: AddOptions | None = None) -> tuple[Addition, ...]:
    with read_source(path, options or AddOptions(), places=places_in(root), report=lambda _: None) as found:
        return found


@pytest.mark.parametrize("case", FOLDERS)
def test_a_repository_gives_a_folder_for_each_model_with_what_it_uses(tmp_path: Path, case: str) -> None:
    told = FOLDERS[case]
    repository = written(tmp_path / "given", told["files"])
    found = additions(repository, tmp_path)
    assert {each.name: [model.name for model in each.models] for each in found} == told["gives"]
    first = found[0]
    config = read_config(first.addressed.config)
    assert config.complaints == ()
    assert config.backend
    assert config.inputs
    assert config.outputs
    assert first.kind == told.get("kind", first.kind)
    assert [line for line in told.get("says", ()) if line not in first.addressed.config] == []
    assert set(told.get("files_kept", ())) <= set(first.addressed.files)
    assert [line for line in first.unknown if told.get("unknown", "") not in line] == []
    if not first.unknown:
        assert first.addressed.config == (repository / first.model / "config.pbtxt").read_text()


QUICK = ("python model", "a backend that the local Triton lacks")


@pytest.mark.parametrize(
    "case", [*QUICK, *(pytest.param(case, marks=pytest.mark.long) for case in FOLDERS if case not in QUICK)]
)
def test_what_is_made_of_a_repository_is_proven_by_a_build(tmp_path: Path, case: str) -> None:
    places = places_in(tmp_path)
    for addition in additions(written(tmp_path / "given", FOLDERS[case]["files"]), tmp_path):
        added = write_folder(addition, places=places, target=None, report=lambda _: None)
        if lacks := FOLDERS[case].get("lacks"):
            assert lacks in str(added.failure)
            assert added.remedy.startswith("write ")
            continue
        assert added.failure is None, str(added.failure)
        (built,) = build_models([addition.name], places=places, report=lambda _: None).built
        assert built.manifest.figures["sample_difference"] < 1e-6


def test_a_model_folder_alone_and_an_archive_of_sagemaker_give_the_same(tmp_path: Path) -> None:
    repository = written(tmp_path / "given", FOLDERS["python model"]["files"])
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(repository / "add_sub", "add_sub")
    (of_folder,), (of_archive,) = additions(repository / "add_sub", tmp_path), additions(archive, tmp_path)
    assert (of_folder.name, of_folder.model, of_folder.addressed.config) == (
        of_archive.name,
        of_archive.model,
        of_archive.addressed.config,
    )


def test_an_archive_that_writes_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").write_text("")
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "config.pbtxt", "../net/config.pbtxt")
    with pytest.raises(InputError, match=r"'\.\./net/config\.pbtxt' is no path inside"):
        additions(tmp_path / "model.tar.gz", tmp_path)
    assert not (tmp_path.parent / "net").exists()


def test_everything_that_a_repository_lacks_is_said_at_once(tmp_path: Path) -> None:
    ensemble = FOLDERS["ensemble"]["files"]["pipeline/config.pbtxt"]
    files = {
        "pipeline/config.pbtxt": ensemble,
        "scale/config.pbtxt": 'backend: "pytorch"\nmax_batch_size: 8\n',
        "scale/1/model.pt": TORCHSCRIPT,
        "plan/config.pbtxt": 'platform: "tensorrt_plan"\ninput [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
        'output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]\n',
        "plan/1/model.plan": "ftrt, and an engine",
        "other/config.pbtxt": 'max_batch_size: 8\ninput [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
        'output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]\n',
    }
    with pytest.raises(InputError) as caught:
        additions(written(tmp_path / "given", files), tmp_path)
    said = [
        (Path(problem.file or "").relative_to(tmp_path).parts[1], problem.found) for problem in caught.value.problems
    ]
    assert [(place, found.split(",")[0]) for place, found in said] == [
        ("pipeline", "step net"),
        ("other", "no backend"),
        ("scale", "no input"),
        ("scale", "no output"),
        ("plan", "a TensorRT plan"),
    ]


def test_files_that_are_not_what_they_claim_are_refused_before_their_values_are_used(tmp_path: Path) -> None:
    files = {
        "graph/config.pbtxt": 'backend: "onnxruntime"\nmax_batch_size: 8\n',
        "graph/1/model.onnx": POINTER,
        "torch/config.pbtxt": 'platform: "pytorch_libtorch"\n',
        "torch/1/model.pt": POINTER,
    }
    with pytest.raises(InputError) as caught:
        additions(written(tmp_path / "given", files), tmp_path)
    said = [(Path(problem.file or "").name, problem.found.split(",")[0]) for problem in caught.value.problems]
    assert said == [("model.onnx", "model.onnx is a Git LFS pointer"), ("model.pt", "model.pt is a Git LFS pointer")]
    assert all("git lfs pull" in problem.advice for problem in caught.value.problems)


def test_tensors_that_nothing_states_are_written_by_hand(tmp_path: Path) -> None:
    files = {"net/config.pbtxt": 'backend: "pytorch"\nmax_batch_size: 8\n', "net/1/model.pt": TORCHSCRIPT}
    repository = written(tmp_path / "given", files)
    with pytest.raises(InputError, match=r"(?s)every input.*write them into .*/net/config.pbtxt"):
        additions(repository, tmp_path)
    options = AddOptions(inputs=parse_tensors("--input", ["x:FP32:N,3"]))
    with pytest.raises(InputError, match=r"(?s)--input, --output\n  found:   x\n.*config.pbtxt states the tensors"):
        additions(repository, tmp_path, options)


def test_a_name_is_of_one_model(tmp_path: Path) -> None:
    repository = written(tmp_path / "given", FOLDERS["two models that do not know of each other"]["files"])
    with pytest.raises(InputError, match="net for 2 models: add_sub, other"):
        additions(repository, tmp_path, AddOptions(name="net"))
    (named,) = additions(repository / "add_sub", tmp_path, AddOptions(name="sums"))
    assert (named.name, named.model) == ("sums", "add_sub")
    assert "model: " in named.recipe(tolerance=1e-3, schema="")


def test_a_folder_without_a_triton_model_says_what_of_it_can_be_added(tmp_path: Path) -> None:
    write(tmp_path / "given", {"notes.txt": "", "onnx/model.onnx": ""})
    with pytest.raises(
        InputError, match=r"(?s)no Triton model: notes.txt, onnx/model.onnx.*add .*given/onnx/model.onnx"
    ):
        additions(tmp_path / "given", tmp_path)


def test_the_code_of_a_model_is_announced_before_it_runs_and_sees_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "GITHUB_TOKEN", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "secret")
    files = dict(FOLDERS["python model"]["files"])
    program = next(name for name in files if name.endswith("model.py"))
    spy = "import os\nif 'secret' in os.environ.values():\n    raise ValueError('a token')\n"
    repository = written(tmp_path / "given", {**files, program: spy + files[program]})
    events: list[str] = []
    (addition,) = additions(repository, tmp_path)
    added = write_folder(
        addition, places=places_in(tmp_path), target=None, report=events.append, announce=events.append
    )
    assert added.failure is None, str(added.failure)
    announced = next(index for index, line in enumerate(events) if line.startswith("runs the code of add_sub on this"))
    assert announced < next(index for index, line in enumerate(events) if line.startswith("proof of add_sub"))
