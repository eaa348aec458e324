"""Text encoders and classifiers (BERT, RoBERTa): the model with the graph's tensors, its tokenizer, a text's sample."""

# mypy: disable-error-code="import-not-found,import-untyped"
# PyTorch and transformers are in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import BertForSequenceClassification, BertModel, RobertaForSequenceClassification, RobertaModel

from _exporters import tokenizer, weights
from _exporters.cases import masks, token_ids
from _exporters.script import (
    DTYPES,
    Arguments,
    Arrays,
    ExportError,
    Graph,
    atomic,
    write_answer,
    write_report,
    write_request,
)
from _exporters.torch_export import export_proved

TOKENIZER = "tokenizer.json"
HEAD = "classifier."
"""How the names of a classification head's weights begin, in both families."""
MASKED = -10000.0
"""Added to the attention scores of padding.

transformers adds FP32's smallest number, which is outside FP16: TensorRT refuses or clips it
(triton-inference-server/server issue 5959). Both become 0 in the softmax.
"""


@dataclass(frozen=True, kw_only=True)
class Family:
    """An encoder architecture, its tokenizer and its pooler.

    Attributes:
        architecture: its class in transformers.
        classifier: its class with a classification head.
        specials: its special tokens, in the order of their ids in the tokenizer of random weights.
        template: of a text's tokens.
        pad: the padding token.
        has_pooler: whether published checkpoints have a trained pooling layer; else the pooled output is the mean of
            the tokens' hidden states, without padding.
    """

    architecture: Any
    classifier: Any
    specials: tuple[str, ...]
    template: str
    pad: str
    has_pooler: bool = True


BERT = Family(
    architecture=BertModel,
    classifier=BertForSequenceClassification,
    specials=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    template="[CLS] $A [SEP]",
    pad="[PAD]",
)
ROBERTA = Family(
    architecture=RobertaModel,
    classifier=RobertaForSequenceClassification,
    specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    template="<s> $A </s>",
    pad="<pad>",
    has_pooler=False,
)
"""RoBERTa was trained without the next-sentence task, and so without a pooler: https://arxiv.org/abs/1907.11692."""


class Encoder(nn.Module):  # type: ignore[misc]  # PyTorch's classes have no types here
    """Token ids and attention mask, of any integer type, to hidden states and pooled output, or to a head's logits.

    It makes no tensor on a fixed device, so that a trace made on the CPU also runs on a GPU. Integers are widened to
    INT64 inside, as embeddings and masks need; the inputs keep the graph's type.

    The pooled output is the pooler's, or, for a model without one, the mean of the hidden states under the mask, like
    mean pooling of sentence-transformers.
    """

    def __init__(self, model: nn.Module) -> None:
        """Wrap a model of transformers."""
        super().__init__()
        self.model = model
        self.classifies = hasattr(model, "classifier")
        self.eval()

    def forward(self, *tensors: Any) -> Any:
        """Ids and mask, [batch, length] each → [batch, length, width] and [batch, width], or [batch, classes]; FP32."""
        ids, mask = (tensor.to(torch.int64) for tensor in tensors)
        kept = mask.to(torch.float32)
        added = (1.0 - kept) * MASKED
        result = self.model(input_ids=ids, attention_mask=added[:, None, None, :], token_type_ids=ids * 0)
        if self.classifies:
            return result.logits
        hidden = result.last_hidden_state
        if self.model.pooler is not None:
            return hidden, result.pooler_output
        counts = kept.sum(1, keepdim=True).clamp(min=1.0)  # of a row that is padding alone
        return hidden, (hidden * kept[:, :, None]).sum(1) / counts


class NamedEncoder(nn.Module):  # type: ignore[misc]  # as above
    """An encoder whose arguments are named like its inputs: Triton's pytorch backend matches them by name."""

    def __init__(self, encoder: Encoder) -> None:
        """Wrap an encoder."""
        super().__init__()
        self.encoder = encoder
        self.eval()

    def forward(self, token_ids: Any, attn_mask: Any) -> Any:
        """As :class:`Encoder`."""
        return self.encoder(token_ids, attn_mask)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """An encoder ready to be exported.

    Attributes:
        loaded: the source framework's model, and what was read for it.
        graph: its first input is the ids, its second the mask; its outputs are hidden states and pooled output, or the
            logits alone.
        sample: the sample text's tokens, batch size 1.
    """

    loaded: weights.Loaded
    graph: Graph
    sample: Arrays

    @property
    def module(self) -> Encoder:
        """The module to export."""
        return Encoder(self.loaded.model)

    def export(
        self, arguments: Arguments, path: str, module: nn.Module, *, axes: Mapping[str, tuple[int, ...]] | None = None
    ) -> None:
        """Write ``module`` to ``path`` below the target, prove it, and write the report.

        ``axes``: dynamic axis → the sizes to test, with the sample's. Raises :class:`ExportError` where it fails.
        """
        ids, mask = (tensor.name for tensor in self.graph.inputs)
        example = {name: np.repeat(array, 2, axis=0) for name, array in self.sample.items()}
        example[mask][1] = 1  # the sample twice, the second time without padding
        draws = {ids: token_ids(self.loaded.model.config.vocab_size), mask: masks}
        figures = export_proved(
            arguments,
            path,
            module,
            self.reference,
            self.graph,
            example=example,
            sample=self.sample,
            draws=draws,
            axes=axes,
        )
        write_report(arguments, figures, inputs=self.loaded.inputs)

    def reference(self, inputs: Arrays) -> Arrays:
        """Outputs of transformers, called as its documentation does."""
        ids, mask = (torch.from_numpy(inputs[tensor.name]).to(torch.int64) for tensor in self.graph.inputs)
        with torch.inference_mode():
            result = self.loaded.model(input_ids=ids, attention_mask=mask)
        if "logits" in result:
            values: tuple[Any, ...] = (result.logits,)
        else:
            hidden, pooled = result.last_hidden_state, result.pooler_output
            if pooled is None:
                pooled = torch.stack([row[kept].mean(0) for row, kept in zip(hidden, mask.bool(), strict=True)])
            values = (hidden, pooled)
        return {tensor.name: value.numpy() for tensor, value in zip(self.graph.outputs, values, strict=True)}


