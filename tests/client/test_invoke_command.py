"""``tritonstack invoke``: what it sends, what it prints, and each refusal."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.client.fake_triton import read_request
from tests.client.fakes import (
    FakeEndpoint,
    FakeTime,
    Reply,
    Request,
    client_account,
    echo,
    error_reply,
    serving_outputs,
    stream_reply,
)
from tests.client.systems import TRANSLATION, Systems, image_file, running_systems
from tests.fake_aws import ARTIFACTS
from tests.models.folders import make_manifest, write
from tritonstack.adapters import Adapters, TextAdapter
from tritonstack.cli import invoke
from tritonstack.client import model_client
from tritonstack.client.model_client import ModelResponse
from tritonstack.client.postprocessing import Text
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.manifest import ModelEntry, TensorEntry
from tritonstack_local.runtime.streaming.event_stream import payload_parts

DIGEST = "0123456789abcdef"
KEY = f"manifests/digits/24.09-t4/digits.{DIGEST}.json"
MANIFEST = make_manifest(
    name="digits",
    digest=DIGEST,
    model=ModelEntry(
        name="digits",
        max_batch_size=8,
        inputs=(TensorEntry(name="pixels", datatype="FP32", shape=(-1, 4)),),
        outputs=(TensorEntry(name="pixels", datatype="FP32", shape=(-1, 4)),),
    ),
    adapters=Adapters(text=TextAdapter(input="pixels", encoding="utf8")),
)


class World:
    """What the command finds instead of AWS."""

    def __init__(self, endpoint: FakeEndpoint, folder: Path) -> None:
        self.endpoint = endpoint
        self.folder = folder
        self.aws = client_account(
            endpoint,
            {
                "/tritonstack/dev/digits/digits": DIGEST,
                "/tritonstack/dev/_artifacts/bucket-name": ARTIFACTS,
                "/tritonstack/dev/_outputs/serving-digits": serving_outputs(),
            },
        )
        self.aws.artifacts[KEY] = MANIFEST.to_json().encode()

    def file(self, name: str, content: Any) -> str:
        path = self.folder / name
        if isinstance(content, np.ndarray):
            np.save(path, content)
        else:
            path.write_text(json.dumps(content))
        return str(path)

    def pixels(self) -> str:
        """A request's file."""
        tensor = {"name": "pixels", "shape": [1, 4], "datatype": "FP32", "data": [0, 0.5, 1, 2]}
        return self.file("a.json", {"inputs": [tensor]})

    def invoke(self, *arguments: str) -> Result:
        """Run the command for environment ``dev``."""
        return CliRunner().invoke(invoke.command, [*arguments, "--environment", "dev"])


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A fake AWS with one model that echoes."""
    with FakeEndpoint().running() as endpoint:
        made = World(endpoint, tmp_path)
        monkeypatch.setattr(invoke, "calling_session", lambda _, local: made.aws if not local else None)
        clock = FakeTime().clock()
        monkeypatch.setattr(model_client, "ModelClient", functools.partial(model_client.ModelClient, clock=clock))
        yield made


def test_a_response_is_printed_for_people(world: World) -> None:
    result = world.invoke("digits", "--input", world.pixels())
    assert result.exit_code == 0, result.output
    assert "[0.  0.5 1.  2. ]" in result.output
    assert f"digits.{DIGEST}.tar.gz at dev-digits (g4dn-xlarge)" in result.output
    assert "bytes sent as JSON" in result.output


def test_the_frame_of_a_long_response_keeps_to_120_columns_where_the_output_is_no_terminal(world: World) -> None:
    pixels = [[index + 0.125 for index in range(4)]] * 8
    result = world.invoke("digits", "--data", json.dumps({"pixels": pixels}))
    framed = [line for line in result.output.splitlines() if line.startswith("│")]
    assert framed
    assert max(map(len, framed)) <= 120
    assert result.output.count("3.125") == 8


def test_json_holds_the_whole_response_and_its_variant(world: World) -> None:
    array = np.array([[0.1, 2, 3, 4]], np.float32)
    result = world.invoke("digits", "--input", world.file("a.npy", array), "--json")
    response = json.loads(result.stdout)
    assert response["outputs"] == [{"name": "pixels", "datatype": "FP32", "shape": [1, 4], "data": [0.1, 2, 3, 4]}]
    assert response["target_model"] == f"digits.{DIGEST}.tar.gz"


def test_the_requested_variant_responds_and_is_shown(world: World) -> None:
    variants = {"a": "a-g4dn-xlarge", "b": "b-g4dn-xlarge"}
    world.aws.parameters["/tritonstack/dev/_outputs/serving-digits"] = serving_outputs(
        "single-model", variants=variants
    )
    command = ("digits", "--input", world.pixels(), "--variant", "b")
    assert json.loads(world.invoke(*command, "--json").stdout)["variant"] == "b-g4dn-xlarge"
    assert "at dev-digits (b-g4dn-xlarge)" in world.invoke(*command).output
    error = world.invoke(*command[:-1], "c").exception
    assert isinstance(error, InputError)
    assert error.problems[0].allowed == "a, b"


def test_a_program_that_raises_is_shown_by_its_traceback_with_the_projects_files(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "/opt/ml/models/0123456789abcdef0123456789abcdef/model/digits/1/model.py"
    text = f"Failed to process the request(s) for model 'a_0_0', message: E: no\n\nAt:\n  {program}(7): execute\n"
    message = json.dumps({"error": text})
    world.endpoint.replies(error_reply("ModelError", 424, OriginalStatusCode=400, OriginalMessage=message))
    write(world.folder, {"model_repos/digits/digits/1/model.py": ""})
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(world.folder))
    failed = world.invoke("digits", "--input", world.pixels())
    assert isinstance(failed.exception, WorkFailedError)
    first, *calls = str(failed.exception).splitlines()
    assert first.endswith(": the container responded 400, in execute:")
    file = world.folder / "model_repos/digits/digits/1/model.py"
    assert calls == ["  Traceback (most recent call last):", f'    File "{file}", line 7, in execute', "  E: no"]


COPIES = 3


@pytest.fixture
def copies(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Three copies of a model; CloudWatch counts two requests of others, then the requests to them, each a load."""
    monkeypatch.setattr(invoke, "LOCAL_SECONDS", 0)
    monkeypatch.setattr(invoke, "ACCOUNT_SECONDS", 0)
    for number in range(COPIES):
        world.aws.parameters[f"/tritonstack/dev/digits/bert-{number}"] = DIGEST

    def statistics(request: dict[str, Any]) -> dict[str, Any]:
        counts = {"ModelCacheHit": (0.0, 2.0), "ModelLoadingTime": (0.0, 2.0)}.get(request["MetricName"])
        if counts is None:
            return {"Datapoints": []}
        point = {
            "Timestamp": request["StartTime"],
            "Sum": counts[0],
            "SampleCount": counts[1] + len(world.endpoint.requests),
        }
        return {"Datapoints": [point]}

    world.aws.responses = {"cloudwatch.GetMetricStatistics": statistics}
    return world


