"""Configurations that Triton completes: from the files or the graph, or by the model's own program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.lint.onnx_files import write_graph
from tests.models.folders import CONFIG, write
from tritonstack.lint import lint_folder

X, Y = "{ name: 'x' data_type: TYPE_FP32 dims: [ 4 ] }", "{ name: 'y' data_type: TYPE_FP32 dims: [ 2 ] }"
WARMUP = (
    "model_warmup [ { name: 'w' batch_size: %d inputs { key: '%s' value "
    "{ data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } } ]"
)
BOTH = f"input [ {X} ] output [ {Y} ]"


def graph_of(*, x: Sequence[Any] = ("n", 4), y: Sequence[Any] = ("n", 2), **more: Any) -> dict[str, Any]:
    """A graph with one input and one output."""
    tensors = {"inputs": ("x", x), "outputs": ("y", y)}
    graph: dict[str, Any] = {
        kind: [{"name": name, "dtype": "FP32", "shape": list(shape)}] for kind, (name, shape) in tensors.items()
    }
    return graph | more


SEQUENCES = (
    "sequence_batching { control_input { name: 'START' "
    "control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } } }"
)
STATES = "sequence_batching { state { input_name: 'past' output_name: 'y' data_type: TYPE_FP32 dims: 4 } }"
COUNTS = "batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'counts' data_type: TYPE_FP32 source_input: 'x' }"


def with_input(name: str, dtype: str, *axes: int) -> dict[str, Any]:
    """The graph with one more input, of a batch."""
    graph = graph_of()
    return graph | {"inputs": [*graph["inputs"], {"name": name, "dtype": dtype, "shape": ["n", *axes]}]}


def errors(folder: Path) -> list[str]:
    return [each.rule for each in lint_folder(folder) if each.level == "error"]


def net(root: Path, config: str | None, graph: Mapping[str, Any]) -> Path:
    (root / "r/net/1").mkdir(parents=True)
    write_graph(root / "r/net/1/model.onnx", graph)
    if config is not None:
        (root / "r/net/config.pbtxt").write_text(config)
    return root / "r"


@pytest.mark.parametrize(
    ("config", "graph", "rules"),
    [
        (None, graph_of(), []),
        ("", graph_of(), []),
        (f"{BOTH} max_batch_size: 8", graph_of(), []),
        (f"{BOTH} max_batch_size: 8", graph_of(x=["n", 5]), ["onnx-shape"]),
        (f"{BOTH} max_batch_size: 8 default_model_filename: 'model.onnx'", graph_of(x=["n", 5]), ["onnx-shape"]),
        (f"{BOTH} max_batch_size: 8", graph_of(y=["n", None]), ["onnx-shape"]),
        ("max_batch_size: 8", graph_of(x=[1, 4]), ["onnx-batch"]),
        ("max_batch_size: 8", graph_of(y=[2]), ["onnx-batch"]),
        (f"input [ {X} ]", graph_of(), []),
        ("input [ { name: 'x' data_type: TYPE_FP32 dims: [ -1, 4 ] } ]", graph_of(), ["onnx-shape"]),
        (
            f"max_batch_size: 8 output [ {Y} ] input [ {{ name: 'x' data_type: TYPE_FP32 }} ]",
            graph_of(),
            ["tensor-dims"],
        ),
        (BOTH, graph_of(x=[4], y=[2]), []),
        (BOTH.replace("[ 2 ]", "[ 1 ]"), graph_of(x=[4], y=[]), []),
        (BOTH, graph_of(x=[4], y=[]), ["onnx-shape"]),
        ("", graph_of(x=["n"], y=["n"]), []),
        (WARMUP % (4, "x"), graph_of(), []),
        (WARMUP % (5, "x"), graph_of(), ["warmup-batch"]),
        (WARMUP % (1, "z"), graph_of(), ["warmup-input"]),
        (f"{BOTH} max_batch_size: 8 {SEQUENCES}", with_input("START", "FP32", 1), []),
        (f"{BOTH} max_batch_size: 8 {SEQUENCES}", graph_of(), ["onnx-tensor"]),
        (f"{BOTH} max_batch_size: 8 {SEQUENCES}", with_input("START", "FP32", 2), ["onnx-shape"]),
        (f"{BOTH} max_batch_size: 8 {SEQUENCES}", with_input("START", "INT32", 1), ["onnx-type"]),
        (f"{BOTH} max_batch_size: 8 {STATES}", with_input("past", "FP32", 4), []),
        (f"{BOTH} max_batch_size: 8 {STATES}", graph_of(), ["onnx-tensor"]),
        (f"{BOTH} max_batch_size: 8 {COUNTS}", with_input("counts", "FP32"), []),
        (f"{BOTH} max_batch_size: 8 {COUNTS}", graph_of(), ["onnx-tensor"]),
    ],
)
def test_an_onnx_model_is_held_against_its_graph_as_the_backend_completes_it(
    tmp_path: Path, config: str | None, graph: dict[str, Any], rules: list[str]
) -> None:
    assert errors(net(tmp_path, config, graph)) == rules


@pytest.mark.parametrize(
    ("policy", "wrong", "rules"),
    [
        ("version_policy { all { } }", "1", ["onnx-shape"]),
        ("version_policy { all { } }", "2", ["onnx-shape"]),
        ("", "2", ["onnx-shape"]),
        ("", "1", []),
        ("version_policy { specific { versions: [ 1 ] } }", "2", []),
    ],
)
def test_the_graph_of_every_version_that_is_served_is_compared(
    tmp_path: Path, policy: str, wrong: str, rules: list[str]
) -> None:
    folder = net(tmp_path, f"{BOTH} max_batch_size: 8 {policy}", graph_of())
    (folder / "net/2").mkdir()
    for version in ("1", "2"):
        write_graph(folder / f"net/{version}/model.onnx", graph_of(x=["n", 5 if version == wrong else 4]))
    assert errors(folder) == rules


@pytest.mark.parametrize(
    ("config", "graph", "rules"),
    [
        ("dynamic_batching { }", graph_of(), set()),
        ("dynamic_batching { }", graph_of(x=[1, 4], y=[1, 2]), {"dynamic-batching"}),
        (WARMUP % (1, "x"), graph_of(), set()),
        (WARMUP % (1, "z"), graph_of(), {"warmup-unknown-input"}),
    ],
)
def test_warnings_are_of_the_completed_configuration(
    tmp_path: Path, config: str, graph: dict[str, Any], rules: set[str]
) -> None:
    found = {each.rule for each in lint_folder(net(tmp_path, config, graph)) if each.level == "warning"}
    assert found & {"dynamic-batching", "warmup-unknown-input"} == rules


def test_a_tensor_of_one_number_per_request_is_suggested_as_what_both_then_accept(tmp_path: Path) -> None:
    config = f"max_batch_size: 8 input [ {X} ] output [ {Y} ]"
    folder = net(tmp_path, config, graph_of(y=[None]))
    (finding,) = [each for each in lint_folder(folder) if each.level == "error"]
    fields = finding.allowed.partition(", as in")[0]
    assert fields == "dims: [ 1 ] reshape { shape: [ ] }"
    (folder / "net/config.pbtxt").write_text(config.replace("dims: [ 2 ]", fields))
    assert errors(folder) == []


@pytest.mark.parametrize(
    ("lines", "rules"),
    [
        (["inputs = [{'name': 'x', 'data_type': 'TYPE_FP32', 'dims': [1]}]", "for each in inputs:",
          "    config.add_input(each)", "return config"], []),
        (["names = []", "for each in config.as_dict()['input']:", "    names.append(each['name'])",
          "if 'x' not in names:", "    config.add_input({})", "return config"], []),
        (["for each in [{'dims': [1]}]:", "    if each['name'] not in []:", "        config.add_input(each)",
          "return config"], ["python-auto-complete"]),
        (["config.add_input(X)", "return config"], ["python-auto-complete"]),
        (["config.add_input({'name': 'x', 'data_type': KIND, 'dims': SEVERAL})", "return config"], []),
        (["config.set_max_batch_size(limit())", "return config"], []),
        (["if config.as_dict()['platform']:", "    raise ValueError", "return config"], []),
        (["x = []", "for i in [1, 2] * 50:", "    x = [x, x]", "return x"], []),
        (["x, all = [], [1]", "return config"], []),
        (["x = []", "for i in LONG:", "    y = []", "    y.append(x)", "    y.append(x)", "    x = y", "return x"], []),
        (["x = []", "for i in LONG:", "    for j in LONG:", "        x = [x, x]", "return x"], []),
    ],
)  # fmt: skip
def test_literals_of_a_program_are_evaluated_and_what_only_running_shows_is_no_error(
    tmp_path: Path, lines: list[str], rules: list[str]
) -> None:
    """What the calls of a program complete or break is in the tables of ``tests/differential``."""
    constants = "X = {'name': 'x', 'data_type': 'TYPE_FP32', 'dims': [2]}\nSEVERAL = [2]\nSEVERAL = [1]\n"
    constants += f"KIND = 'TYPE_FP32'\nLONG = {[*range(100)]}\n"
    head = f"{constants}class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n"
    program = head + "".join(f"        {line}\n" for line in lines) + "    def execute(self, requests): ...\n"
    write(tmp_path / "r", {"double/1/model.py": program, "double/config.pbtxt": CONFIG})
    assert errors(tmp_path / "r") == rules


COMPLETES = """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [4]})
        config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [2]})
        config.set_max_batch_size(SIZE)
        return config

    def execute(self, requests): ...
