"""Exports to ONNX: what they are, what they do not tell, what is refused."""

from __future__ import annotations

from pathlib import Path

from tests.exporters.torch_environment import ROOT, failure, needs_torch, task

pytestmark = needs_torch


def test_integers_of_32_bits_and_two_dynamic_axes_are_exported_and_proved(tmp_path: Path) -> None:
    assert task("export_encoder", tmp_path)["difference"] <= 1e-4


def test_two_exports_have_the_same_bytes_and_name_no_place(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    task("export_encoder", first, PYTHONHASHSEED="1")
    task("export_encoder", second, PYTHONHASHSEED="2")
    content = (first / "model.onnx").read_bytes()
    assert content == (second / "model.onnx").read_bytes()
    assert str(ROOT).encode() not in content
    assert b"site-packages" not in content


def test_weights_above_the_limit_lie_beside_the_graph(tmp_path: Path) -> None:
    assert task("export_externally", tmp_path)["difference"] <= 1e-4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]


def test_every_difference_to_the_recipe_is_named(tmp_path: Path) -> None:
    said = failure("export_with_other_tensors", tmp_path)
    assert "output wide: type FLOAT exported, the recipe says FP16" in said
    assert "output pooled: shape ['batch', 6] exported, the recipe says [1, 6]" in said
    assert list(tmp_path.iterdir()) == []


def test_an_axis_that_is_fixed_is_not_called_dynamic(tmp_path: Path) -> None:
    said = failure("export_axis_that_is_fixed", tmp_path)
    assert "output y: shape ['batch', 6] exported, the recipe says ['batch', 'anything']" in said


def test_a_module_that_fixes_its_batch_is_refused(tmp_path: Path) -> None:
    said = failure("export_batch_that_is_fixed", tmp_path)
    assert "input x: shape [2, 4] exported, the recipe says ['batch', 4]" in said
    assert list(tmp_path.iterdir()) == []


def test_what_pytorch_cannot_export_is_said_in_a_sentence(tmp_path: Path) -> None:
    said = failure("export_what_depends_on_values", tmp_path)
    assert "PyTorch cannot export the model to ONNX: " in said
    assert "data-dependent" in said
    assert "\x1b" not in said
