"""Export BERT base to ONNX: tokens and their mask in, the pooled output out."""

from typing import Any

import numpy as np
from _exporters.onnx_export import export
from torch import nn
from transformers import BertModel

LENGTH, TEXT = 128, 10


class Pooled(nn.Module):
    """INT64 [batch, 128] twice → FP32 [batch, 768]."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        # The mask that is added to attention's scores, in FP16's range; of four axes, so that transformers makes none.
        added = (1.0 - attention_mask.float())[:, None, None, :] * -10000.0
        return self.model(input_ids=input_ids, attention_mask=added, token_type_ids=input_ids * 0).pooler_output


def sample(config: Any) -> dict[str, np.ndarray]:
    """Ten tokens, and padding."""
    places = np.arange(LENGTH)
    ids = np.where(places < TEXT, 100 + places, config.pad_token_id)
    return {"input_ids": ids[None].astype(np.int64), "attention_mask": (places < TEXT)[None].astype(np.int64)}


if __name__ == "__main__":
    export("bert/1/model.onnx", BertModel, Pooled, sample)
