"""Exports to ONNX: what they are, what they do not tell, what is refused."""

from __future__ import annotations

from tests.exporters.torch_environment import ROOT, Tasks, needs_torch

pytestmark = needs_torch


def test_integers_of_32_bits_and_two_dynamic_axes_are_exported_and_proved(tasks: Tasks) -> None:
    assert tasks.given("export_encoder")["difference"] <= 1e-4


def test_two_exports_have_the_same_bytes_and_name_no_place(tasks: Tasks, again: Tasks) -> None:
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


def test_weights_stay_out_of_the_conversion_to_older_operators_and_nothing_else_changes(tasks: Tasks) -> None:
    given = tasks.given("convert_without_weights")
    assert given["same"]
    assert given["left_out"] >= given["weights"]


def test_operators_that_are_too_old_for_the_model_are_refused(tasks: Tasks) -> None:
    assert "operator set 9" in tasks.refused("export_to_operators_that_it_needs")
    assert tasks.files("export_to_operators_that_it_needs") == []


def test_every_difference_to_the_recipe_is_named(tasks: Tasks) -> None:
    said = tasks.refused("export_with_other_tensors")
    assert "output wide: type FLOAT exported, the recipe says FP16" in said
    assert "output pooled: shape ['batch', 6] exported, the recipe says [1, 6]" in said
    assert tasks.files("export_with_other_tensors") == []


def test_an_axis_that_is_fixed_is_not_called_dynamic(tasks: Tasks) -> None:
    said = tasks.refused("export_axis_that_is_fixed")
    assert "output y: shape ['batch', 6] exported, the recipe says ['batch', 'anything']" in said


def test_a_module_that_fixes_its_batch_is_refused(tasks: Tasks) -> None:
    said = tasks.refused("export_batch_that_is_fixed")
    assert "input x: shape [2, 4] exported, the recipe says ['batch', 4]" in said
    assert tasks.files("export_batch_that_is_fixed") == []


def test_what_pytorch_cannot_export_is_said_in_a_sentence_with_the_line(tasks: Tasks) -> None:
    said = tasks.refused("export_what_depends_on_values")
    assert "PyTorch cannot export the model to ONNX: Could not guard on data-dependent expression" in said
    assert "in_torch.py" in said
    assert "\x1b" not in said
