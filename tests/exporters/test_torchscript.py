"""Exports to TorchScript."""

from __future__ import annotations

import zipfile

from tests.exporters.torch_environment import ROOT, Tasks, needs_torch

pytestmark = needs_torch


def test_a_trace_is_the_source_frameworks_model_exactly(tasks: Tasks) -> None:
    assert tasks.given("trace_encoder") == {"difference": 0.0}


def test_two_exports_have_the_same_bytes_and_name_no_place(tasks: Tasks, again: Tasks) -> None:
    path = tasks.folder / "trace_encoder/model.pt"
    assert path.read_bytes() == (again.folder / "trace_encoder/model.pt").read_bytes()
    with zipfile.ZipFile(path) as archive:
        inside = b"".join(archive.read(name) for name in archive.namelist())
    assert str(ROOT).encode() not in inside
    assert b"site-packages" not in inside


def test_weights_begin_where_they_can_be_mapped_into_memory(tasks: Tasks) -> None:
    path = tasks.folder / "trace_encoder/model.pt"
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        weights = {
            entry.header_offset: archive.read(entry) for entry in archive.infolist() if "/data/" in entry.filename
        }
    assert len(weights) == 3
    for offset, expected in weights.items():
        lengths = content[offset + 26 : offset + 30]  # of the name and of the extra field
        start = offset + 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
        assert start % 64 == 0
        assert content[start : start + len(expected)] == expected


def test_a_trace_that_fixed_its_batch_fails_its_proof(tasks: Tasks) -> None:
    said = tasks.refused("trace_batch_that_is_fixed")
    assert said.startswith("random input, batch 1: the exported model fails: RuntimeError: shape '[2, 6]' is invalid")


def test_a_trace_with_a_device_in_it_is_refused_with_the_place(tasks: Tasks) -> None:
    said = tasks.refused("trace_device")
    assert "the trace makes tensors on a fixed device, which fails on another: cpu" in said
    assert "in_torch.py" in said
    assert tasks.files("trace_device") == []
