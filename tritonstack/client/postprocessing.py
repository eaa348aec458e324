"""Output tensors to the best classes with their names, a text, or a vector."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tritonstack.adapters import AnswerKind, ClassesAnswer, TextAnswer
from tritonstack.client.body import Array
from tritonstack.errors import WorkFailedError


@dataclass(frozen=True, kw_only=True)
class Label:
    """One class."""

    index: int  # its place among the model's classes, from 0
    name: str  # from the model's labels; the index where it has none
    score: float  # of the model; a probability where the recipe has ``softmax``


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The best classes, the best first."""

    best: tuple[Label, ...]


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """A vector for the whole input: one axis."""

    vector: Array


Meaning = Classes | Text | Embedding


def meanings(
    kind: AnswerKind, outputs: Mapping[str, Array], files: Mapping[str, Path], *, batched: bool
) -> tuple[Meaning, ...]:
    """Interpretations of the outputs, one for each member of the batch; one where the model does not batch.

    Args:
        kind: of the model's manifest.
        outputs: output name → array; without ``kind.output`` there are no meanings.
        files: paths of its client files (``kind.files``).
        batched: whether the outputs have a batch dimension.

    Raises:
        WorkFailedError: the output does not fit the manifest: no numbers, or another number than there are labels.
    """
    if kind.output not in outputs:
        return ()
    array = outputs[kind.output]
    rows = array if batched and array.ndim > 0 else array[None]
    return tuple(_meaning(kind, np.asarray(row).ravel(), files) for row in rows)


def _meaning(kind: AnswerKind, row: Array, files: Mapping[str, Path]) -> Meaning:
    wanted = "iu" if isinstance(kind, TextAnswer) else "iufV"  # V: BF16, which is no kind of NumPy's own
    if row.dtype.kind not in wanted or row.size == 0:
        raise WorkFailedError(f"output {kind.output} holds {row.size} values of {row.dtype}: nothing to make sense of")
    if isinstance(kind, TextAnswer):
        from tritonstack.client.tokenization import text_from  # noqa: PLC0415  (only for texts: a library of its own)

        return Text(text=text_from(row.tolist(), files[kind.tokenizer]))
    values = row.astype(np.float64)
    if bool(np.isnan(values).any()):
        raise WorkFailedError(f"output {kind.output} holds values that are not numbers (NaN)")
    return _classes(kind, values, files) if isinstance(kind, ClassesAnswer) else Embedding(vector=row)


def _classes(kind: ClassesAnswer, scores: Array, files: Mapping[str, Path]) -> Classes:
    if kind.softmax:
        scores = softmax(scores)
    names = [str(index) for index in range(scores.size)]
    if kind.labels is not None:
        path = files[kind.labels]
        names = list(_labels(path, path.stat().st_mtime_ns))
        if len(names) != scores.size:
            raise WorkFailedError(f"{kind.labels} names {len(names)} classes, output {kind.output} has {scores.size}")
    order = np.argsort(-scores, kind="stable")[: kind.top]
    return Classes(best=tuple(Label(index=int(i), name=names[i], score=float(scores[i])) for i in order))


def softmax(logits: Array) -> Array:
    """Probabilities along the last axis, FP64. Large logits do not overflow."""
    wide = logits.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=-1, keepdims=True))
    total: Array = powers / powers.sum(axis=-1, keepdims=True)
    return total


@functools.lru_cache(maxsize=64)
def _labels(path: Path, changed_ns: int) -> tuple[str, ...]:
    """The names in a labels file: one a line, and an empty last line is none."""
    del changed_ns  # part of the key: a file that has changed is read again
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise WorkFailedError(f"{path}: no labels that can be read: {error}") from error
