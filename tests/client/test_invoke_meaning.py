"""``tritonstack invoke`` with an image or a text: what it prints of the published systems' answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.client.systems import TRANSLATION, Systems, image_file, running_systems
from tritonstack.cli import invoke, invoke_view
from tritonstack.client.model_client import Answer
from tritonstack.client.postprocessing import Text
from tritonstack.errors import InputError


@pytest.fixture
def systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Systems]:
    """The stand-in, which the command takes for AWS."""
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "home"))
    with running_systems(tmp_path) as running:
        monkeypatch.setattr(invoke, "calling_session", lambda _, **__: running.session)
        yield running


def run(*arguments: str) -> Result:
    """The command."""
    return CliRunner().invoke(invoke.command, arguments)


def test_an_image_prints_its_five_best_classes_by_name(systems: Systems, tmp_path: Path) -> None:
    result = run("resnet50-onnx", "--input", str(image_file(tmp_path / "dog.jpg")))
    assert result.exit_code == 0, result.output
    rows = [line for line in result.output.splitlines() if " class " in line and "0.0" in line]
    assert len(rows) == 5
    assert "resnet50-onnx.0123456789abcdef.tar.gz at local-systems" in result.output
    assert len(systems.endpoint.requests) == 1


def test_a_text_prints_its_translation_from_the_line_or_a_file(systems: Systems, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("The house is wonderful.\n")
    by_line = run("t5-python", "--text", "The house is wonderful.")
    by_file = run("t5-python", "--input", str(tmp_path / "text.txt"))
    assert by_line.output.splitlines()[0] == by_file.output.splitlines()[0] == TRANSLATION
    first, second = systems.endpoint.requests
    assert first.content == second.content


def test_an_embedding_prints_its_length_and_its_first_values(systems: Systems) -> None:
    first = run("bert-tensorrt-0", "--text", "house").output.splitlines()[0]
    assert first.startswith("768 values of FP32: 0.")
    assert first.endswith(", …")
    assert first.count("0.") == 6
    assert len(systems.endpoint.requests) == 1


def test_raw_prints_every_output_as_it_comes(systems: Systems) -> None:
    result = run("bert-tensorrt-0", "--text", "house", "--raw")
    assert "[1, 128, 768]" in result.output
    assert "[1, 768]" in result.output
    assert len(systems.endpoint.requests) == 1


@pytest.mark.usefixtures("systems")
def test_json_holds_the_meaning_beside_the_arrays(tmp_path: Path) -> None:
    image = str(image_file(tmp_path / "dog.png"))
    (classes,) = json.loads(run("inception-ensemble", "--input", image, "--json").stdout)["meanings"]
    assert len(classes["classes"]) == 5
    assert classes["classes"][0].keys() == {"index", "name", "score"}
    said = json.loads(run("t5-python", "--text", "house", "--json").stdout)
    assert said["meanings"] == [{"text": TRANSLATION}]
    assert said["outputs"][0]["data"] == [2, 4, 5, 6, 7, 3]
    (vector,) = json.loads(run("bert-large-pytorch", "--text", "house", "--json").stdout)["meanings"]
    assert len(vector["embedding"]) == 1024
    assert "meanings" not in json.loads(run("t5-python", "--text", "house", "--json", "--raw").stdout)


def test_what_cannot_be_sent_is_refused_before_it_is(systems: Systems, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_text("no image")
    (tmp_path / "a.txt").write_text("house")
    for arguments, said in (
        (["resnet50-onnx"], "--input FILE or --text TEXT"),
        (["resnet50-onnx", "--input", str(tmp_path / "a.jpg")], "not an image that can be read"),
        (["resnet50-onnx", "--text", "house"], "no adapter for it"),
        (["t5-python", "--text", "house", "--input", str(tmp_path / "a.txt")], "which a file gives too"),
    ):
        result = run(*arguments)
        assert isinstance(result.exception, InputError), result.output
        assert said in str(result.exception)
    systems.s3.objects.clear()
    assert "a model whose manifest cannot be read" in str(run("t5-python", "--text", "house").exception)
    assert systems.endpoint.requests == []


def test_a_translation_without_a_word_is_called_empty(systems: Systems, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "_answers", lambda _config, _arrays: {"output": np.zeros((1, 3), np.int32)})
    assert run("t5-python", "--text", "house").output.splitlines()[0] == "(an empty text)"


def test_a_models_text_does_not_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    answer = Answer(
        outputs={},
        model_name="t5",
        model_version="1",
        endpoint_name="dev-words",
        target_model=None,
        variant="g4dn-xlarge",
        milliseconds=1,
        total_milliseconds=1,
        attempts=1,
        bytes_sent=1,
        bytes_received=1,
        content_type="application/json",
        meanings=(Text(text="das\x1b[2J \nHaus ist schön\x9b"),),
    )
    invoke_view.show([answer])
    assert capsys.readouterr().out.startswith("das\ufffd[2J \nHaus ist schön\ufffd\n")
