"""A configuration against the engine's manifest: names, types, ranks, lengths and the batch dimension."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cases import cases
from tests.models.folders import make_engine, write
from tritonstack.lint import lint_repository
from tritonstack.models.manifest import EngineEntry, EngineTensor

CONFIG = """name: "net"
backend: "tensorrt"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] }, { name: "k" data_type: TYPE_INT32 dims: [ 2 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]
"""
INPUTS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "x": ("FP32", (1, 1, 4), (8, 64, 4)),
    "k": ("INT32", (1, 2), (8, 2)),
}
OUTPUTS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {"y": ("FP32", (-1, -1, 3), (-1, -1, 3))}
PLAN = "ftrt, and an engine"


def _tensors(described: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]]) -> tuple[EngineTensor, ...]:
    return tuple(EngineTensor(name=n, datatype=kind, min=low, max=high) for n, (kind, low, high) in described.items())


def _entry(**changes: Any) -> EngineEntry:
    own = {"plan": "net/1/model.plan", "bytes": len(PLAN)}
    return make_engine(**own | {"inputs": _tensors(INPUTS), "outputs": _tensors(OUTPUTS)} | changes)


def _found(root: Path, config: str = CONFIG, entry: EngineEntry | None = None) -> list[str]:
    """What is found about a staged repository with this configuration and this plan's manifest."""
    described = (entry or _entry()).model_dump_json()
    write(root, {"net/config.pbtxt": config, "net/1/model.plan": PLAN, "net/1/model.plan.json": described})
    findings = lint_repository(root, addressed="net")
    assert {finding.rule for finding in findings} <= {"engine-batch", "engine-shape", "engine-tensor"}
    return [finding.found for finding in findings]


@cases("old, new, words")
def test_every_difference_is_found(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    assert old in CONFIG
    found = sorted(_found(tmp_path, CONFIG.replace(old, new)))
    assert len(found) == len(words), found
    assert all(one.startswith(start) for one, start in zip(found, sorted(words), strict=True)), found


def test_an_engine_that_takes_no_single_request_is_refused(tmp_path: Path) -> None:
    inputs = INPUTS | {"k": ("INT32", (2, 2), (8, 2))}
    assert _found(tmp_path, entry=_entry(inputs=_tensors(inputs))) == ["input k with max_batch_size 8"]


def test_tensors_that_triton_feeds_itself_need_no_input_in_the_configuration(tmp_path: Path) -> None:
    config = CONFIG.replace(', { name: "k" data_type: TYPE_INT32 dims: [ 2 ] }', "")
    assert _found(tmp_path, config) == ["no input k, which the engine has"]
    fed = 'batch_input [ { kind: BATCH_ITEM_SHAPE target_name: "k" data_type: TYPE_INT32 source_input: "x" } ]\n'
    assert _found(tmp_path, config + fed) == []