"""


@pytest.mark.parametrize(
    ("size", "key", "rules"),
    [
        ("8", "x", []),
        ("2", "x", ["ensemble-batch"]),
        ("8", "features", ["ensemble-map", "ensemble-map"]),
        ("int('2')", "features", []),
    ],
)
def test_an_ensemble_is_compared_with_what_the_literals_of_a_steps_program_complete(
    tmp_path: Path, size: str, key: str, rules: list[str]
) -> None:
    steps = f"""
        platform: "ensemble" max_batch_size: 8
        input [ {X} ] output [ {Y} ]
        ensemble_scheduling {{ step [ {{ model_name: "net" model_version: -1
          input_map {{ key: "{key}" value: "x" }} output_map {{ key: "y" value: "y" }} }} ] }}
    """
    files = {"net/1/model.py": COMPLETES.replace("SIZE", size), "net/config.pbtxt": 'backend: "python"'}
    write(tmp_path / "r", files | {"all/config.pbtxt": steps, "all/1/.gitkeep": ""})
    assert errors(tmp_path / "r") == rules


def test_an_ensembles_steps_are_compared_with_what_their_backends_complete(tmp_path: Path) -> None:
    steps = """
        name: "chain" platform: "ensemble" max_batch_size: 4
        input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
        output [ { name: "out" data_type: TYPE_FP32 dims: [ 3 ] } ]
        ensemble_scheduling { step [ { model_name: "net" model_version: -1
          input_map { key: "x" value: "x" } output_map { key: "y" value: "out" } } ] }
    """
    folder = net(tmp_path, None, graph_of())
    write(folder, {"chain/config.pbtxt": steps})
    (folder / "chain/1").mkdir()
    assert errors(folder) == ["ensemble-tensor-differs"]
