"""Fit a model of the source framework to a graph: positional inputs of the graph's types, outputs by name."""

# mypy: disable-error-code="import-not-found"
# PyTorch is in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from tritonstack.exporters.arguments import Arrays
from tritonstack.exporters.graph import Graph


class Adapted(nn.Module):  # type: ignore[misc]  # PyTorch's classes have no types here
    """A transformers model as the graph has it.

    Integers of fewer bits are widened to INT64 at the entry: TensorRT before 10 takes INT32 alone, embeddings and masks
    are written for INT64.
    """

    def __init__(
        self, model: nn.Module, graph: Graph, *, arguments: Mapping[str, str], outputs: Mapping[str, str]
    ) -> None:
        """Wrap a model.

        Args:
            model: called with keyword arguments, answers an object with attributes.
            graph: gives the order of inputs and outputs.
            arguments: the graph's input → the model's keyword argument.
            outputs: the graph's output → the attribute of the model's answer.
        """
        super().__init__()
        self.model = model
        self._keywords = [arguments[tensor.name] for tensor in graph.inputs]
        self._attributes = [outputs[tensor.name] for tensor in graph.outputs]
        self.eval()

    def forward(self, *tensors: Any) -> Any:
        """Tensors in the graph's order → a tensor, or a tuple of them where the graph has several outputs."""
        widened = [tensor if tensor.is_floating_point() else tensor.to(torch.int64) for tensor in tensors]
        answer = self.model(**dict(zip(self._keywords, widened, strict=True)))
        values = tuple(getattr(answer, name) for name in self._attributes)
        return values[0] if len(values) == 1 else values


def answer_of(module: nn.Module, graph: Graph, inputs: Arrays) -> Arrays:
    """What the source framework answers. ``module`` takes and gives tensors in the graph's order."""
    with torch.inference_mode():
        result = module(*(torch.from_numpy(inputs[tensor.name]) for tensor in graph.inputs))
    values = result if isinstance(result, (tuple, list)) else (result,)
    return {tensor.name: value.numpy() for tensor, value in zip(graph.outputs, values, strict=True)}
