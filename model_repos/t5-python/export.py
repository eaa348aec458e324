"""T5 as a folder that transformers loads without the network, its tokenizer, a sample request and its answer.

Runs in the environment ``torch``. The proof: the model loaded from the written folder gives the logits and the ids of
the model it was written from; and a request gives the same ids alone and in a padded batch, as model.py makes one.
"""

# ruff: noqa: T201 - `tritonstack build` shows what is printed here

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import safetensors
import tokenizers
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import GenerationConfig, T5Config, T5ForConditionalGeneration

from tritonstack.exporters import answers, arguments, hub, report, tokenizer

MODEL = Path("t5-python/1/model")
SPECIALS = ["<pad>", "</s>", "<unk>"]  # T5's own, under T5's ids 0, 1 and 2
HUB_FILES = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"]
LENGTHS = (3, 17)  # tokens of the requests that the proof makes up: two lengths, as the axis is dynamic


def main() -> int:
    given = arguments.parse()
    options = given.options
    torch.manual_seed(options.seed)
    if options.weights == "random":
        source, words = random_model(options.size)
    else:
        source, words = pretrained_model(hub.fetch(options.source, HUB_FILES))
    source = source.float().eval()
    source.generation_config = bounded(options.options["max_new_tokens"])

    folder = given.target / MODEL
    source.save_pretrained(folder, safe_serialization=True)
    words.save(str(given.target / "tokenizer.json"))
    loaded = T5ForConditionalGeneration.from_pretrained(folder, local_files_only=True).eval()

    ids = np.array([words.encode(options.options["text"]).ids], dtype=np.int32)
    requests = [ids, *made_up(source.config.vocab_size, options.seed)]
    difference = prove_weights(source, loaded, requests, batches=(1, options.max_batch_size), limit=options.tolerance)
    tokens = prove_padding(source, loaded, requests)
    write_sample(given.target / "sample", ids, source)
    print(f"largest difference of a logit after loading: {difference:.2e}", flush=True)
    modules = (np, safetensors, tokenizers, torch, transformers)
    report.write(
        given,
        figures={"largest_difference": difference, "padding_invariant_tokens": tokens},
        tools={module.__name__: module.__version__ for module in modules},
    )
    return 0


def random_model(size: dict) -> tuple[T5ForConditionalGeneration, Tokenizer]:
    """T5-small's architecture, which is the default of T5Config, with random weights, and bytes as words."""
    config = T5Config(decoder_start_token_id=0, **size)
    words = tokenizer.byte_level(config.vocab_size, SPECIALS)
    words.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", config.eos_token_id)])
    return T5ForConditionalGeneration(config), words


def pretrained_model(folder: Path) -> tuple[T5ForConditionalGeneration, Tokenizer]:
    """The published weights and the published tokenizer, which adds the end itself."""
    model = T5ForConditionalGeneration.from_pretrained(folder, local_files_only=True, use_safetensors=True)
    return model, Tokenizer.from_file(str(folder / "tokenizer.json"))


def bounded(max_new_tokens: int) -> GenerationConfig:
    """Greedy generation that ends."""
    return GenerationConfig(
        decoder_start_token_id=0, eos_token_id=1, pad_token_id=0, max_new_tokens=max_new_tokens, num_beams=1
    )


def made_up(vocabulary: int, seed: int) -> list[np.ndarray]:
    """Requests of random ids, two rows the first: INT32 [rows, tokens]."""
    random = np.random.default_rng(seed)
    return [
        random.integers(3, vocabulary, (rows, length), dtype=np.int32)
        for rows, length in zip((2, 1), LENGTHS, strict=True)
    ]


def prove_weights(
    source: T5ForConditionalGeneration,
    loaded: T5ForConditionalGeneration,
    requests: list[np.ndarray],
    *,
    batches: tuple[int, ...],
    limit: float,
) -> float:
    """Logits and ids of the loaded model against the source's, for every request repeated to every batch size.

    Returns the largest difference of a logit; ends the export where one is above ``limit`` or an id differs.
    """
    largest = 0.0
    for request in requests:
        for batch in batches:
            ids = torch.from_numpy(np.resize(request, (batch, request.shape[1]))).long()
            with torch.inference_mode():
                wanted, found = (
                    model(input_ids=ids, attention_mask=torch.ones_like(ids), decoder_input_ids=ids).logits
                    for model in (source, loaded)
                )
            difference = float((wanted - found).abs().max())
            if not difference <= limit:  # NaN is not
                sys.exit(f"tensor logits, batch {batch}: differs by {difference:.2e}, allowed {limit:.2e}")
            if not np.array_equal(generate(source, ids.numpy()), generate(loaded, ids.numpy())):
                sys.exit(f"tensor output, batch {batch}: the loaded model generates other ids than the source")
            largest = max(largest, difference)
    return largest


def prove_padding(
    source: T5ForConditionalGeneration, loaded: T5ForConditionalGeneration, requests: list[np.ndarray]
) -> int:
    """Each request's answer out of one padded batch of the archive's model, against the source's to it alone.

    Returns the number of ids compared; ends the export where an answer differs.
    """
    batching = archive_module("batching")
    questions = [batching.Question(ids=ids, mask=np.ones_like(ids)) for ids in requests]
    ids, mask = batching.merge(questions, padding=0)
    together = batching.split(generate(loaded, ids, mask), questions, ends=[1])
    for index, (request, answer) in enumerate(zip(requests, together, strict=True)):
        if not np.array_equal(generate(source, request), answer):
            sys.exit(f"tensor output: request {index} gives other ids in a padded batch than alone")
    return sum(answer.size for answer in together)


def generate(model: T5ForConditionalGeneration, ids: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """The framework's own greedy answer. Returns INT32 [rows, tokens]."""
    mask = np.ones_like(ids) if mask is None else mask
    with torch.inference_mode():
        found = model.generate(
            input_ids=torch.from_numpy(ids).long(),
            attention_mask=torch.from_numpy(mask).long(),
            do_sample=False,
        )
    return found.numpy().astype(np.int32)


def archive_module(name: str) -> ModuleType:
    """A module of the Triton model, which is no package."""
    path = Path(__file__).resolve().parent / "t5-python" / "1" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def write_sample(folder: Path, ids: np.ndarray, source: T5ForConditionalGeneration) -> None:
    """The sample request, and the source's answer to it."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [
        {"name": name, "datatype": "INT32", "shape": list(ids.shape), "data": values.ravel().tolist()}
        for name, values in (("input_ids", ids), ("attention_mask", np.ones_like(ids)))
    ]
    (folder / "request.json").write_text(json.dumps({"inputs": inputs}) + "\n")
    answers.write(folder / "answer.json", {"output": generate(source, ids)})


if __name__ == "__main__":
    sys.exit(main())
