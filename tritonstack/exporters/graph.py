"""What a recipe says that an exported graph is: names, types and axes of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

BATCH = "batch"
"""The dynamic axis that Triton batches over, where it is the first."""

DTYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
}
"""KServe's names of the types that are arrays of numbers."""


@dataclass(frozen=True)
class Tensor:
    """An input or output. In ``shape`` a word is a dynamic axis and a number is fixed."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's type of it."""
        return DTYPES[self.dtype]

    def sized(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Its shape where every dynamic axis has the size that ``sizes`` gives it."""
        return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in self.shape)


@dataclass(frozen=True)
class Graph:
    """Inputs and outputs in the order of the model's arguments and results."""

    opset: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        """The dynamic axes of the inputs except the batch's, each once, in order."""
        words = (axis for tensor in self.inputs for axis in tensor.shape if isinstance(axis, str) and axis != BATCH)
        return tuple(dict.fromkeys(words))


def read_graph(content: Mapping[str, Any]) -> Graph:
    """A graph of a recipe. Raises KeyError, TypeError or ValueError where it is not as agreed."""
    return Graph(
        opset=int(content["opset"]),
        inputs=tuple(_tensor(one) for one in content["inputs"]),
        outputs=tuple(_tensor(one) for one in content["outputs"]),
    )


def _tensor(content: Mapping[str, Any]) -> Tensor:
    if content["dtype"] not in DTYPES:
        raise ValueError(f"tensor {content['name']}: dtype {content['dtype']}, but there are {', '.join(DTYPES)}")
    return Tensor(name=content["name"], dtype=content["dtype"], shape=tuple(content["shape"]))
