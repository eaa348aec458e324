"""Text encoders (BERT, RoBERTa): the model as a graph has it, its tokenizer, and a sample made from a text."""

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
from transformers import BertModel, RobertaModel

from tritonstack.errors import WorkFailedError
from tritonstack.exporters import answers, draws, onnx_graph, proof, report, tokenizer, weights
from tritonstack.exporters.arguments import Arguments, Arrays
from tritonstack.exporters.files import whole
from tritonstack.exporters.graph import DTYPES, Graph

TOKENIZER = "tokenizer.json"
MASKED = -10000.0
"""What is added to the attention scores of padding.

transformers adds FP32's least number, which is outside FP16: TensorRT refuses or clips it
(triton-inference-server/server issue 5959). Both make the same zero of the softmax.
"""


@dataclass(frozen=True, kw_only=True)
class Family:
    """What differs between encoders.

    Attributes:
        architecture: its class in transformers.
        specials: its special tokens, in the order of their numbers in the tokenizer of random weights.
        template: what a text becomes.
        pad: the token that fills a text up.
        has_pooler: whether published checkpoints bring a trained layer that makes one vector of a text; without it
            that vector is the mean of its tokens' hidden states, padding left out.
    """

    architecture: Any
    specials: tuple[str, ...]
    template: str
    pad: str
    has_pooler: bool = True


BERT = Family(
    architecture=BertModel,
    specials=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    template="[CLS] $A [SEP]",
    pad="[PAD]",
)
ROBERTA = Family(
    architecture=RobertaModel,
    specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    template="<s> $A </s>",
    pad="<pad>",
    has_pooler=False,
)
"""RoBERTa was trained without the next-sentence task, and so without a pooler: https://arxiv.org/abs/1907.11692."""


class Encoder(nn.Module):  # type: ignore[misc]  # PyTorch's classes have no types here
    """Token ids and attention mask, of any integer type, to the hidden states and the pooled output.

    Nothing in it is made on a device of its own, so that a trace made on the CPU also runs on a GPU. Integers are
    widened to INT64 inside: embeddings and masks want it, while the inputs keep the graph's type.

    The pooled output is the model's pooler's, or, for a model without one, the mean of the hidden states that the mask
    leaves: as sentence-transformers' mean pooling does it.
    """

    def __init__(self, model: nn.Module) -> None:
        """Wrap a model of transformers."""
        super().__init__()
        self.model = model
        self.eval()

    def forward(self, *tensors: Any) -> Any:
        """Ids and mask, [batch, length] each → [batch, length, width] and [batch, width], FP32."""
        ids, mask = (tensor.to(torch.int64) for tensor in tensors)
        kept = mask.to(torch.float32)
        added = (1.0 - kept) * MASKED
        answer = self.model(input_ids=ids, attention_mask=added[:, None, None, :], token_type_ids=ids * 0)
        hidden = answer.last_hidden_state
        if self.model.pooler is not None:
            return hidden, answer.pooler_output
        counts = kept.sum(1, keepdim=True).clamp(min=1.0)  # of a row that is padding alone
        return hidden, (hidden * kept[:, :, None]).sum(1) / counts


