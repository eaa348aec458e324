"""Questions as a person has them, to the repository's own recipes: an image or a text in, a meaning out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.client.fake_triton import read_request
from tests.client.systems import DIGEST, ENDPOINT, ENVIRONMENT, TRANSLATION, Systems, image_file, running_systems
from tritonstack.client import Classes, Embedding, ModelClient, Text
from tritonstack.errors import InputError, WorkFailedError

RESNETS = ("resnet50-torchscript", "resnet50-onnx", "resnet50-tensorrt")
ENCODERS = ("roberta-large-onnx", "bert-tensorrt-0", "bert-large-pytorch")


@pytest.fixture
def systems(tmp_path: Path) -> Iterator[Systems]:
    """The stand-in."""
    with running_systems(tmp_path) as running:
        yield running


@pytest.fixture
def client(systems: Systems, tmp_path: Path) -> ModelClient:
    """A client with a cache of its own."""
    return ModelClient(environment=ENVIRONMENT, session=systems.session, cache_folder=tmp_path / "cache")


@pytest.mark.parametrize("name", [*RESNETS, "inception-ensemble"])
def test_an_image_is_answered_with_the_five_best_classes(client: ModelClient, tmp_path: Path, name: str) -> None:
    path = image_file(tmp_path / "photo.jpg")
    for image in (path, str(path), path.read_bytes()):
        meaning = client.ask(name, image=image).meaning
        assert isinstance(meaning, Classes)
        assert len(meaning.best) == 5
        scores = [label.score for label in meaning.best]
        assert scores == sorted(scores, reverse=True)
        assert all(label.name and not label.name.isdigit() for label in meaning.best)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_text_is_answered_with_a_vector_and_only_that_output_is_asked_for(
    client: ModelClient, systems: Systems, name: str
) -> None:
    answer = client.ask(name, text="The house is wonderful.")
    assert isinstance(answer.meaning, Embedding)
    assert list(answer.outputs) == ["pooled_output"]
    assert answer.meaning.vector.shape == answer.outputs["pooled_output"].shape[1:]
    (request,) = systems.endpoint.requests
    described, _ = read_request(request.content, request.content_type)
    assert [output["name"] for output in described["outputs"]] == ["pooled_output"]
    assert answer.bytes_received < 5000, "the hidden states of each token stay where they are"


def test_other_outputs_come_where_they_are_named(client: ModelClient) -> None:
    answer = client.ask("bert-tensorrt-0", text="house", outputs=["output"])
    assert answer.outputs["output"].shape == (1, 128, 768)
    assert answer.meaning is None


def test_a_text_is_translated(client: ModelClient, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("The house is wonderful.\n")
    for text in ("The house is wonderful.", tmp_path / "text.txt"):
        answer = client.ask("t5-python", text=text)
        assert answer.meaning == Text(text=TRANSLATION)
        assert answer.outputs["output"].dtype == np.int32


def test_client_files_are_fetched_once_and_shared(client: ModelClient, systems: Systems) -> None:
    for name in (*ENCODERS, "t5-python", *ENCODERS):
        client.ask(name, text="house")
    assert sum(key.endswith("tokenizer.json") for key in systems.s3.read) == 1, "they all have the same one here"


def test_what_cannot_be_asked_is_said_before_anything_is_sent(
    client: ModelClient, systems: Systems, tmp_path: Path
) -> None:
    (tmp_path / "a.jpg").write_bytes(b"no image")
    with pytest.raises(InputError, match="not an image that can be read"):
        client.ask("resnet50-onnx", image=tmp_path / "a.jpg")
    with pytest.raises(InputError, match="not an image that can be read") as caught:
        client.ask("resnet50-onnx", image=b"no image")
    assert [problem.field for problem in caught.value.problems] == ["image"]
    with pytest.raises(InputError, match=r"image=… or text=…"):
        client.ask("resnet50-onnx")
    with pytest.raises(InputError, match="no adapter for it") as caught:
        client.ask("resnet50-onnx", text="house")
    assert [(problem.field, problem.allowed) for problem in caught.value.problems] == [("text", "image")]
    assert systems.endpoint.requests == []


def test_without_its_manifest_a_model_cannot_be_asked(client: ModelClient, systems: Systems) -> None:
    systems.s3.objects.clear()
    with pytest.raises(InputError, match="no manifest that can be read"):
        client.ask("t5-python", text="house")


def test_a_client_file_that_is_not_the_published_one_is_not_used(client: ModelClient, systems: Systems) -> None:
    systems.s3.objects[f"manifests/{ENDPOINT}/24.09-t4/t5-python.{DIGEST}/tokenizer.json"] = b"{}"
    with pytest.raises(WorkFailedError, match="is not the file that was published"):
        client.ask("t5-python", text="house")
    assert systems.endpoint.requests == []


@pytest.mark.parametrize(
    "change",
    [
        {"client_files": ["tokenizer.json"]},
        {"client_files": {"tokenizer.json": {"sha256": "../..", "bytes": 1}}},
        {"client_files": {"tokenizer.json": {"bytes": 1}}},
        {"adapters": {"text": {"encoding": "morse", "input": "x"}}},
        {"answers": {"poem": {"output": "x"}}},
        {"model": None},
    ],
)
def test_a_manifest_that_is_none_is_as_good_as_missing(
    client: ModelClient, systems: Systems, change: dict[str, Any]
) -> None:
    systems.s3.objects[f"manifests/{ENDPOINT}/24.09-t4/t5-python.{DIGEST}.json"] |= change
    assert client.tensor_table("t5-python") is None
    with pytest.raises(InputError, match="no manifest that can be read"):
        client.ask("t5-python", text="house")