def test_each_copy_is_called_in_turn_and_what_cloudwatch_counted_is_shown(copies: World) -> None:
    result = copies.invoke("bert", "--each-copy", "--input", copies.pixels())
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == [f"digits/bert-{number}" for number in range(COPIES)] * 2
    assert [line.rpartition(", ")[2] for line in lines[:-1]] == ["first"] * COPIES + ["repeated"] * COPIES
    assert lines[-1] == ("CloudWatch counted for dev-digits meanwhile: 6 requests, 0 hits, 6 loads, no figure unloads")


def test_each_copy_as_json_has_the_requests_and_the_counts(copies: World) -> None:
    result = copies.invoke("digits/bert", "--each-copy", "--rounds", "1", "--json", "--input", copies.pixels())
    document = json.loads(result.stdout)
    assert [(each["copy"], each["round"]) for each in document["requests"]] == [
        (f"digits/bert-{number}", 1) for number in range(COPIES)
    ]
    assert document["counted"] == {"requests": 3, "hits": 0, "loads": 3, "unloads": None}


def test_each_copy_without_the_right_to_read_metrics_is_called_and_the_refusal_is_shown(copies: World) -> None:
    copies.aws.refused["GetMetricStatistics"] = "AccessDenied"
    result = copies.invoke("bert", "--each-copy", "--input", copies.pixels())
    assert result.exit_code == 0, result.output
    assert result.stdout.count("repeated") == COPIES
    assert "CloudWatch counted" not in result.stdout
    assert "CloudWatch's figures of loads and unloads cannot be read: " in result.stderr
    assert "AccessDenied" in result.stderr


