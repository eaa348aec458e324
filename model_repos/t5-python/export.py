"""T5 as a folder that transformers loads without the network, its tokenizer, a sample request and its answer.

Runs in the environment ``torch``. The proof: the model loaded from the written folder gives the logits and the ids of
the model it was written from; and a request gives the same ids alone and in a padded batch, as model.py makes one.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig, T5ForConditionalGeneration

from _exporters import tokenizer, weights
from _exporters.cases import batches
from _exporters.script import Arguments, ExportError, run, say, versions, write_answer, write_report, write_request

MODEL = Path("t5-python/1/model")
T5_SMALL = {"decoder_start_token_id": 0}  # all else of T5Config's defaults is T5-small's
PADDING, END = 0, 1
SPECIALS = ("<pad>", "</s>", "<unk>")  # T5's own, with T5's ids 0, 1 and 2
HUB_TOKENIZER = "tokenizer.json"
RANDOM_FACTORS = {"shared.": 0.05, "Attention.q.": 3.0, "Attention.k.": 3.0, "relative_attention_bias.": 30.0}
LENGTHS = (3, 17)  # tokens of the proof's random requests: two lengths, as the axis is dynamic
TOOLS = ("numpy", "safetensors", "tokenizers", "torch", "transformers")


def main(given: Arguments) -> None:
    options = given.options
    loaded = weights.load(T5ForConditionalGeneration, options, defaults=T5_SMALL, files=(HUB_TOKENIZER,))
    source, words = loaded.model, words_of(loaded)
    if options.weights == "random":
        let_context_count(source)
    source.generation_config = bounded(options.options["max_new_tokens"])

    folder = given.target / MODEL
    source.save_pretrained(folder)
    tokenizer.save(words, given.target / "tokenizer.json")
    archived = T5ForConditionalGeneration.from_pretrained(folder, local_files_only=True, use_safetensors=True).eval()

    ids = np.array([words.encode(options.options["text"]).ids], dtype=np.int32)
    proved = batches(options)
    requests = [ids, *made_up(source.config.vocab_size, rows=proved[-1] - 1, seed=options.seed)]
    say("proof: the archived model against the source, alone and in padded batches")
    difference = prove_weights(source, archived, requests, batches=proved, limit=options.tolerance)
    alone = [generate(source, request) for request in requests]
    figures = {"largest_difference": difference, **prove_padding(archived, requests, alone)}
    say(", ".join(f"{name} {value:.3g}" for name, value in figures.items()))

    sample = given.target / "sample"
    write_request(sample / "request.json", {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    write_answer(sample / "answer.json", {"output": alone[0]})
    write_report(given, figures, versions(TOOLS), inputs=loaded.inputs)


def words_of(loaded: weights.Loaded) -> Any:
    """The published tokenizer, or for random weights one whose words are bytes. Both add the end themselves."""
    if loaded.folder is not None:
        return Tokenizer.from_file(str(loaded.folder / HUB_TOKENIZER))
    return tokenizer.byte_level(loaded.model.config.vocab_size, SPECIALS, template="$A </s>")


def let_context_count(model: T5ForConditionalGeneration) -> None:
    """Change random weights so that outputs depend on the input and on the position.

    T5 compares its last state with its input embeddings. New ones are so large that every token is followed by itself,
    and new attention is nearly uniform: a proof or a test with such weights would show nothing.
    """
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.mul_(next((factor for part, factor in RANDOM_FACTORS.items() if part in name), 1.0))


def bounded(max_new_tokens: int) -> GenerationConfig:
    """Greedy generation that ends."""
    return GenerationConfig(
        decoder_start_token_id=0,
        eos_token_id=END,
        pad_token_id=PADDING,
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
    )


def made_up(vocabulary: int, *, rows: int, seed: int) -> list[np.ndarray]:
    """Requests of random ids, of different lengths and ``rows`` in all: INT32 [rows, tokens] each."""
    random = np.random.default_rng(seed)
    shares = (rows - rows // 2, rows // 2)
    return [
        random.integers(len(SPECIALS), vocabulary, (share, length), dtype=np.int32)
        for share, length in zip(shares, LENGTHS, strict=True)
        if share
    ]


def prove_weights(
    source: T5ForConditionalGeneration,
    archived: T5ForConditionalGeneration,
    requests: list[np.ndarray],
    *,
    batches: tuple[int, ...],
    limit: float,
) -> float:
    """Logits of the archived model against the source's, for every request repeated to every batch size.

    Returns the largest difference. Raises ExportError where it is above ``limit``.
    """
    largest = 0.0
    for request in requests:
        for batch in batches:
            ids = torch.from_numpy(np.resize(request, (batch, request.shape[1]))).long()
            with torch.inference_mode():
                wanted, found = (
                    model(input_ids=ids, attention_mask=torch.ones_like(ids), decoder_input_ids=ids).logits
                    for model in (source, archived)
                )
            difference = float((wanted - found).abs().max())
            if not difference <= limit:  # NaN is not
                raise ExportError(f"tensor logits, batch {batch}: differs by {difference:.2e}, allowed {limit:.2e}")
            largest = max(largest, difference)
    return largest


def prove_padding(
    archived: T5ForConditionalGeneration, requests: list[np.ndarray], alone: list[np.ndarray]
) -> dict[str, float]:
    """Compare each request's output in a padded batch of the archived model with ``alone``, the source's for it alone.

    Returns the number of ids compared, and of different ones: a model that repeats itself would prove little. Raises
    ExportError where an output differs.
    """
    batching = archive_module("batching")
    questions = [batching.Question(ids=ids, mask=np.ones_like(ids)) for ids in requests]
    ids, mask = batching.merge(questions, padding=PADDING)
    together = batching.split(generate(archived, ids, mask), questions, ends=[END])
    for index, (wanted, found) in enumerate(zip(alone, together, strict=True)):
        if not np.array_equal(wanted, found):
            raise ExportError(f"tensor output: request {index} gives other ids in a padded batch than alone")
    every = np.concatenate([answer.ravel() for answer in together])
    return {"compared_ids": every.size, "distinct_ids": np.unique(every).size}


def generate(model: T5ForConditionalGeneration, ids: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """The framework's own greedy output. Returns INT32 [rows, tokens]."""
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


if __name__ == "__main__":
    sys.exit(run(main))
