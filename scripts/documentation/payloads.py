"""The table of docs/clients.md: how many bytes each published system's requests and responses have, in either format.

Nothing runs: names, types and shapes come from each system's config.pbtxt, the requests are those that the client
builds, and a response is counted as the same tensors in the same two formats. The values are drawn with a fixed seed,
as many digits long as such values are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tritonclient.utils import triton_to_np_dtype

from scripts.documentation.markdown import filled, table
from tritonstack.client.body import Array, PayloadFormat, encode
from tritonstack.models.model_config import Tensor, read_config
from tritonstack.paths import repository_path

PATH = "docs/clients.md"
JPEG_BYTES = 576_464
"""The photograph of the AWS walkthroughs, shiba_inu_dog.jpg."""
SENTENCE_TOKENS = 16
VOCABULARY = 30_000
POOLED = ("pooled_output",)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One request to one system: a row."""

    title: str  # the row's first words
    folder: str  # the model folder
    outputs: tuple[str, ...] = ()  # those that are asked for; all where none is named
    length: int = SENTENCE_TOKENS  # of what may have any length in the request: a JPEG's bytes, a text's tokens
    answer_length: int = SENTENCE_TOKENS  # of what may have any length in the response


CASES = (
    Case(title="ResNet50, 224 x 224 pixels", folder="resnet50-onnx"),
    Case(title="RoBERTa large, 512 tokens, every output", folder="roberta-large-onnx", answer_length=512),
    Case(title="RoBERTa large, the pooled output alone", folder="roberta-large-onnx", outputs=POOLED),
    Case(title="BERT in TensorRT, 128 tokens, every output", folder="bert-tensorrt"),
    Case(title="BERT in TensorRT, the pooled output alone", folder="bert-tensorrt", outputs=POOLED),
    Case(title=f"Inception ensemble, a JPEG of {JPEG_BYTES:,} bytes", folder="inception-ensemble", length=JPEG_BYTES),
    Case(title=f"T5, {SENTENCE_TOKENS} tokens", folder="t5-python"),
    Case(title="BERT large, 512 tokens, every output", folder="bert-large"),
    Case(title="BERT large, the pooled output alone", folder="bert-large", outputs=POOLED),
)


def clients_page() -> str:
    """The page with its table made anew."""
    return filled(PATH, {"payloads": _payloads})


def _payloads() -> str:
    titles = ["question", "request: JSON", "binary", "times", "response: JSON", "binary", "times"]
    return table(titles, [[case.title, *_pair(case, sent=True), *_pair(case, sent=False)] for case in CASES])


def _pair(case: Case, *, sent: bool) -> list[str]:
    """Bytes in JSON and binary, and how many times more the one are."""
    text = repository_path(f"model_repos/{case.folder}/{case.folder}/config.pbtxt").read_text(encoding="utf-8")
    config, random = read_config(text), np.random.default_rng(0)

    def drawn(tensors: Sequence[Tensor], length: int) -> dict[str, Array]:
        return {each.name: _tensor(each, random, batched=config.max_batch_size > 0, length=length) for each in tensors}

    arrays = drawn(config.inputs, case.length)
    if not sent:
        wanted = [each for each in config.outputs if not case.outputs or each.name in case.outputs]
        arrays = drawn(wanted, case.answer_length)
    formats: tuple[PayloadFormat, ...] = ("json", "binary")
    outputs = case.outputs if sent else ()
    json, binary = (len(encode(arrays, outputs=outputs, payload_format=each).content) for each in formats)
    return [f"{json:,}", f"{binary:,}", f"{json / binary:.1f}"]


def _tensor(tensor: Tensor, random: np.random.Generator, *, batched: bool, length: int) -> Array:
    """Values as such tensors have them, a batch of one."""
    shape = (*((1,) if batched else ()), *(length if side == -1 else side for side in tensor.dims))
    dtype = np.dtype(triton_to_np_dtype(tensor.data_type))
    if dtype == np.uint8:
        return random.integers(0, 256, shape, dtype=np.uint8)
    if dtype.kind == "i":
        values = random.integers(0, VOCABULARY, shape) if "mask" not in tensor.name else np.ones(shape)
        return values.astype(dtype)
    return random.standard_normal(shape).astype(dtype)