def test_a_copy_that_fails_is_named_not_the_first_one(copies: World) -> None:
    def reply(request: Request) -> Reply:
        failing = request.target_model is not None and request.target_model.startswith("bert-1.")
        members = {"OriginalStatusCode": 500, "OriginalMessage": "out of memory", "LogStreamArn": "arn:l"}
        return error_reply("ModelError", 424, **members) if failing else echo(request)

    copies.endpoint.reply = reply
    result = copies.invoke("bert", "--each-copy", "--input", copies.pixels())
    assert isinstance(result.exception, WorkFailedError)
    assert f"dev-digits (bert-1.{DIGEST}.tar.gz)" in str(result.exception)
    assert "out of memory" in str(result.exception)


def test_a_model_with_copies_is_no_name_of_one_and_rounds_are_of_each_copy(copies: World) -> None:
    name = copies.invoke("bert", "--input", copies.pixels())
    assert isinstance(name.exception, InputError)
    [problem] = name.exception.problems
    assert problem.allowed == "a model with a release record: bert-0, bert-1, bert-2"
    assert problem.advice == "name one of the copies; all of them in turn: tritonstack invoke bert --each-copy"
    rounds = copies.invoke("bert-1", "--rounds", "3", "--input", copies.pixels())
    assert isinstance(rounds.exception, InputError)
    assert [each.found for each in rounds.exception.problems] == ["--rounds without --each-copy"]
    assert copies.endpoint.requests == []


def test_inputs_that_the_tensor_table_does_not_allow_are_reported_before_a_request(world: World) -> None:
    error = world.invoke("digits", "--input", world.file("a.npy", np.zeros((2, 5))), "--output", "label").exception
    assert isinstance(error, InputError)
    assert [problem.field for problem in error.problems] == ["inputs.pixels", "inputs.pixels", "outputs.label"]
    assert "a.npy" in (error.problems[0].file or "")
    assert world.endpoint.requests == []


def test_a_pause_is_reported_on_standard_error(world: World) -> None:
    world.endpoint.replies(error_reply("ModelNotReadyException", 429))
    result = world.invoke("digits", "--input", world.pixels(), "--json")
    assert "the model is being loaded; trying again" in result.stderr
    assert json.loads(result.stdout)["attempts"] == 2


def test_an_environment_without_a_file_and_records_is_called_unknown(world: World) -> None:
    path = world.pixels()
    result = CliRunner().invoke(invoke.command, ["digits", "--input", path, "--environment", "stagin"])
    assert isinstance(result.exception, InputError)
    (problem,) = result.exception.problems
    assert problem.found.startswith("stagin, of which there is neither a file")
    assert problem.allowed.endswith(": bert-large, dev, local, prod, prod-eu, staging")
    assert problem.advice == "Did you mean staging?"


def test_a_local_aws_without_a_deployment_is_an_error_with_the_command_to_deploy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.aws.parameters.clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    result = world.invoke("digits", "--input", world.pixels())
    assert isinstance(result.exception, InputError)
    assert [problem.advice for problem in result.exception.problems] == ["tritonstack local deploy -e dev"]


@pytest.fixture
def systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Systems]:
    """The stand-in, which the command takes for AWS."""
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "home"))
    with running_systems(tmp_path) as running:
        monkeypatch.setattr(invoke, "calling_session", lambda _, **__: running.aws)
        yield running


def run(*arguments: str) -> Result:
    return CliRunner().invoke(invoke.command, arguments)


