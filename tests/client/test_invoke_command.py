"""``tritonstack invoke``: what it sends, what it prints, and each refusal."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from botocore.exceptions import NoCredentialsError
from click.testing import CliRunner, Result

from tests.client.fakes import FakeEndpoint, FakeS3, FakeSession, FakeSsm, FakeTime, error_reply
from tests.client.systems import TRANSLATION, Systems, image_file, running_systems
from tritonstack.adapters import Adapters, TextAdapter
from tritonstack.cli import invoke, invoke_view
from tritonstack.cli.session import region_of
from tritonstack.client import model_client
from tritonstack.client.errors import ReleaseLookupError
from tritonstack.client.model_client import Answer
from tritonstack.client.postprocessing import Text
from tritonstack.errors import InputError, Problem
from tritonstack.models.manifest import ArchiveEntry, Manifest, ModelEntry, SampleEntry, TensorEntry

DIGEST = "0123456789abcdef"
KEY = f"manifests/digits/24.09-t4/digits.{DIGEST}.json"
MANIFEST = Manifest(
    name="digits",
    digest=DIGEST,
    description="Names a digit.",
    dependency="none",
    archive=ArchiveEntry(file=f"digits.{DIGEST}.tar.gz", bytes=1, sha256="", tar_bytes=1, tar_sha256=""),
    model=ModelEntry(
        name="digits",
        max_batch_size=8,
        inputs=(TensorEntry(name="pixels", datatype="FP32", shape=(-1, 4)),),
        outputs=(TensorEntry(name="pixels", datatype="FP32", shape=(-1, 4)),),
    ),
    backends=("python",),
    configs={},
    adapters=Adapters(text=TextAdapter(input="pixels", encoding="utf8")),
    sample=SampleEntry(file="s.json", answer={}, tolerance=0),
    figures={},
    tools={},
)


class World:
    """What the command finds instead of AWS."""

    def __init__(self, endpoint: FakeEndpoint, folder: Path) -> None:
        self.endpoint = endpoint
        self.folder = folder
        self.ssm = FakeSsm(
            {"/tritonstack/dev/digits/digits": DIGEST, "/tritonstack/dev/_artifacts/bucket-name": "bucket"}
        )
        self.s3 = FakeS3({KEY: json.loads(MANIFEST.to_json())})
        self.session = FakeSession(endpoint.url, ssm=self.ssm, s3=self.s3)

    def file(self, name: str, content: Any) -> str:
        """A file of that JSON, or array."""
        path = self.folder / name
        if isinstance(content, np.ndarray):
            np.save(path, content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def invoke(self, *arguments: str) -> Result:
        """Run the command for environment ``dev``."""
        return CliRunner().invoke(invoke.command, [*arguments, "--environment", "dev"])


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A fake AWS with one model that echoes."""
    with FakeEndpoint().running() as endpoint:
        made = World(endpoint, tmp_path)
        monkeypatch.setattr(invoke, "calling_session", lambda _, local: made.session if not local else None)
        clock = FakeTime().clock()
        monkeypatch.setattr(model_client, "ModelClient", functools.partial(model_client.ModelClient, clock=clock))
        yield made


def test_an_answer_is_printed_for_people(world: World) -> None:
    result = world.invoke("digits", "--input", world.file("a.json", [0, 0.5, 1, 2]))
    assert result.exit_code == 0, result.output
    assert "[0.  0.5 1.  2. ]" in result.output
    assert f"digits.{DIGEST}.tar.gz at dev-digits (g4dn-xlarge)" in result.output
    assert "bytes sent as JSON" in result.output


