"""What the tests of the exporters share."""

from __future__ import annotations

import pytest

from tests.model_repos.exporters.torch_environment import Tasks, run_tasks

TASKS = (
    "trace_encoder",  # the first: how TorchScript calls classes depends on what was traced before
    "export_encoder",
    "export_externally",
    "export_to_older_operators",
    "export_to_operators_that_it_needs",
    "export_with_other_tensors",
    "export_batch_that_is_fixed",
    "trace_batch_that_is_fixed",
    "trace_device",
    "hub_folder",
    "load_pretrained",
    "load_damaged",
    "load_lacking",
    "load_without_a_head",
    "load_another_size",
)


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Tasks:
    """Every task of ``in_torch.py``, run once."""
    return run_tasks(tmp_path_factory.mktemp("tasks"), *TASKS, PYTHONHASHSEED="1")


@pytest.fixture(scope="session")
def again(tmp_path_factory: pytest.TempPathFactory) -> Tasks:
    return run_tasks(tmp_path_factory.mktemp("again"), "trace_encoder", "export_encoder", PYTHONHASHSEED="2")
