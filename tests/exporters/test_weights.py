"""Pretrained weights: read from a folder laid out like the hub, and refused where they do not make the model."""

from __future__ import annotations

import pytest

from tests.exporters.torch_environment import Tasks, needs_torch

pytestmark = needs_torch


def test_a_model_has_the_weights_of_its_file(tasks: Tasks) -> None:
    given = tasks.given("load_pretrained")
    assert given["sum"] == given["saved"] != 0


def test_counters_of_training_may_be_missing(tasks: Tasks) -> None:
    assert tasks.given("load_without_counters")["sum"] == tasks.given("load_pretrained")["sum"]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("load_damaged", "cannot be read: "),
        ("load_lacking", "lacks 1 weights of ResNetForImageClassification, which would stay random: classifier.1.bias"),
        (
            "load_another_size",
            "pretrained weights have their own size (build with --size full): embedding_size is 8, not 16",
        ),
    ],
)
def test_a_file_that_does_not_make_the_model_is_refused(tasks: Tasks, task: str, said: str) -> None:
    assert said in tasks.refused(task)