def test_a_text_prints_its_translation_from_the_line_or_a_file(systems: Systems, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("The house is wonderful.\n")
    by_line = run("t5-python", "--text", "The house is wonderful.")
    by_file = run("t5-python", "--input", str(tmp_path / "text.txt"))
    assert by_line.output.splitlines()[0] == by_file.output.splitlines()[0] == TRANSLATION
    first, second = systems.endpoint.requests
    assert first.content == second.content


@pytest.mark.usefixtures("systems")
def test_a_second_text_needs_a_first_one_and_a_model_that_takes_pairs() -> None:
    alone = run("t5-python", "--text-pair", "house").exception
    assert isinstance(alone, InputError)
    assert "--text FIRST --text-pair SECOND" in str(alone)
    single = run("t5-python", "--text", "house", "--text-pair", "wonderful").exception
    assert isinstance(single, InputError)
    assert "write `pair: true` into adapters.text" in str(single)


def test_an_embedding_prints_its_length_and_its_first_values(systems: Systems) -> None:
    first = run("bert-tensorrt-0", "--text", "house").output.splitlines()[0]
    assert first.startswith("768 values of FP32: 0.")
    assert first.endswith(", …")
    assert first.count("0.") == 6
    assert len(systems.endpoint.requests) == 1
    assert "[1, 128, 768]" in run("bert-tensorrt-0", "--text", "house", "--raw").output


@pytest.mark.usefixtures("systems")
def test_json_holds_the_meaning_next_to_the_arrays(tmp_path: Path) -> None:
    image = str(image_file(tmp_path / "dog.png"))
    (classes,) = json.loads(run("inception-ensemble", "--input", image, "--json").stdout)["meanings"]
    assert len(classes["classes"]) == 5
    assert classes["classes"][0].keys() == {"index", "name", "score"}
    printed = json.loads(run("t5-python", "--text", "house", "--json").stdout)
    assert printed["meanings"] == [{"text": TRANSLATION}]
    assert printed["outputs"][0]["data"] == [2, 4, 5, 6, 7, 3]
    (vector,) = json.loads(run("bert-tensorrt-0", "--text", "house", "--json").stdout)["meanings"]
    assert len(vector["embedding"]) == 768
    assert "meanings" not in json.loads(run("t5-python", "--text", "house", "--json", "--raw").stdout)


def test_a_models_text_does_not_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    response = ModelResponse(
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
    invoke.show(response)
    assert capsys.readouterr().out.startswith("das\\x1b[2J \nHaus ist schön\\x9b\n")


def sent(world: World) -> tuple[str, list[list[float]]]:
    """Content type and pixels of the last request."""
    request = world.endpoint.requests[-1]
    _, arrays = read_request(request.content, request.content_type)
    return request.content_type, arrays["pixels"].tolist()


def test_data_of_the_line_and_of_standard_input_are_rows_of_a_batch(world: World) -> None:
    rows = '[{"pixels": [0, 1, 2, 3]}, {"pixels": [4, 5, 6, 7]}]'
    both = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    for arguments, given in ((["--data", rows], ""), (["--data", "-"], rows), (["--input", "-"], rows)):
        command = ["digits", *arguments, "--environment", "dev"]
        result = CliRunner().invoke(invoke.command, command, input=given)
        assert result.exit_code == 0, result.exception
        assert sent(world) == ("application/json", both)
    twice = CliRunner().invoke(invoke.command, ["digits", "--data", "-", "--input", "-", "-e", "dev"])
    assert isinstance(twice.exception, InputError)
    assert twice.exception.problems[0].found == "standard input 2 times"


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        (["--binary"], "application/vnd.sagemaker-triton.binary+json;json-header-size="),
        (["--payload", "binary"], "application/vnd.sagemaker-triton.binary+json;json-header-size="),
        (["--payload", "json"], "application/json"),
        ([], "application/json"),
    ],
)
def test_the_payload_is_the_one_that_was_picked(world: World, options: list[str], begins: str) -> None:
    result = world.invoke("digits", "--data", '{"pixels": [0, 1, 2, 3]}', *options)
    assert result.exit_code == 0, result.exception
    content_type, pixels = sent(world)
    assert content_type.startswith(begins)
    assert pixels == [[0.0, 1.0, 2.0, 3.0]]
    asked = json.loads(world.endpoint.requests[-1].content.split(b"}]", 1)[0] + b"}]}") if not options else None
    assert asked is None or asked["inputs"][0]["name"] == "pixels"


