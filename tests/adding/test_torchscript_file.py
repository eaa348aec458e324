"""TorchScript files: what their code says, what has to be said beside them, what running them shows."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.models.folders import places_in
from tritonstack.adding.additions import Addition, AddOptions, parse_tensors
from tritonstack.adding.new_folder import write_folder
from tritonstack.adding.torchscript_model import torchscript_addition
from tritonstack.archives.build import build_models
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.model_files.torchscript_file import TorchScriptError, forward_arguments, traced_inputs
from tritonstack.models.model_config import read_config

FIXTURES = Path(__file__).with_name("fixtures")
PAIR = FIXTURES / "pair.pt"
INPUTS = ("ids:INT64:N,length", "mask:INT64:N,length")


def added(root: Path, inputs: tuple[str, ...], outputs: tuple[str, ...] = (), path: Path = PAIR) -> Addition:
    options = AddOptions(inputs=parse_tensors("--input", inputs), outputs=parse_tensors("--output", outputs))
    return torchscript_addition(path, "pair", options, work=root, report=lambda _: None)


def test_what_the_file_does_not_state_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonstack.paths.REPOSITORY", tmp_path)
    scripted = without_trace(tmp_path / "pair.pt")
    with pytest.raises(InputError) as caught:
        added(tmp_path, ("idz:INT64:N,8",), path=scripted)
    assert [problem.field for problem in caught.value.problems] == ["--input", "ids, mask", "--output"]
    assert "pair.pt --input idz:INT64:N,8 --input ids:TYPE:SHAPE --input mask:TYPE:SHAPE" in str(caught.value)
    assert "forward(ids: Tensor, mask: Tensor), and no trace in the file" in str(caught.value)
    addition = added(tmp_path, INPUTS, ("OUTPUT__0:FP32:N,2",))
    config = read_config(addition.addressed.config)
    assert (config.max_batch_size, config.backend) == (8, "pytorch")
    assert [(each.name, each.dims) for each in (*config.inputs, *config.outputs)] == [
        ("ids", (-1,)),
        ("mask", (-1,)),
        ("OUTPUT__0", (2,)),
    ]


def without_trace(path: Path) -> Path:
    """The fixture as a scripted module is stored."""
    with zipfile.ZipFile(PAIR) as whole, zipfile.ZipFile(path, "w") as archive:
        for name in whole.namelist():
            if "traced_inputs" not in name:
                archive.writestr(name, whole.read(name))
    return path


def test_a_traced_file_states_the_types_and_shapes_of_its_inputs(tmp_path: Path) -> None:
    arguments = forward_arguments(PAIR)
    traced = traced_inputs(PAIR, arguments)
    assert [(each.name, each.datatype, each.shape) for each in traced] == [
        ("ids", "INT64", (2, 8)),
        ("mask", "INT64", (2, 8)),
    ]
    assert traced_inputs(PAIR, arguments[:1]) == ()
    assert traced_inputs(without_trace(tmp_path / "pair.pt"), arguments) == ()
    assert traced_inputs(FIXTURES / "weights.pt", arguments) == ()


def test_weights_alone_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(TorchScriptError, match="without TorchScript's code"):
        forward_arguments(FIXTURES / "weights.pt")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "")
    with pytest.raises(TorchScriptError, match="without TorchScript's code"):
        forward_arguments(tmp_path / "other.zip")


@pytest.mark.long
def test_running_it_shows_the_outputs_and_the_batch_and_a_build_proves_it(tmp_path: Path) -> None:
    addition = added(tmp_path, INPUTS)
    config = read_config(addition.addressed.config)
    assert config.max_batch_size == 8
    assert [(each.name, each.data_type, each.dims) for each in config.outputs] == [
        ("OUTPUT__0", "FP32", (2,)),
        ("OUTPUT__1", "FP32", (4,)),
    ]
    places = places_in(tmp_path)
    written = write_folder(addition, places=places, target=None, report=lambda _: None)
    assert written.failure is None, str(written.failure)
    (built,) = build_models(["pair"], places=places, report=lambda _: None).built
    assert built.manifest.figures["sample_difference"] < 1e-6
    with pytest.raises(WorkFailedError, match=r"(?s)does not run with seeded values.*types and shapes of --input"):
        added(tmp_path, ("ids:FP32:N,8", "mask:INT64:N,8"))


@pytest.mark.long
def test_a_traced_file_is_taken_without_options(tmp_path: Path) -> None:
    addition = added(tmp_path, ())
    config = read_config(addition.addressed.config)
    assert config.max_batch_size == 8
    assert [(each.name, each.data_type, each.dims) for each in config.inputs] == [
        ("ids", "INT64", (8,)),
        ("mask", "INT64", (8,)),
    ]
    assert any("--input ids:INT64:N,8 --input mask:INT64:N,8" in line for line in addition.unknown)
