"""A small tokenizer of whole words, with the special tokens of BERT, written by the library itself."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "house", "is", "wonderful", "say", ":")


def write_tokenizer(path: Path, *, pad: str = "[PAD]", own_padding: str | None = None) -> Path:
    """Write it: [CLS] words [SEP], then the words of a second text and [SEP].

    ``pad`` renames the first token; ``own_padding`` names one in the file.
    """
    words = (pad, *WORDS[1:])
    vocabulary = {word: number for number, word in enumerate(words)}
    tool = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tool.add_special_tokens([pad, "[UNK]", "[CLS]", "[SEP]"])
    tool.pre_tokenizer = pre_tokenizers.Whitespace()
    tool.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    if own_padding is not None:
        tool.enable_padding(pad_id=vocabulary[own_padding], pad_token=own_padding)
    tool.enable_truncation(max_length=3)  # the file's own: the adapter's setting must win
    tool.save(str(path))
    return path
