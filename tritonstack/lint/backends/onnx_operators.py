"""Rules about single operators of an ONNX graph that Triton's images cannot run.

Source: onnxruntime onnxruntime/core/providers/cpu/nn/string_normalizer.cc (the locale, opened to change case or to
compare without it), core/graph/graph.cc (“is not a registered function/op”); onnxruntime_backend src/onnxruntime.cc
(ModelState::ModelState: model_operations, op_library_filename).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonstack.lint.completion import graph_path
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView
from tritonstack.model_files.onnx_graph import GraphNode, OnnxError, function_names, graph_nodes
from tritonstack.models.model_view import ModelView

LOCALES = ("", "C", "POSIX", "C.UTF-8", "C.utf8")
"""Those of Ubuntu's base image, on which Triton's are built; empty: the environment's, which sets none."""
ORT_LOCALE = "en_US.UTF-8"
"""ONNX Runtime's own where the node states none: string_normalizer.cc."""

DOMAINS = frozenset({
    "", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft",
    "com.microsoft.nchwc", "com.microsoft.internal.nhwc", "com.ms.internal.nhwc", "com.microsoft.experimental",
    "com.microsoft.dml", "org.pytorch.aten", "trt.plugins",
})  # fmt: skip
"""Domains of ONNX Runtime and its execution providers: onnxruntime include/onnxruntime/core/graph/constants.h."""


def check_operators(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Operators that ONNX Runtime refuses in Triton's images, each kind once."""
    path = graph_path(model) if model.backend == "onnxruntime" and model.is_readable else None
    if path is None:
        return
    try:
        nodes = [*graph_nodes(path, attributes_of=("StringNormalizer",))]
        functions = function_names(path)
    except OnnxError:
        return  # onnx-unreadable
    yield from _locales(path, nodes)
    libraries = model.config.node.node("model_operations")
    if libraries is not None and libraries.has("op_library_filename"):
        return
    foreign = {(node.domain, node.operator) for node in nodes if node.domain not in DOMAINS} - functions
    for domain in sorted({domain for domain, _ in foreign}):
        names = ", ".join(sorted(operator for of, operator in foreign if of == domain))
        yield Finding(file=path, rule="onnx-custom-domain", found=f"operators of domain {domain}: {names}")


def _locales(path: Path, nodes: list[GraphNode]) -> Iterator[Finding]:
    wanted = {
        str(node.attributes.get("locale", ORT_LOCALE)): "locale" in node.attributes
        for node in nodes
        if node.operator == "StringNormalizer" and node.domain in ("", "ai.onnx") and _needs_locale(node)
    }
    for locale, is_stated in wanted.items():
        if locale not in LOCALES:
            how = f"with locale {locale}" if is_stated else f"without a locale, which is then {locale}"
            found = f"StringNormalizer {how}"
            yield Finding(file=path, rule="onnx-locale", found=found)


def _needs_locale(node: GraphNode) -> bool:
    given = node.attributes
    changes_case = given.get("case_change_action", "NONE") != "NONE"
    return changes_case or (not given.get("is_case_sensitive", 0) and bool(given.get("stopwords")))
