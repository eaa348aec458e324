"""Exports of PyTorch modules to ONNX and TorchScript, and their proofs: bytes, refusals, differences."""

from __future__ import annotations

import zipfile

import pytest

from tests.environments import needs
from tests.model_repos.exporters.torch_environment import ROOT, Tasks

pytestmark = needs("torch")


# ONNX.


def test_an_exported_graph_and_a_trace_answer_as_the_module(tasks: Tasks) -> None:
    assert tasks.given("export_encoder")["difference"] <= 1e-4
    assert tasks.given("trace_encoder") == {"difference": 0.0}


@pytest.mark.long
def test_two_onnx_exports_have_the_same_bytes_and_name_no_place(tasks: Tasks, again: Tasks) -> None:
    content = (tasks.folder / "export_encoder/model.onnx").read_bytes()
    assert content == (again.folder / "export_encoder/model.onnx").read_bytes()
    assert str(ROOT).encode() not in content
    assert b"site-packages" not in content


def test_weights_above_the_limit_lie_beside_the_graph(tasks: Tasks) -> None:
    assert tasks.given("export_externally")["difference"] <= 1e-4
    assert tasks.files("export_externally") == ["model.onnx", "model.onnx.data"]


def test_older_operators_have_the_axes_of_a_mean_as_an_attribute(tasks: Tasks) -> None:
    given = tasks.given("export_to_older_operators")
    assert given["difference"] <= 1e-4
    assert (given["opsets"], given["format"], given["axes"]) == ([17], 8, [[1]])


def test_operators_that_are_too_old_and_every_difference_to_the_recipe_are_named(tasks: Tasks) -> None:
    assert "operator set 9" in tasks.refused("export_to_operators_that_it_needs")
    said = tasks.refused("export_with_other_tensors")
    assert "output wide: type FLOAT exported, the recipe has FP16" in said
    assert "output pooled: shape ['batch', 6] exported, the recipe has [1, 6]" in said
    assert tasks.files("export_with_other_tensors") == tasks.files("export_to_operators_that_it_needs") == []


def test_a_module_that_fixes_its_batch_is_refused(tasks: Tasks) -> None:
    said = tasks.refused("export_batch_that_is_fixed")
    assert "input x: shape [2, 4] exported, the recipe has ['batch', 4]" in said
    assert tasks.files("export_batch_that_is_fixed") == []


# TorchScript.


@pytest.mark.long
def test_two_traces_have_the_same_bytes_and_name_no_place(tasks: Tasks, again: Tasks) -> None:
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