def test_long_rows_fill_the_table_and_the_summary_wraps_at_words(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.s3.objects.clear()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    tensor = {"name": "probability", "shape": [1, 30], "datatype": "FP32", "data": [0.125] * 30}
    lines = click.unstyle(world.invoke("digits", "--input", world.file("a.json", {"inputs": [tensor]})).output)
    rows = [line for line in lines.splitlines() if "0.125" in line]
    assert all(len(line) <= 80 for line in lines.splitlines())
    assert len({row.count("0.125") for row in rows[:-1]}) == 1, "every line but the last is full"
    summary = lines[lines.index("digits.0") :].splitlines()
    assert len(summary) > 1
    assert " ".join(line.strip() for line in summary).endswith("received")
    assert all(not line.startswith(" ") for line in summary)


def test_json_holds_the_whole_answer_and_who_gave_it(world: World) -> None:
    array = np.array([[0.1, 2, 3, 4]], np.float32)
    result = world.invoke(
        "digits", "--input", world.file("a.npy", array), "--json", "--format", "binary", "--repeat", "3"
    )
    answer = json.loads(result.stdout)
    assert answer["outputs"] == [{"name": "pixels", "datatype": "FP32", "shape": [1, 4], "data": [0.1, 2, 3, 4]}]
    assert answer["target_model"] == f"digits.{DIGEST}.tar.gz"
    assert len(answer["milliseconds"]) == len(world.endpoint.requests) == 3
    assert all(request.content_type.startswith("application/vnd") for request in world.endpoint.requests)


def test_repeated_calls_print_their_spread(world: World) -> None:
    result = world.invoke("digits", "--input", world.file("a.json", [0, 1, 2, 3]), "--repeat", "5")
    assert "5 calls, first" in result.output
    assert "median" in result.output


def test_everything_that_the_tensor_table_does_not_allow_is_said_at_once(world: World) -> None:
    array = np.zeros((2, 5))
    result = world.invoke("digits", "--input", world.file("a.npy", array), "--output", "label")
    error = result.exception
    assert isinstance(error, InputError)
    assert [(problem.field, problem.allowed) for problem in error.problems] == [
        ("inputs.pixels", "datatype FP32"),
        ("inputs.pixels", "shape [-1, 4]"),
        ("outputs.label", "pixels FP32 [-1, 4]"),
    ]
    assert all("a.npy" in (problem.file or "") for problem in error.problems[:2])
    assert world.endpoint.requests == []


def test_a_wrong_input_name_is_answered_with_the_right_ones(world: World) -> None:
    result = world.invoke("digits", "--input", world.file("a.json", {"pixel": [0, 1, 2, 3]}))
    assert isinstance(result.exception, InputError)
    assert "pixels FP32 [-1, 4]" in str(result.exception)


def test_a_pause_is_told_on_standard_error(world: World) -> None:
    world.endpoint.replies(error_reply("ModelNotReadyException", 429))
    result = world.invoke("digits", "--input", world.file("a.json", [0, 1, 2, 3]), "--json")
    assert "the model is being loaded; trying again" in result.stderr
    assert json.loads(result.stdout)["attempts"] == [2]


def test_without_the_manifest_a_request_that_says_its_types_still_works(world: World) -> None:
    world.s3.objects.clear()
    tensor = {"name": "pixels", "shape": [1, 1], "datatype": "FP32", "data": [7]}
    result = world.invoke("digits", "--input", world.file("a.json", {"inputs": [tensor]}), "--json")
    assert json.loads(result.stdout)["outputs"][0]["data"] == [7]


def test_bytes_are_printed_as_text(world: World) -> None:
    world.s3.objects.clear()
    tensor = {"name": "t", "shape": [1], "datatype": "BYTES", "data": ["grün"]}
    path = world.file("a.json", {"inputs": [tensor]})
    assert "grün" in world.invoke("digits", "--input", path).output
    assert json.loads(world.invoke("digits", "--input", path, "--json").stdout)["outputs"][0]["data"] == ["grün"]


def test_an_environment_without_a_file_and_records_is_called_unknown(world: World) -> None:
    path = world.file("a.json", [0])
    result = CliRunner().invoke(invoke.command, ["digits", "--input", path, "--environment", "stagin"])
    assert isinstance(result.exception, InputError)
    (problem,) = result.exception.problems
    assert problem.found.startswith("stagin, of which there is neither a file")
    assert problem.allowed.endswith(": dev, local, prod, prod-eu, staging")
    assert problem.advice == "Did you mean staging?"


def test_a_local_aws_without_a_deployment_says_how_to_deploy(world: World) -> None:
    world.ssm.parameters.clear()
    world.ssm.meta.endpoint_url = "http://127.0.0.1:4566"
    result = world.invoke("digits", "--input", world.file("a.json", [0]))
    assert isinstance(result.exception, InputError)
    assert [problem.advice for problem in result.exception.problems] == ["tritonstack local deploy dev"]


def test_an_archive_that_was_never_published_is_refused_with_the_current_one(world: World) -> None:
    gone = f"digits/digits.{DIGEST[::-1]}.tar.gz"
    result = world.invoke(gone, "--input", world.file("a.json", [0, 1, 2, 3]))
    assert isinstance(result.exception, InputError)
    (problem,) = result.exception.problems
    assert problem.found.startswith(gone.removeprefix("digits/"))
    assert problem.allowed.endswith(f"current: digits/digits.{DIGEST}.tar.gz")
    assert world.endpoint.requests == []


def test_environment_local_without_a_local_aws_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path))
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    result = CliRunner().invoke(invoke.command, ["digits", "--input", "a.json"])
    assert isinstance(result.exception, InputError)
    assert "tritonstack local up" in str(result.exception)


def test_the_region_is_that_of_the_environment_s_file() -> None:
    assert region_of("local") == "us-east-1"
    assert region_of("no-such-environment") is None


def test_problems_of_the_environment_s_file_are_the_command_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise InputError([Problem(file=str(path), found="x", allowed="y")])

    monkeypatch.setattr("tritonstack.config.load_environment", refuse)
    with pytest.raises(InputError, match=r"local\.yaml"):
        region_of("local")


@pytest.mark.parametrize(("runs", "kind"), [(True, InputError), (False, ReleaseLookupError)])
def test_without_credentials_a_local_aws_that_runs_is_pointed_at(
    world: World, monkeypatch: pytest.MonkeyPatch, *, runs: bool, kind: type[Exception]
) -> None:
    world.ssm.failure = NoCredentialsError()
    monkeypatch.setattr("tritonstack.cli.session.find_local_aws", lambda: object() if runs else None)
    result = world.invoke("digits", "--input", world.file("a.json", [0]))
    assert isinstance(result.exception, kind)
    assert ("--local" in str(result.exception)) == runs


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
