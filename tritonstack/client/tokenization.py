"""Texts as a tokenizer's ids, and ids as texts."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tritonstack.adapters import TextAdapter
from tritonstack.client.body import Array
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.extensions import not_installed

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PADS = ("[PAD]", "<pad>")
"""Padding tokens of BERT's, and of RoBERTa's and T5's tokenizers."""


def tokens(
    text: str, adapter: TextAdapter, tokenizer: Path, *, second: str | None = None, file: str | None = None
) -> dict[str, Array]:
    """The inputs of the adapter, INT64 [tokens] each; ``adapter.length`` tokens where that is set.

    ``second``: the other text of a pair. Line ends at the end of a text are removed.

    Raises:
        InputError: the text has no tokens; the extra `text` is not installed.
        WorkFailedError: the tokenizer's file is invalid, or has no token to pad with.
    """
    most = (adapter.length, adapter.longest)
    tool = _loaded(tokenizer, tokenizer.stat().st_mtime_ns, *most, adapter.pad)
    first = adapter.prefix + text.rstrip("\r\n")
    encoding = tool.encode(first) if second is None else tool.encode(first, second.rstrip("\r\n"))
    if not any(encoding.attention_mask):
        raise InputError([Problem(file=file, found="an empty text", allowed="at least one token")])
    columns = {
        adapter.ids: encoding.ids,
        adapter.mask: encoding.attention_mask,
        adapter.types: encoding.type_ids,
    }
    return {name: np.array(column, dtype=np.int64) for name, column in columns.items() if name is not None}


def text_from(ids: Sequence[int], tokenizer: Path) -> str:
    """The text of token ids, without special tokens such as padding and end of text.

    An id above the tokenizer's last is left out: models have room for more tokens than their tokenizers make (T5 has
    32,128 for 32,100), and what untrained weights choose there has no meaning.

    Raises WorkFailedError where the tokenizer's file is invalid, or an id is below 0 or above 32 bits.
    """
    tool = _loaded(tokenizer, tokenizer.stat().st_mtime_ns, None, None, None)
    try:
        return str(tool.decode(list(ids), skip_special_tokens=True))
    except OverflowError as error:
        raise WorkFailedError(f"the response has numbers from {min(ids)} to {max(ids)}: they are no tokens") from error


@functools.lru_cache(maxsize=16)
def _loaded(path: Path, changed_ns: int, length: int | None, longest: int | None, pad: str | None) -> Tokenizer:
    """A tokenizer that is set up once and never changed after, so that threads may share it."""
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise not_installed("tokenizers") from error
    del changed_ns  # part of the key: a file that has changed is read again
    try:
        tool = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception for every fault of a file
        raise WorkFailedError(f"{path}: no tokenizer that can be read: {error}") from error
    padding = tool.padding
    tool.no_padding()
    tool.no_truncation()
    if length is None:
        if longest is not None:
            tool.enable_truncation(max_length=longest)
        return tool
    if pad is None and padding is not None:
        number, token = padding["pad_id"], padding["pad_token"]
    else:
        number, token = _pad(tool, [pad] if pad else PADS, path)
    tool.enable_truncation(max_length=length)
    tool.enable_padding(length=length, pad_id=number, pad_token=token)
    return tool


def _pad(tool: Tokenizer, names: Sequence[str], path: Path) -> tuple[int, str]:
    for name in names:
        number = tool.token_to_id(name)
        if number is not None:
            return number, name
    raise WorkFailedError(f"{path}: no token {' or '.join(names)} to pad with; name one in the recipe's adapter: pad")