def to_onnx(
    arguments: Arguments, *, family: Family, path: str, text: Path, axes: Mapping[str, tuple[int, ...]] | None = None
) -> None:
    """Export to ONNX: the graph at ``path`` below the target, and its proof.

    ``axes``: dynamic axis → the sizes to test, with the sample's. Raises :class:`ExportError` where the weights are
    not available or the proof fails.
    """
    prepared = prepare(arguments, family, arguments.options.the_graph, text=text)
    prepared.export(arguments, path, prepared.module, axes=axes)


def prepare(arguments: Arguments, family: Family, graph: Graph, *, text: Path) -> Prepared:
    """Load the model, write its tokenizer, and make the sample: ``sample/request.json`` and ``sample/answer.json``.

    The recipe's options are ``config``, the model configuration of the full size; ``length``, tokens in a request;
    ``classes``, where the model gets a classification head of so many; and ``untrained_head: true`` where pretrained
    weights may lack the head's, which then stay random. The response has only the pooled output, or the logits: the
    hidden states are too many numbers for a sample.

    Raises:
        ExportError: the weights or the tokenizer are not available, or the model's width is not the graph's.
    """
    options, target = arguments.options, arguments.target
    classes = options.options.get("classes")
    loaded = weights.load(
        family.classifier if classes else family.architecture,
        options,
        defaults=options.options["config"],
        files=(TOKENIZER,),
        arguments={} if classes else {"add_pooling_layer": family.has_pooler},
        untrained=HEAD if options.options.get("untrained_head") else None,
        attn_implementation="eager",
        **({"num_labels": classes} if classes else {}),
    )
    field, width = "num_labels" if classes else "hidden_size", graph.outputs[-1].shape[-1]
    if (found := getattr(loaded.model.config, field)) != width:
        raise ExportError(f"the model's {field} is {found}, the graph's is {width}")
    _write_tokenizer(loaded, family, target / TOKENIZER)
    length = int(options.options["length"])
    sample = tokens(text.read_text(encoding="utf-8"), target / TOKENIZER, family=family, graph=graph, length=length)
    prepared = Prepared(loaded=loaded, graph=graph, sample=sample)
    last = graph.outputs[-1].name
    write_request(target / "sample/request.json", sample)
    write_answer(target / "sample/answer.json", {last: prepared.reference(sample)[last]})
    return prepared


def tokens(text: str, path: Path, *, family: Family, graph: Graph, length: int) -> Arrays:
    """A text as the graph's inputs, cut or padded to ``length`` tokens, like the client's adapter ``tokens``."""
    tool = Tokenizer.from_file(str(path))
    pad = tool.token_to_id(family.pad)
    if pad is None:
        raise ExportError(f"{path.name} has no token {family.pad} to pad with")
    tool.enable_truncation(max_length=length)
    tool.enable_padding(length=length, pad_id=pad, pad_token=family.pad)
    encoding = tool.encode(text.rstrip("\r\n"))
    columns: Mapping[str, list[int]] = dict(
        zip((tensor.name for tensor in graph.inputs), (encoding.ids, encoding.attention_mask), strict=True)
    )
    return {tensor.name: np.array([columns[tensor.name]], dtype=DTYPES[tensor.dtype]) for tensor in graph.inputs}


def _write_tokenizer(loaded: weights.Loaded, family: Family, path: Path) -> None:
    if loaded.folder is None:
        made = tokenizer.byte_level(loaded.model.config.vocab_size, family.specials, template=family.template)
        tokenizer.save(made, path)
        return
    with atomic(path) as temporary:
        shutil.copyfile(loaded.folder / TOKENIZER, temporary)
