"""Tensor tables refuse what the model would; client files are fetched once and checked."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fake_aws import ARTIFACTS, FakeAws
from tritonstack.client.errors import ClientFileError
from tritonstack.client.manifest import ClientFile, ClientFiles, TensorSpec, TensorTable

TABLE = TensorTable(
    inputs=(
        TensorSpec(name="image", datatype="FP32", shape=(-1, 8, 8)),
        TensorSpec(name="label", datatype="BYTES", shape=(-1, 1)),
        TensorSpec(name="seed", datatype="INT64", shape=(-1, 1)),
    ),
    outputs=(TensorSpec(name="scores", datatype="FP32", shape=(-1, 10)),),
    max_batch_size=4,
    optional_inputs=frozenset({"seed"}),
)


def test_wrong_name_type_shape_and_output_are_reported_at_once() -> None:
    inputs = {"image": np.zeros((1, 64)), "imgae": np.zeros(1)}
    found = {(problem.field, problem.found, problem.allowed) for problem in TABLE.problems(inputs, ["score"], file="x")}
    assert found == {
        ("inputs.image", "datatype FP64 (NumPy's float64)", "datatype FP32"),
        ("inputs.image", "shape [1, 64]", "shape [-1, 8, 8]"),
        ("inputs.imgae", "no such input", "image FP32 [-1, 8, 8]; label BYTES [-1, 1]; seed INT64 [-1, 1]"),
        ("inputs.label", "nothing", "label BYTES [-1, 1]"),
        ("outputs.score", "no such output", "scores FP32 [-1, 10]"),
    }


def test_a_missing_batch_dimension_and_a_batch_that_is_too_large_are_named() -> None:
    inputs = {"image": np.zeros((8, 8), np.float32), "label": np.array([["a"]])}
    (problem,) = TABLE.problems(inputs)
    assert "batch dimension" in problem.advice
    (problem,) = TABLE.problems({"image": np.zeros((5, 8, 8), np.float32), "label": np.array([["a"]] * 4)})
    assert (problem.found, problem.allowed) == ("a batch of 5", "at most 4")


CONTENT = b"cat\ndog\n"


KEY = "manifests/cv/24.09-t4/resnet.0123456789abcdef/labels.txt"


def bucket_with(content: bytes = CONTENT) -> FakeAws:
    """An account whose bucket has one file."""
    aws = FakeAws()
    aws.artifacts.update({KEY: content, "b": content})
    return aws


def labels(**fields: Any) -> ClientFile:
    stated: dict[str, Any] = {
        "name": "labels.txt",
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "bytes": len(CONTENT),
        "bucket": ARTIFACTS,
        "key": KEY,
    }
    return ClientFile(**(stated | fields))


def test_a_file_is_fetched_once_and_lies_under_its_content(tmp_path: Path) -> None:
    aws = bucket_with()
    s3 = aws.client("s3")
    files = ClientFiles(s3=lambda: s3, folder=tmp_path)
    for _ in range(3):
        path = files.paths({"labels.txt": labels()}, ["labels.txt"])["labels.txt"]
    assert path == tmp_path / labels().sha256
    assert path.read_bytes() == CONTENT
    assert [request["Key"] for request in aws.requests("GetObject")] == [KEY]
    assert ClientFiles(s3=lambda: s3, folder=tmp_path).path(labels(name="a", key="b")) == path
    assert len(aws.requests("GetObject")) == 1, "another client finds it there, whatever model it is of"
    other = bucket_with()
    other_s3 = other.client("s3")
    shared = ClientFiles(s3=lambda: other_s3, folder=tmp_path / "shared")
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: shared.path(labels()), range(32)))) == 1
    assert len(other.requests("GetObject")) == 1


@pytest.mark.parametrize("there", [b"", b"cat\n", b"cow\ndog\n"])
def test_a_kept_file_that_is_damaged_is_fetched_again(tmp_path: Path, there: bytes) -> None:
    (tmp_path / labels().sha256).write_bytes(there)
    assert ClientFiles(s3=lambda: bucket_with().client("s3"), folder=tmp_path).path(labels()).read_bytes() == CONTENT


@pytest.mark.parametrize("sent", [b"", b"cat\n", b"cow\ndog\n", CONTENT + b"more"])
def test_another_file_than_the_published_one_is_refused_and_not_kept(tmp_path: Path, sent: bytes) -> None:
    files = ClientFiles(s3=lambda: bucket_with(sent).client("s3"), folder=tmp_path)
    with pytest.raises(ClientFileError, match=r"labels\.txt is not the file that was published"):
        files.path(labels())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_fetched_is_named_with_its_place(tmp_path: Path) -> None:
    files = ClientFiles(s3=lambda: bucket_with().client("s3"), folder=tmp_path)
    with pytest.raises(ClientFileError, match=r"labels\.txt cannot be fetched from s3://artifacts/gone: .*NoSuchKey"):
        files.path(labels(key="gone"))
    with pytest.raises(ClientFileError, match=r"no client file tokenizer\.json was published"):
        files.paths({"labels.txt": labels()}, ["labels.txt", "tokenizer.json"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("digest", ["../../etc/passwd", "", "A" * 64, "0" * 63])
def test_what_is_no_sha_256_never_becomes_a_path(digest: str) -> None:
    with pytest.raises(ValueError, match="is no SHA-256"):
        labels(sha256=digest)
