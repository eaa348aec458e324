"""Operators that ONNX Runtime refuses when it loads a graph: the rules judge as it does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.lint.onnx_files import function, node, write_graph
from tritonstack.archives.programs import run_script
from tritonstack.archives.proof import PROOF_ENVIRONMENT
from tritonstack.lint import lint_folder


def normalizer(**attributes: Any) -> dict[str, Any]:
    tensors = [{"name": name, "dtype": "BYTES", "shape": ["N"]} for name in ("x", "y")]
    nodes = [node("StringNormalizer", ["x"], ["y"], **attributes)]
    return {"inputs": tensors[:1], "outputs": tensors[1:], "nodes": nodes}


def operator(name: str, domain: str, **more: Any) -> dict[str, Any]:
    tensors = [{"name": name, "dtype": "FP32", "shape": ["N"]} for name in ("x", "y")]
    nodes = [node(name, ["x"], ["y"], domain=domain)]
    return {"inputs": tensors[:1], "outputs": tensors[1:], "nodes": nodes, "domains": [domain], **more}


GRAPHS: dict[str, tuple[dict[str, Any], str]] = {
    "lower case, no locale": (normalizer(case_change_action="LOWER"), "onnx-locale"),
    "lower case": (normalizer(case_change_action="LOWER", locale="en_US"), "onnx-locale"),
    "upper case": (normalizer(case_change_action="UPPER", locale="de_DE.UTF-8"), "onnx-locale"),
    "stop words without case": (normalizer(is_case_sensitive=0, stopwords=["a"], locale="en_US"), "onnx-locale"),
    "stop words with case": (normalizer(is_case_sensitive=1, stopwords=["a"], locale="en_US"), ""),
    "no stop words": (normalizer(is_case_sensitive=0, locale="en_US"), ""),
    "nothing changed": (normalizer(case_change_action="NONE", locale="en_US"), ""),
    "a locale that there is": (normalizer(case_change_action="LOWER", locale="C.UTF-8"), ""),
    "the environment's locale": (normalizer(case_change_action="LOWER", locale=""), ""),
    "extensions": (operator("Shorten", "ai.onnx.contrib"), "onnx-custom-domain"),
    "somebody's": (operator("Relu", "org.example"), "onnx-custom-domain"),
    "Microsoft's": (operator("Gelu", "com.microsoft"), ""),
    "the standard's by its name": (operator("Relu", "ai.onnx", domains=[]), ""),
    "a function": (operator("Same", "org.example", functions=[function("org.example", "Same")]), ""),
    "beside a function": (operator("Else", "org.example", functions=[function("org.example", "Same")]),
                          "onnx-custom-domain"),
}  # fmt: skip

LOADS = """\
import json, sys, onnxruntime
onnxruntime.set_default_logger_severity(4)
def loads(file):
    try:
        return bool(onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]))
    except Exception:
        return False
print(json.dumps([loads(file) for file in sys.argv[1:]]))
"""


@pytest.mark.parametrize("case", GRAPHS)
def test_operators_that_triton_s_images_cannot_run_are_found(tmp_path: Path, case: str) -> None:
    graph, rule = GRAPHS[case]
    assert _refused(tmp_path, graph) == ({rule} if rule else set())


def _refused(folder: Path, graph: dict[str, Any], config: str = 'backend: "onnxruntime"\n') -> set[str]:
    (folder / "net/1").mkdir(parents=True)
    (folder / "net/config.pbtxt").write_text(config)
    write_graph(folder / "net/1/model.onnx", graph)
    return {each.rule for each in lint_folder(folder) if each.level == "error"}


def test_operators_of_a_declared_library_are_accepted(tmp_path: Path) -> None:
    config = 'backend: "onnxruntime"\nmodel_operations { op_library_filename: "libshorten.so" }\n'
    assert _refused(tmp_path, GRAPHS["extensions"][0], config) == set()


@pytest.mark.skipif(os.environ.get("LC_ALL", "C") not in ("", "C", "C.UTF-8"), reason="needs a locale of the images")
def test_onnx_runtime_judges_alike(tmp_path: Path) -> None:
    files = [tmp_path / f"{index}.onnx" for index in range(len(GRAPHS))]
    for file, (graph, _) in zip(files, GRAPHS.values(), strict=True):
        write_graph(file, graph)
    lines: list[str] = []
    arguments = ["-c", LOADS, *map(str, files)]
    run_script(environment=PROOF_ENVIRONMENT, arguments=arguments, folder=tmp_path, what="it", report=lines.append)
    loaded = json.loads(lines[0].removeprefix("it: "))
    assert dict(zip(GRAPHS, loaded, strict=True)) == {case: not rule for case, (_, rule) in GRAPHS.items()}