class NamedEncoder(nn.Module):  # type: ignore[misc]  # as above
    """An encoder whose arguments have the names of its inputs, by which Triton's pytorch backend finds them."""

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
        graph: its first input is the ids, its second the mask; its outputs are hidden states and pooled output.
        sample: the sample text's tokens, batch size 1.
    """

    loaded: weights.Loaded
    graph: Graph
    sample: Arrays

    @property
    def module(self) -> Encoder:
        """The model as the graph has it."""
        return Encoder(self.loaded.model)

    @property
    def example(self) -> Arrays:
        """Inputs to export with: the sample twice, the second time without padding."""
        ids, mask = (np.repeat(self.sample[tensor.name], 2, axis=0) for tensor in self.graph.inputs)
        mask[1] = 1
        return dict(zip((tensor.name for tensor in self.graph.inputs), (ids, mask), strict=True))

    @property
    def draws(self) -> dict[str, draws.Draw]:
        """How random inputs are drawn."""
        ids, mask = self.graph.inputs
        return {ids.name: draws.token_ids(self.loaded.model.config.vocab_size), mask.name: draws.masks}

    def reference(self, inputs: Arrays) -> Arrays:
        """What transformers answers, called as its documentation does."""
        ids, mask = (torch.from_numpy(inputs[tensor.name]).to(torch.int64) for tensor in self.graph.inputs)
        with torch.inference_mode():
            answer = self.loaded.model(input_ids=ids, attention_mask=mask)
        hidden, pooled = answer.last_hidden_state, answer.pooler_output
        if pooled is None:
            pooled = torch.stack([row[kept].mean(0) for row, kept in zip(hidden, mask.bool(), strict=True)])
        values = (hidden, pooled)
        return {tensor.name: value.numpy() for tensor, value in zip(self.graph.outputs, values, strict=True)}


def to_onnx(
    arguments: Arguments, *, family: Family, path: str, text: Path, axes: Mapping[str, tuple[int, ...]] | None = None
) -> None:
    """An export script's work: the ONNX graph at ``path`` below the target, and its proof.

    ``axes``: dynamic axis → the sizes to try beside the sample's. Raises :class:`WorkFailedError` where the weights
    cannot be had or the proof fails.
    """
    options, file = arguments.options, arguments.target / path
    prepared = prepare(arguments, family, options.the_graph, text=text)
    onnx_graph.export(prepared.module, prepared.graph, file, prepared.example)
    batches = proof.batches(options)
    difference = proof.prove_onnx(
        file,
        prepared.reference,
        prepared.graph,
        batches=batches,
        tolerance=options.tolerance,
        sample=prepared.sample,
        draws=prepared.draws,
        axes=axes,
        seed=options.seed,
    )
    figures = {"largest_difference": difference, "largest_proved_batch": batches[-1]}
    report.write(arguments, figures, inputs=prepared.loaded.inputs)


def prepare(arguments: Arguments, family: Family, graph: Graph, *, text: Path) -> Prepared:
    """Load the model, write its tokenizer, and make the sample: ``sample/request.json`` and ``sample/answer.json``.

    The recipe's options are ``config``, the model configuration of the full size, and ``length``, tokens in a request.
    The answer has the pooled output alone: the hidden states are too many numbers for a sample.

    Raises:
        WorkFailedError: the weights or the tokenizer cannot be had, or the model's widths are not the graph's.
    """
    options, target = arguments.options, arguments.target
    loaded = weights.load(
        family.architecture,
        options,
        defaults=options.options["config"],
        files=(TOKENIZER,),
        arguments={"add_pooling_layer": family.has_pooler},
        attn_implementation="eager",
    )
    width = graph.outputs[-1].shape[-1]
    if loaded.model.config.hidden_size != width:
        raise WorkFailedError(f"the model's hidden_size is {loaded.model.config.hidden_size}, the graph's is {width}")
    _write_tokenizer(loaded, family, target / TOKENIZER)
    length = int(options.options["length"])
    sample = tokens(text.read_text(encoding="utf-8"), target / TOKENIZER, family=family, graph=graph, length=length)
    prepared = Prepared(loaded=loaded, graph=graph, sample=sample)
    pooled = graph.outputs[-1].name
    answers.write_request(target / "sample/request.json", sample)
    answers.write(target / "sample/answer.json", {pooled: prepared.reference(sample)[pooled]})
    return prepared


def tokens(text: str, path: Path, *, family: Family, graph: Graph, length: int) -> Arrays:
    """A text as the graph's inputs, cut or padded to ``length`` tokens, as the clients' adapter ``tokens`` does it."""
    tool = Tokenizer.from_file(str(path))
    pad = tool.token_to_id(family.pad)
    if pad is None:
        raise WorkFailedError(f"{path.name} has no token {family.pad} to pad with")
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
    with whole(path) as temporary:
        shutil.copyfile(loaded.folder / TOKENIZER, temporary)
