"""A build downloads a recipe's weights from the local AWS as it does from S3."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.models.folders import source_of, write_double
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.errors import InputError
from tritonstack.models.exporting import fetch_source

WEIGHTS = bytes(range(256)) * 50_000
DIGEST = hashlib.sha256(WEIGHTS).hexdigest()


def _source(root: Path, key: str) -> Path:
    folder = write_double(root)
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(f"source: {{s3: 's3://weights-of-tests/{key}', sha256: '{DIGEST}'}}\n")
    return folder


def test_weights_are_downloaded_from_a_bucket(aws: Emulator, tmp_path: Path) -> None:
    aws.client("s3").create_bucket(Bucket="weights-of-tests")
    aws.client("s3").put_object(Bucket="weights-of-tests", Key="a/model.pt", Body=WEIGHTS)
    source = source_of(_source(tmp_path / "there", "a/model.pt"))
    file = fetch_source(source, tmp_path / "sources", session=aws, report=print)
    assert file is not None
    assert file.read_bytes() == WEIGHTS
    absent = source_of(_source(tmp_path / "absent", "b/model.pt"))
    with pytest.raises(InputError, match=r"s3://weights-of-tests/b/model\.pt: NoSuchKey"):
        fetch_source(absent, tmp_path / "others", session=aws, report=print)