def test_nothing_to_send_names_every_option_that_sends_something(world: World) -> None:
    error = world.invoke("digits").exception
    assert isinstance(error, InputError)
    for option in ("--data '{…}'", "--data -", "--input FILE", "--text TEXT", "--image FILE"):
        assert option in error.problems[0].allowed


def test_text_twice_is_a_batch_of_two_with_a_meaning_each(systems: Systems) -> None:
    result = run("t5-python", "--text", "The house", "--text", "The house is wonderful.", "--json")
    assert [each["text"] for each in json.loads(result.stdout)["meanings"]] == [TRANSLATION, TRANSLATION]
    request = systems.endpoint.requests[-1]
    _, arrays = read_request(request.content, request.content_type)
    assert {array.shape[0] for array in arrays.values()} == {2}


def test_image_twice_is_a_batch_of_two(systems: Systems, tmp_path: Path) -> None:
    image = str(image_file(tmp_path / "dog.png"))
    result = run("resnet50-onnx", "--image", image, "--image", image, "--json")
    assert len(json.loads(result.stdout)["meanings"]) == 2
    assert systems.endpoint.requests


@pytest.mark.parametrize(
    ("texts", "pairs", "found"),
    [
        (["q"], ["a", "b"], [("q", "a"), ("q", "b")]),
        (["q", "r"], ["a", "b"], [("q", "a"), ("r", "b")]),
        (["q", "r"], [], ["q", "r"]),
        (["q", "r"], ["a"], "2 --text and 1 --text-pair"),
        ([], ["a"], "no --text"),
    ],
)
def test_pairs_are_one_for_each_text_or_several_for_one(texts: list[str], pairs: list[str], found: Any) -> None:
    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            invoke._texts(texts, pairs)
    else:
        assert invoke._texts(texts, pairs) == found


def streamed(*words: str) -> Any:
    """A stream of a model's words."""
    events = [{"model_name": "digits", "model_version": "1", "pixels": word} for word in words]
    return stream_reply(*(payload_parts(b"data: " + json.dumps(each).encode() + b"\n\n") for each in events))


@pytest.fixture
def streaming(world: World) -> World:
    """The same, of an endpoint that streams."""
    world.aws.parameters["/tritonstack/dev/_outputs/serving-digits"] = serving_outputs("single-model", streams=True)
    world.endpoint.always(streamed("Once", " upon", " a time"))
    return world


PIXELS = ("--data", '{"pixels": [0, 1, 2, 3]}')


def test_a_stream_is_printed_as_one_text_with_its_times_after_it(streaming: World) -> None:
    result = streaming.invoke(
        "digits", *PIXELS, "--stream", "--parameter", "max_tokens=3", "--parameter", "style=plain"
    )
    assert result.exit_code == 0, result.output
    assert result.stdout == "Once upon a time\n3 events: the first after 0.0 ms, then one every 0.0 ms; 0.0 ms in all\n"
    sent = json.loads(streaming.endpoint.requests[0].content)
    assert sent == {"pixels": [0, 1, 2, 3], "max_tokens": 3, "style": "plain"}


def test_a_stream_in_json_is_a_line_an_event_and_its_times_are_on_standard_error(streaming: World) -> None:
    result = streaming.invoke("digits", *PIXELS, "--stream", "--json", "--output", "pixels")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert events == [{"milliseconds": 0.0, "outputs": {"pixels": word}} for word in ("Once", " upon", " a time")]
    assert "3 events" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--stream", "--each-copy"), "--each-copy"),
        (("--stream", "--binary"), "Triton takes no other"),
        (("--parameter", "a=1"), "without --stream"),
        (("--stream", "--parameter", "a"), "NAME=VALUE"),
        (("--stream", "--output", "LOGITS"), "pixels"),
        ((), "add --stream"),
    ],
)
def test_options_that_a_stream_does_not_have_are_refused(
    options: tuple[str, ...], message: str, streaming: World
) -> None:
    result = streaming.invoke("digits", *PIXELS, *options)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
