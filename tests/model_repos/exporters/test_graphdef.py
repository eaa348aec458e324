"""Exports to TensorFlow's GraphDef, and their proofs."""

from __future__ import annotations

import pytest

from tests.environments import needs
from tests.model_repos.exporters.torch_environment import ROOT, TENSORFLOW, Tasks, run_tasks

pytestmark = needs("tensorflow")

TASKS = (
    "export",
    "export_variable",
    "export_of_another_shape",
)


@pytest.fixture(scope="module")
def graphdefs(tmp_path_factory: pytest.TempPathFactory) -> Tasks:
    """Every task of ``in_tensorflow.py``, run once."""
    folder = tmp_path_factory.mktemp("graphdefs")
    return run_tasks(folder, *TASKS, program="in_tensorflow.py", python=TENSORFLOW, PYTHONHASHSEED="1")


def test_a_graphdef_has_the_configurations_names_and_no_device_and_answers_exactly(graphdefs: Tasks) -> None:
    assert graphdefs.given("export") == {
        "difference": 0.0,
        "placeholders": ["x"],
        "attributes": ["T"],  # transpose_a, transpose_b and what newer ones added are at their defaults
        "output": "Identity",
        "devices": [""],
    }


@pytest.mark.long
def test_two_exports_have_the_same_bytes_and_name_no_place(
    graphdefs: Tasks, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("again")
    again = run_tasks(folder, "export", program="in_tensorflow.py", python=TENSORFLOW, PYTHONHASHSEED="2")
    content = (graphdefs.folder / "export/model.graphdef").read_bytes()
    assert content == (again.folder / "export/model.graphdef").read_bytes()
    assert str(ROOT).encode() not in content
    assert b".py" not in content


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("export_variable", "weight is a variable: a GraphDef needs weights that are constants"),
        ("export_of_another_shape", "output Model/y: float32 [None, 2] built, float32 [None, 3] wanted"),
    ],
)
def test_a_model_that_is_not_the_graphs_is_refused_and_leaves_no_file(graphdefs: Tasks, task: str, said: str) -> None:
    assert graphdefs.refused(task) == said
    assert graphdefs.files(task) == []
