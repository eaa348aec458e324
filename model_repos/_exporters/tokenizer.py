"""Byte-level tokenizer for models with random weights."""

# mypy: disable-error-code="import-not-found,import-untyped"
# tokenizers is in the environment that exports run in; where it is in the one that checks types, it has none.

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from _exporters.script import ExportError, atomic

BYTES = 256


def byte_level(vocabulary: int, specials: Sequence[str], *, template: str | None = None) -> Any:
    """A tokenizer whose tokens are the special ones, then the 256 bytes: nothing is trained or fetched.

    Args:
        vocabulary: the model's ``vocab_size``.
        specials: in the order of their ids, such as ``("[PAD]", "[UNK]", "[CLS]", "[SEP]")``.
        template: such as ``"[CLS] $A [SEP]"``. Default: the text alone.

    Returns:
        A ``tokenizers.Tokenizer``.

    Raises:
        ExportError: the model's vocabulary is too small.
    """
    needed = len(specials) + BYTES
    if vocabulary < needed:
        raise ExportError(f"vocab_size is {vocabulary}; bytes and special tokens need {needed}")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    numbers = {token: number for number, token in enumerate((*specials, *alphabet))}
    tokenizer = Tokenizer(models.BPE(vocab=numbers, merges=[]))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if template is not None:
        used = [(token, numbers[token]) for token in specials if token in template.split()]
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=used)
    return tokenizer


def save(tokenizer: Any, path: Path) -> None:
    """Write ``tokenizer.json``."""
    with atomic(path) as temporary:
        tokenizer.save(str(temporary))
