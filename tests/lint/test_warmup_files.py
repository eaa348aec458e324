"""Files of warm-up requests with strings: what Triton 24.10 refuses of them, and what it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import MODEL, write
from tritonstack.lint import lint_folder

CONFIG = """\
name: "scores"
backend: "python"
max_batch_size: 4
input [ {{ name: "text" data_type: TYPE_STRING dims: [ {dims} ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 4 ] }} ]
model_warmup [ {{
  name: "w" batch_size: {batch}
  inputs {{ key: "text" value {{ data_type: TYPE_STRING dims: [ {dims} ] input_data_file: "text.raw" }} }}
}} ]
"""
HELLO = b"\5\0\0\0hello"


@pytest.mark.parametrize(
    ("content", "dims", "batch", "found"),
    [
        (HELLO, 1, 1, ""),
        (HELLO, 1, 2, ""),  # the file is one row, which is repeated
        (HELLO * 3, 3, 1, ""),
        (bytes(4), 1, 1, ""),
        (b"hello world", 1, 1, "11 bytes with text without its length"),
        (b"ab", 1, 1, "2 bytes with 0 strings and 2 bytes more"),
        (HELLO * 2, 1, 1, "18 bytes with 2 strings"),
        (HELLO * 2, 1, 2, "18 bytes with 2 strings"),
        (HELLO * 2, 3, 1, "18 bytes with 2 strings"),
        (HELLO + b"\n", 1, 1, "10 bytes with 1 strings and 1 bytes more"),
        (b"", 1, 1, "0 bytes with 0 strings"),
    ],
)
def test_strings_have_their_lengths_and_are_as_many_as_the_shape_has(
    tmp_path: Path, content: bytes, dims: int, batch: int, found: str
) -> None:
    write(tmp_path, {"scores/config.pbtxt": CONFIG.format(dims=dims, batch=batch), "scores/1/model.py": MODEL})
    (tmp_path / "scores/warmup").mkdir()
    (tmp_path / "scores/warmup/text.raw").write_bytes(content)
    errors = [each.found for each in lint_folder(tmp_path) if each.level == "error"]
    assert errors == ([f"warmup/text.raw of {found}"] if found else [])
