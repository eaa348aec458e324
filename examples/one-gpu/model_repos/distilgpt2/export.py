"""Export DistilGPT-2 to ONNX: the tokens of a beginning in, the logits of the token that follows out."""

from typing import Any

import numpy as np
import torch
from _exporters.onnx_export import export
from torch import nn
from transformers import GPT2LMHeadModel


class NextToken(nn.Module):
    """INT64 [batch, sequence] → FP32 [batch, vocabulary]: a program that calls it again with its choice generates."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any) -> Any:
        batch, length = input_ids.shape
        # Each token sees those before it; of four axes, so that transformers makes no mask of its own.
        later = torch.ones((length, length)).triu(1) * -10000.0
        added = later[None, None].expand(batch, 1, length, length)
        return self.model(input_ids=input_ids, attention_mask=added, use_cache=False, logits_to_keep=1).logits[:, -1]


def sample(_config: Any) -> dict[str, np.ndarray]:
    """Tokens of "The house is", by GPT-2's own tokenizer."""
    return {"input_ids": np.array([[464, 2156, 318]], dtype=np.int64)}


if __name__ == "__main__":
    export("distilgpt2/1/model.onnx", GPT2LMHeadModel, NextToken, sample)
