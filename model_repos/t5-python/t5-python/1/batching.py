"""Requests of different lengths as one batch, and the batch's answers as one answer for each request.

NumPy only: what is padded and cut here can be tested without Triton and without PyTorch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MASK_VALUES = (0, 1)


class RequestError(ValueError):
    """What is wrong with one request; the others of its batch are answered all the same."""


@dataclass(frozen=True)
class Limits:
    """What a request may hold.

    Attributes:
        vocabulary: ids are 0 … vocabulary - 1. Others would end the whole process on a GPU, not only the request.
        input_tokens: the longest row.
    """

    vocabulary: int
    input_tokens: int


@dataclass(frozen=True)
class Question:
    """One request's rows: ids and mask, INT32 [rows, tokens] each."""

    ids: np.ndarray
    mask: np.ndarray

    def check(self, limits: Limits) -> None:
        """Raise RequestError where the model cannot take it."""
        if self.ids.ndim != 2 or self.ids.shape != self.mask.shape:
            raise RequestError(
                f"input_ids has shape {list(self.ids.shape)} and attention_mask {list(self.mask.shape)}: "
                "both must be [rows, tokens], and equal"
            )
        if not self.ids.size:
            raise RequestError(f"input_ids has shape {list(self.ids.shape)}: it holds no token")
        if self.ids.shape[1] > limits.input_tokens:
            raise RequestError(f"input_ids has {self.ids.shape[1]} tokens, at most {limits.input_tokens} are allowed")
        if self.ids.min() < 0 or self.ids.max() >= limits.vocabulary:
            wrong = self.ids[(self.ids < 0) | (self.ids >= limits.vocabulary)][0]
            raise RequestError(f"input_ids holds {wrong}: the vocabulary has the ids 0 to {limits.vocabulary - 1}")
        if not np.isin(self.mask, MASK_VALUES).all():
            raise RequestError("attention_mask holds values other than 0 and 1")
        if not self.mask.any(axis=1).all():
            raise RequestError("attention_mask is 0 everywhere in a row: nothing is left to translate")


def merge(questions: Sequence[Question], *, padding: int) -> tuple[np.ndarray, np.ndarray]:
    """All rows of all questions, padded to the longest with ``padding``, and masked there.

    Returns ids and mask, INT64 [all rows, longest]: the source framework's type.
    """
    longest = max(question.ids.shape[1] for question in questions)
    rows = sum(len(question.ids) for question in questions)
    ids = np.full((rows, longest), padding, dtype=np.int64)
    mask = np.zeros((rows, longest), dtype=np.int64)
    row = 0
    for question in questions:
        count, length = question.ids.shape
        ids[row : row + count, :length] = question.ids
        mask[row : row + count, :length] = question.mask
        row += count
    return ids, mask


def split(answers: np.ndarray, questions: Sequence[Question], *, ends: Sequence[int]) -> list[np.ndarray]:
    """Each question's rows of the answers, cut where its longest row ends: as if it had been generated alone.

    Args:
        answers: the generated ids, [all rows, tokens].
        questions: in the order in which they were merged.
        ends: the ids that end an answer; a row without one was cut off by the limit and stays whole.

    Returns:
        INT32 [rows, tokens] for each question.
    """
    found = []
    row = 0
    for question in questions:
        own = answers[row : row + len(question.ids)]
        found.append(np.ascontiguousarray(own[:, : _longest(own, ends)], dtype=np.int32))
        row += len(question.ids)
    return found


def _longest(rows: np.ndarray, ends: Sequence[int]) -> int:
    """How many tokens the longest row has up to its end, the end included."""
    # The first token is the decoder's start, which may be the same id as padding but never counts as an end.
    is_end = np.isin(rows[:, 1:], list(ends))
    lengths = np.where(is_end.any(axis=1), is_end.argmax(axis=1) + 2, rows.shape[1])
    return int(lengths.max())
