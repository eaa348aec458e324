"""Configurations that Triton completes: from the files, the graph or the model's own program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.models.folders import CONFIG, MODEL, write
from tests.models.lint.onnx_files import write_graph
from tritonstack.models.lint import Target, lint_folder

X, Y = "{ name: 'x' data_type: TYPE_FP32 dims: [ 4 ] }", "{ name: 'y' data_type: TYPE_FP32 dims: [ 2 ] }"
UNSHAPED = X.replace("dims: [ 4 ]", "")
BOTH = f"input [ {X} ] output [ {Y} ]"
ADD_X = 'config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [1]})'
ADD_Y = 'config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [1]})'


def graph_of(*, x: Sequence[Any] = ("n", 4), y: Sequence[Any] = ("n", 2), **more: Any) -> dict[str, Any]:
    """A graph with one input and one output."""
    tensors = {"inputs": ("x", x), "outputs": ("y", y)}
    graph: dict[str, Any] = {
        kind: [{"name": name, "dtype": "FP32", "shape": list(shape)}] for kind, (name, shape) in tensors.items()
    }
    return graph | more


def errors(folder: Path, *, multi_model: bool | None = None) -> list[str]:
    target = Target(multi_model=multi_model, backends=frozenset({"python", "onnxruntime", "identity"}))
    return [each.rule for each in lint_folder(folder, target=target) if each.level == "error"]


def net(root: Path, config: str | None, graph: Mapping[str, Any]) -> Path:
    (root / "r/net/1").mkdir(parents=True)
    write_graph(root / "r/net/1/model.onnx", graph)
    if config is not None:
        (root / "r/net/config.pbtxt").write_text(config)
    return root / "r"


def double(root: Path, config: str | None, program: str = MODEL, *, name: str = "double") -> Path:
    write(root / "r", {f"{name}/1/model.py": program} | ({} if config is None else {f"{name}/config.pbtxt": config}))
    return root / "r"


def completing(*lines: str) -> str:
    """A Python model whose ``auto_complete_config`` has these lines."""
    body = "".join(f"        {line}\n" for line in lines)
    head = "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n"
    return f"{head}{body}\n    def execute(self, requests):\n        return []\n"


@pytest.mark.parametrize("config", [None, "", 'name: "double"', 'backend: "python"', CONFIG.partition("output")[0]])
def test_a_python_model_that_says_little_or_nothing_loads_and_is_warned_of(tmp_path: Path, config: str | None) -> None:
    folder = double(tmp_path, config)
    assert errors(folder) == []
    assert "auto-completed" in [each.rule for each in lint_folder(folder)]


@pytest.mark.parametrize("multi_model", [True, None])
def test_another_name_than_the_folders_is_no_error_in_multi_model_mode(
    tmp_path: Path, *, multi_model: bool | None
) -> None:
    folder = double(tmp_path, CONFIG.replace('"double"', '"other"'))
    assert errors(folder, multi_model=multi_model) == []
    assert errors(folder, multi_model=False) == ["name-differs"]


def test_an_environment_beside_the_model_loads_where_it_is_one(tmp_path: Path) -> None:
    path = "$$TRITON_MODEL_DIRECTORY/../env"
    folder = double(
        tmp_path, f'{CONFIG}parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{path}" }} }}\n'
    )
    assert errors(folder) == ["execution-environment"]
    (folder / "env").write_text("no archive")
    assert errors(folder) == ["execution-environment"]
    (folder / "env").write_bytes(b"\x1f\x8b")
    assert errors(folder) == []
    assert [each.rule for each in lint_folder(folder)] == ["execution-environment-beside"]


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
    ],
)
def test_an_onnx_model_is_held_against_its_graph_as_the_backend_completes_it(
    tmp_path: Path, config: str | None, graph: dict[str, Any], rules: list[str]
) -> None:
    assert errors(net(tmp_path, config, graph)) == rules


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
        ([ADD_X, ADD_Y, "return config"], []),
        (["inputs = [{'name': 'x', 'data_type': 'TYPE_FP32', 'dims': [1]}]", "for each in inputs:",
          "    config.add_input(each)", "return config"], []),
        (["names = []", "for each in config.as_dict()['input']:", "    names.append(each['name'])",
          "if 'x' not in names:", "    config.add_input({})", "return config"], []),
        (["config.set_max_batch_size(4)", "return config"], ["python-auto-complete"]),
        (["config.set_max_batch_size(limit())", "return config"], []),
        ([ADD_X], ["python-auto-complete"]),
        ([ADD_X.replace("[1]", "[2]"), "return config"], ["python-auto-complete"]),
        ([ADD_X.replace('"name": "x", ', ""), "return config"], ["python-auto-complete"]),
        (["raise ValueError('no')"], ["python-auto-complete"]),
        (["for each in [{'dims': [1]}]:", "    if each['name'] not in []:", "        config.add_input(each)",
          "return config"], ["python-auto-complete"]),
        (["if config.as_dict()['platform']:", "    raise ValueError", "return config"], []),
        (["config.set_model_transaction_policy(dict(decoupled=True))", "return config"], ["decoupled"]),
        (["config.set_model_transaction_policy({'other': 1})", "return config"], ["python-auto-complete"]),
    ],
)  # fmt: skip
def test_what_a_program_completes_is_read_and_held_against_the_configuration(
    tmp_path: Path, lines: list[str], rules: list[str]
) -> None:
    assert errors(double(tmp_path, CONFIG, completing(*lines))) == rules


@pytest.mark.parametrize(("program", "rules"), [(completing(ADD_X, ADD_Y, "return config"), []),
                                                (MODEL, ["tensor-dims"]),
                                                (completing("return other(config)"), [])])  # fmt: skip
def test_dims_left_out_are_an_error_where_nothing_completes_them(
    tmp_path: Path, program: str, rules: list[str]
) -> None:
    config = CONFIG.replace('"y" data_type: TYPE_FP32 dims: [ 1 ]', '"y" data_type: TYPE_FP32')
    assert errors(double(tmp_path, config, program)) == rules


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
