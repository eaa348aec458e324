"""TorchScript files: what their code says, what has to be said beside them, what running them shows."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.models.folders import places_in
from tritonstack.adding.additions import Addition, AddOptions, parse_tensors
from tritonstack.adding.model_file import forward_arguments, torchscript_addition
from tritonstack.adding.new_folder import write_folder
from tritonstack.archives.build import build_models
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.model_config import read_config

FIXTURES = Path(__file__).with_name("fixtures")
PAIR = FIXTURES / "pair.pt"
INPUTS = ("ids:INT64:N,length", "mask:INT64:N,length")


def added(root: Path, inputs: tuple[str, ...], outputs: tuple[str, ...] = (), path: Path = PAIR) -> Addition:
    options = AddOptions(inputs=parse_tensors("--input", inputs), outputs=parse_tensors("--output", outputs))
    return torchscript_addition(path, "pair", options, work=root, report=lambda _: None)


def test_what_the_file_does_not_state_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonstack.paths.REPOSITORY", tmp_path)
    with pytest.raises(InputError) as caught:
        added(tmp_path, ("idz:INT64:N,8",))
    assert [problem.field for problem in caught.value.problems] == ["--input", "ids, mask", "--output"]
    assert "pair.pt --input ids:TYPE:SHAPE --input mask:TYPE:SHAPE" in str(caught.value)
    assert "forward(ids: Tensor, mask: Tensor)" in str(caught.value)
    addition = added(tmp_path, INPUTS, ("OUTPUT__0:FP32:N,2",))
    config = read_config(addition.addressed.config)
    assert (config.max_batch_size, config.backend) == (8, "pytorch")
    assert [(each.name, each.dims) for each in (*config.inputs, *config.outputs)] == [
        ("ids", (-1,)),
        ("mask", (-1,)),
        ("OUTPUT__0", (2,)),
    ]


def test_weights_alone_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"(?s)without TorchScript's code.*torch\.jit\.trace"):
        forward_arguments(FIXTURES / "weights.pt")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "")
    with pytest.raises(InputError, match="no TorchScript"):
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
