"""Exports to TorchScript."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.exporters.torch_environment import ROOT, failure, needs_torch, task

pytestmark = needs_torch


def test_two_exports_have_the_same_bytes_and_name_no_place(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert task("trace_encoder", first, PYTHONHASHSEED="1") == {"difference": 0.0}
    task("trace_encoder", second, PYTHONHASHSEED="2")
    content = (first / "model.pt").read_bytes()
    assert content == (second / "model.pt").read_bytes()
    with zipfile.ZipFile(first / "model.pt") as archive:
        inside = b"".join(archive.read(name) for name in archive.namelist())
    assert str(ROOT).encode() not in inside
    assert b"site-packages" not in inside


def test_weights_begin_where_they_can_be_mapped_into_memory(tmp_path: Path) -> None:
    task("trace_encoder", tmp_path)
    with zipfile.ZipFile(tmp_path / "model.pt") as archive:
        weights = [entry for entry in archive.infolist() if "/data/" in entry.filename]
        for entry in weights:
            with archive.open(entry) as content:
                expected = content.read()
            with (tmp_path / "model.pt").open("rb") as file:
                file.seek(entry.header_offset + 26)
                lengths = file.read(4)
                start = entry.header_offset + 30
                start += int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
                file.seek(start)
                assert file.read(len(expected)) == expected
            assert start % 64 == 0
    assert len(weights) == 3


def test_a_trace_that_fixed_its_batch_fails_its_proof(tmp_path: Path) -> None:
    assert "random input, batch 1: the exported model fails" in failure("trace_batch_that_is_fixed", tmp_path)


def test_a_trace_with_a_device_in_it_is_refused_with_the_place(tmp_path: Path) -> None:
    said = failure("trace_device", tmp_path)
    assert "the trace makes tensors on a fixed device" in said
    assert "cpu" in said
    assert "in_torch.py" in said
    assert list(tmp_path.iterdir()) == []
