"""The published models in plain PyTorch with random weights: ResNet-50, BERT, RoBERTa and T5.

Written out, and not taken from torchvision or transformers: so two machines measure the same network, whatever versions
they have, and none is needed. The numbers of parameters are those of the published models (a test holds them).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional

SEED = 0


class Bottleneck(nn.Module):
    """A block of ResNet-50: 1x1, 3x3 and 1x1 convolutions beside a shortcut (https://arxiv.org/abs/1512.03385)."""

    def __init__(self, width_in: int, width: int, *, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            *_convolution(width_in, width, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride=stride),
            nn.ReLU(inplace=True),
            *_convolution(width, out, 1),
        )
        needed = stride != 1 or width_in != out
        self.shortcut = nn.Sequential(*_convolution(width_in, out, 1, stride=stride)) if needed else nn.Identity()

    def forward(self, x: Any) -> Any:
        """Images' features to features."""
        return functional.relu(self.body(x) + self.shortcut(x))


def _convolution(width_in: int, width_out: int, kernel: int, *, stride: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(width_in, width_out, kernel, stride=stride, padding=kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(width_out)]


class ResNet(nn.Module):
    """An image of 3 by 224 by 224 to the logits of 1,000 classes."""

    def __init__(self, *, stem: int, depths: tuple[int, ...]) -> None:
        """``stem``: channels of the first layer; ``depths``: blocks of each stage."""
        super().__init__()
        layers = [*_convolution(3, stem, 7, stride=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
        width_in, width = stem, stem
        for stage, depth in enumerate(depths):
            for block in range(depth):
                layers.append(Bottleneck(width_in, width, stride=2 if stage and not block else 1))
                width_in = 4 * width
            width *= 2
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classes = nn.Linear(width_in, 1000)

    def forward(self, x: Any) -> Any:
        """Images to logits."""
        return self.classes(self.features(x))


@dataclass(frozen=True, kw_only=True)
class TextShape:
    """Dimensions of a transformer for texts."""

    vocabulary: int
    positions: int
    types: int
    width: int
    layers: int
    heads: int
    inner: int  # width of the feed-forward layers
    first_position: int = 0  # RoBERTa's positions begin after its padding index


class Encoder(nn.Module):
    """BERT and RoBERTa: ids and attention mask to the pooled output (https://arxiv.org/abs/1810.04805)."""

    def __init__(self, shape: TextShape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.types = nn.Embedding(shape.types, shape.width)
        self.norm = nn.LayerNorm(shape.width)
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(shape.layers))
        self.pooler = nn.Linear(shape.width, shape.width)

    def forward(self, ids: Any, mask: Any) -> Any:
        """Ids and mask, of [batch, tokens], to the pooled output."""
        places = torch.arange(ids.size(1), device=ids.device) + self.shape.first_position
        hidden = self.words(ids) + self.positions(places) + self.types(torch.zeros_like(ids))
        hidden = self.norm(hidden)
        allowed = mask[:, None, None, :].bool()
        for layer in self.layers:
            hidden = layer(hidden, allowed)
        return torch.tanh(self.pooler(hidden[:, 0]))


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network, each with a residual connection and a norm after it."""

    def __init__(self, shape: TextShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.query, self.key, self.value, self.out = (nn.Linear(shape.width, shape.width) for _ in range(4))
        self.norm, self.last_norm = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.inner, self.outer = nn.Linear(shape.width, shape.inner), nn.Linear(shape.inner, shape.width)

    def forward(self, hidden: Any, allowed: Any) -> Any:
        """Hidden states to hidden states; ``allowed``: the positions that may be attended to."""
        query, key, value = (_split(each(hidden), self.heads) for each in (self.query, self.key, self.value))
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        hidden = self.norm(hidden + self.out(attended.transpose(1, 2).flatten(2)))
        return self.last_norm(hidden + self.outer(functional.gelu(self.inner(hidden))))


def _split(hidden: Any, heads: int) -> Any:
    """[batch, tokens, width] to [batch, heads, tokens, width of a head]."""
    return hidden.unflatten(2, (heads, -1)).transpose(1, 2)


class T5(nn.Module):
    """T5: ids to the ids of a greedily decoded text of ``STEPS`` tokens (https://arxiv.org/abs/1910.10683).

    Without a cache of keys and values: each step computes the decoder over all tokens so far.
    """

    STEPS = 16

    def __init__(self, shape: TextShape) -> None:
        super().__init__()
        self.width = shape.width
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.encoder, self.decoder = (T5Stack(shape, crossed=crossed) for crossed in (False, True))

    def forward(self, ids: Any, mask: Any) -> Any:
        """Ids and mask, of [batch, tokens], to the ids of the answer."""
        allowed = mask[:, None, None, :].bool()
        source = self.encoder(self.words(ids), allowed)
        made = torch.zeros_like(ids[:, :1])
        for _ in range(self.STEPS):
            hidden = self.decoder(self.words(made), None, source=source, source_allowed=allowed)
            logits = functional.linear(hidden[:, -1] * self.width**-0.5, self.words.weight)
            made = torch.cat((made, logits.argmax(-1, keepdim=True).to(ids.dtype)), dim=1)
        return made


class T5Stack(nn.Module):
    """T5's encoder, or its decoder, which attends to the encoder's states, too."""

    BUCKETS, FARTHEST = 32, 128  # of relative positions

    def __init__(self, shape: TextShape, *, crossed: bool) -> None:
        super().__init__()
        self.heads, self.causal = shape.heads, crossed
        self.bias = nn.Embedding(self.BUCKETS, shape.heads)
        self.blocks = nn.ModuleList(T5Block(shape, crossed=crossed) for _ in range(shape.layers))
        self.norm = T5Norm(shape.width)

    def forward(self, hidden: Any, allowed: Any, *, source: Any = None, source_allowed: Any = None) -> Any:
        """Hidden states to hidden states. ``source``: the encoder's, of which ``source_allowed`` may be attended to."""
        bias = self._position_bias(hidden.size(1), hidden.device)
        if allowed is not None:
            bias = bias.masked_fill(~allowed, torch.finfo(hidden.dtype).min)
        for block in self.blocks:
            hidden = block(hidden, bias, source, source_allowed)
        return self.norm(hidden)

    def _position_bias(self, tokens: int, device: Any) -> Any:
        places = torch.arange(tokens, device=device)
        distance = places[None, :] - places[:, None]
        buckets = self.BUCKETS if self.causal else self.BUCKETS // 2
        offset = torch.zeros_like(distance) if self.causal else (distance > 0).long() * buckets
        distance = (-distance).clamp(min=0) if self.causal else distance.abs()
        exact = buckets // 2
        far = exact + (distance.clamp(min=1).float() / exact).log() / math.log(self.FARTHEST / exact) * (
            buckets - exact
        )
        bucket = torch.where(distance < exact, distance, far.long().clamp(max=buckets - 1))
        bias = self.bias(bucket + offset).permute(2, 0, 1)[None]
        if self.causal:
            bias = bias.masked_fill(places[None, :] > places[:, None], torch.finfo(bias.dtype).min)
        return bias


class T5Block(nn.Module):
    """Attention to itself, in a decoder to the source, and a feed-forward network, each after a norm."""

    def __init__(self, shape: TextShape, *, crossed: bool) -> None:
        super().__init__()
        self.own = T5Attention(shape)
        self.cross = T5Attention(shape) if crossed else None
        self.norm = T5Norm(shape.width)
        self.inner = nn.Linear(shape.width, shape.inner, bias=False)
        self.outer = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, hidden: Any, bias: Any, source: Any, source_allowed: Any) -> Any:
        """Hidden states to hidden states."""
        hidden = self.own(hidden, None, bias)
        if self.cross is not None:
            hidden = self.cross(hidden, source, source_allowed)
        return hidden + self.outer(functional.relu(self.inner(self.norm(hidden))))


class T5Attention(nn.Module):
    """Attention after a norm, unscaled, with a residual connection."""

    def __init__(self, shape: TextShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norm = T5Norm(shape.width)
        self.query, self.key, self.value, self.out = (nn.Linear(shape.width, shape.width, bias=False) for _ in range(4))

    def forward(self, hidden: Any, source: Any, mask: Any) -> Any:
        """``source``: what is attended to; None: ``hidden`` itself."""
        normed = self.norm(hidden)
        of = normed if source is None else source
        query, key, value = (_split(each, self.heads) for each in (self.query(normed), self.key(of), self.value(of)))
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=1.0)
        return hidden + self.out(attended.transpose(1, 2).flatten(2))


class T5Norm(nn.Module):
    """Root mean square norm, computed in FP32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        """Features of unit size, weighted."""
        size = x.float().pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(size + 1e-6)).to(x.dtype)


BERT_BASE = TextShape(vocabulary=30522, positions=512, types=2, width=768, layers=12, heads=12, inner=3072)
BERT_LARGE = replace(BERT_BASE, width=1024, layers=24, heads=16, inner=4096)
ROBERTA_BASE = replace(BERT_BASE, vocabulary=50265, positions=514, types=1, first_position=2)
T5_SMALL = TextShape(vocabulary=32128, positions=0, types=0, width=512, layers=6, heads=8, inner=2048)
TINY = TextShape(vocabulary=600, positions=514, types=2, width=32, layers=2, heads=2, inner=64)
TEXTS: dict[str, TextShape] = {
    "bert-large": BERT_LARGE,
    "bert-base": BERT_BASE,
    "roberta-base": ROBERTA_BASE,
    "t5-small": T5_SMALL,
}
TOKENS = {"bert-large": 512, "bert-base": 128, "roberta-base": 512, "t5-small": 32}
"""Tokens of a request, as in the posts; of T5's a short sentence, padded."""


def network(name: str, *, tiny: bool = False) -> nn.Module:
    """One of the published models with random weights from a seed, for inference, in FP32 on the CPU.

    ``tiny``: with few and small layers, for tests.
    """
    torch.manual_seed(SEED)
    if name == "resnet50":
        made: nn.Module = ResNet(stem=8, depths=(1, 1, 1, 1)) if tiny else ResNet(stem=64, depths=(3, 4, 6, 3))
    else:
        shape = replace(TINY, first_position=TEXTS[name].first_position) if tiny else TEXTS[name]
        made = T5(shape) if name == "t5-small" else Encoder(shape)
    return made.eval()


def inputs(name: str, *, batch: int, tiny: bool = False) -> tuple[Any, ...]:
    """A request's tensors on the CPU: images, or ids and attention mask."""
    random = torch.Generator().manual_seed(SEED)
    if name == "resnet50":
        return (torch.rand((batch, 3, 224, 224), generator=random),)
    shape = TINY if tiny else TEXTS[name]
    ids = torch.randint(10, shape.vocabulary, (batch, 16 if tiny else TOKENS[name]), generator=random)
    return ids, torch.ones_like(ids)
