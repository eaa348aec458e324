"""Outputs of two responses compared: tensor, index, expected and found value, largest difference."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_TEXT = 60
"""Characters of a text in a message; of a longer one the part where it differs is shown."""
_BEFORE = 20
"""Characters shown before that part."""


@dataclass(frozen=True, kw_only=True)
class OutputValues:
    """One output: KServe's datatype, the shape, and its values in row-major order (BYTES as bytes)."""

    datatype: str
    shape: tuple[int, ...]
    values: Sequence[Any]


def json_outputs(tensors: Iterable[Mapping[str, Any]]) -> dict[str, OutputValues]:
    """Outputs by name, of tensors in KServe's JSON form: data may be nested, BYTES are text."""
    return {each["name"]: _values(each, lambda text: str(text).encode()) for each in tensors}


def base64_outputs(tensors: Iterable[Mapping[str, Any]]) -> dict[str, OutputValues]:
    """Outputs by name, of tensors of a proof: elements of BYTES are base64."""
    return {each["name"]: _values(each, base64.b64decode) for each in tensors}


def _values(tensor: Mapping[str, Any], decode: Any) -> OutputValues:
    values = flatten(tensor["data"])
    values = list(map(decode, values)) if tensor["datatype"] == "BYTES" else values
    return OutputValues(datatype=tensor["datatype"], shape=tuple(tensor["shape"]), values=values)


@dataclass(frozen=True, kw_only=True)
class TensorDifference:
    """How an output differs from the expected one: in ``reason`` (datatype, shape), else in values.

    Of floating-point values that one counts whose difference is largest, of all others the first.
    """

    tensor: str
    reason: str = ""  # "shape [1, 3] expected, [1, 4] found"; empty where values differ
    index: tuple[int, ...] = ()
    expected: Any = None
    found: Any = None
    largest: float | None = None  # of floating-point values; None for others
    tolerance: float = 0.0
    differing: int = 0  # how many values differ by more than the tolerance
    total: int = 0

    @property
    def place(self) -> str:
        """``probabilities[0, 3]``."""
        return f"{self.tensor}[{', '.join(map(str, self.index))}]" if self.index else self.tensor

    @property
    def values(self) -> tuple[str, str]:
        """The expected and the found value, as messages have them; of long texts where they differ."""
        return value_texts(self.expected, self.found)

    def __str__(self) -> str:
        if self.reason:
            return f"tensor {self.tensor}: {self.reason}"
        expected, found = self.values
        text = f"tensor {self.place}: {expected} expected, {found} found"
        count = f"{self.differing:,} of {self.total:,} values"
        if self.largest is None:
            return f"{text}; {count} differ"
        return f"{text}: differs by {self.largest:.3g} from the expected response, {self.tolerance:g} allowed; {count}"


def tensor_difference(
    name: str, expected: OutputValues, found: OutputValues, *, tolerance: float, equal_nan: bool = False
) -> tuple[float, TensorDifference | None]:
    """The largest difference of a floating-point value, and how the output differs; None where it is as expected.

    ``tolerance``: the largest absolute difference of a floating-point value that is none; all others must be equal.
    ``equal_nan``: NaN is equal to itself, as infinities always are.
    """
    for what, wanted, got in (
        ("datatype", expected.datatype, found.datatype),
        ("shape", list(expected.shape), list(found.shape)),
    ):
        if wanted != got:
            return math.inf, TensorDifference(tensor=name, reason=f"{what} {wanted} expected, {got} found")
    pairs = list(zip(expected.values, found.values, strict=True))
    if not expected.datatype.startswith(("FP", "BF")):
        wrong = [number for number, (wanted, got) in enumerate(pairs) if wanted != got]
        if not wrong:
            return 0.0, None
        return 0.0, _difference(name, expected.shape, pairs, wrong, at=wrong[0])
    differences = [_distance(wanted, got, equal_nan=equal_nan) for wanted, got in pairs]
    largest = max(differences, default=0.0)
    wrong = [number for number, difference in enumerate(differences) if difference > tolerance]
    if not wrong:
        return largest, None
    at = max(wrong, key=lambda number: differences[number])
    return largest, _difference(name, expected.shape, pairs, wrong, at=at, largest=largest, tolerance=tolerance)


def output_differences(
    expected: Mapping[str, OutputValues], found: Mapping[str, OutputValues], *, tolerance: float
) -> tuple[float, tuple[TensorDifference, ...]]:
    """The largest difference of a floating-point value, and every output that differs or is missing."""
    largest, differences = 0.0, []
    for name, wanted in expected.items():
        if name not in found:
            names = ", ".join(sorted(found)) or "none"
            differences.append(TensorDifference(tensor=name, reason=f"expected, not found; found {names}"))
            continue
        of_tensor, difference = tensor_difference(name, wanted, found[name], tolerance=tolerance)
        largest = max(largest, of_tensor)
        differences += [difference] if difference is not None else []
    return largest, tuple(differences)


def _distance(expected: float, found: float, *, equal_nan: bool) -> float:
    """The absolute difference; infinite where one of them is no number."""
    if expected == found:  # infinities, too
        return 0.0
    if math.isnan(expected) or math.isnan(found):
        return 0.0 if equal_nan and math.isnan(expected) and math.isnan(found) else math.inf
    return abs(expected - found)


def _difference(
    name: str,
    shape: Sequence[int],
    pairs: Sequence[tuple[Any, Any]],
    wrong: Sequence[int],
    *,
    at: int,
    largest: float | None = None,
    tolerance: float = 0.0,
) -> TensorDifference:
    expected, found = pairs[at]
    return TensorDifference(
        tensor=name,
        index=index_of(at, shape),
        expected=expected,
        found=found,
        largest=largest,
        tolerance=tolerance,
        differing=len(wrong),
        total=len(pairs),
    )


def index_of(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of a value from its number in row-major order."""
    index = []
    for length in reversed(shape):
        number, at = divmod(number, length)
        index.append(at)
    return tuple(reversed(index))


def value_texts(expected: Any, found: Any) -> tuple[str, str]:
    """Two values for a message: BYTES as text, numbers with seven digits, long texts from where they differ."""
    texts = [_text(value) if isinstance(value, bytes | str) else value for value in (expected, found)]
    begins = 0
    if all(isinstance(text, str) for text in texts) and max(map(len, texts)) > LONGEST_TEXT:
        same = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
        begins = max(0, same - _BEFORE)
    return _shown(texts[0], begins), _shown(texts[1], begins)


def _text(value: bytes | str) -> str | bytes:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def _shown(value: Any, begins: int) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    if not isinstance(value, str | bytes):
        return str(value)
    part = value[begins : begins + LONGEST_TEXT]
    return f"{'…' if begins else ''}{part!r}{'…' if len(value) > begins + LONGEST_TEXT else ''}"


def flatten(data: Any) -> list[Any]:
    """The values of nested lists, in their order; as deep as they are, which recursion could not be."""
    flat: list[Any] = []
    waiting = [iter([data])]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, list):
                waiting.append(iter(item))
                break
            flat.append(item)
        else:
            waiting.pop()
    return flat
