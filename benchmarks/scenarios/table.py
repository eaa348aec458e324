"""The table of scenarios: which claims, and in which ways a model is served to try them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.scenarios.claims import Claim, Figure
from benchmarks.scenarios.measuring import Repeats
from benchmarks.scenarios.models import compressed, memory_bound, resnet, roberta_base
from benchmarks.scenarios.served import Way

CACHE_BYTES = 64 << 20
DELAY_US = 500
NEEDS_TENSORRT = (
    "TensorRT's 174 ms and cold start of 4.5 s, between PyTorch and ONNX Runtime: needs an engine",
    "TensorRT halves latency (BERT large; table: 51 % less on g4dn.xlarge, 0.4 % on 2xlarge, 69 % on 12xlarge)",
    "TensorRT is more than 3 times faster (BERT large; table: on 12xlarge alone, 906 ms → 279 ms)",
    "TensorRT adds 30 % throughput (BERT large; table: 31, 32 and 35 % on the three types)",
)
"""Claims on TensorRT, which needs a GPU, and what the published load test's table has of them
(``tritonstack_capacity/sizing/data/bert_large_load_test.csv``)."""
COLD, TURNS = 9, 12
"""So many that the interval leaves out the farthest cold start, and the two farthest turns, at either end."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Ways to serve a model, side by side; the first is what the others are held to in the table."""

    title: str  # above its table
    published: str  # claims of the posts
    ways: tuple[Way, ...]  # of at least one
    repeats: Repeats  # how often each is measured
    claims: tuple[Claim, ...]  # that are tried; the ways by their names
    not_here: tuple[str, ...] = ()  # what belongs to the claims and cannot be tried on a CPU, and why


def parameter(key: str, value: int) -> str:
    """A parameter of a ``config.pbtxt``."""
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


def graph(level: int) -> str:
    """ONNX Runtime's graph optimisations, by Triton's number for them."""
    return f"optimization {{ graph {{ level: {level} }} }}"


# One thread an instance on any machine: ways differ only in what their names state.
ONE_THREAD = parameter("intra_op_thread_count", 1)
ONE_TORCH_THREAD = parameter("INTRA_OP_THREAD_COUNT", 1)
BATCHING = "dynamic_batching { }"
DELAYED = f"dynamic_batching {{ max_queue_delay_microseconds: {DELAY_US} }}"
TWO = "instance_group [ { count: 2 kind: KIND_CPU } ]"
WARM_UP = """model_warmup [ { name: "first" batch_size: 1
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 2048 ] random_data: true } } } ]"""

PLAIN = Way(name="plain", model=memory_bound, fragments=(ONE_THREAD,))
DYNAMIC = Way(name="dynamic batching", model=memory_bound, fragments=(ONE_THREAD, BATCHING))
DELAY = Way(name=f"dynamic batching, waits {DELAY_US} µs", model=memory_bound, fragments=(ONE_THREAD, DELAYED))
INSTANCES = Way(name="two instances", model=memory_bound, fragments=(ONE_THREAD, TWO))
BOTH = Way(name="both", model=memory_bound, fragments=(ONE_THREAD, BATCHING, TWO))
COMPRESSED = Way(name="compressed, as tar czf", model=compressed, fragments=(ONE_THREAD,))
STORED = Way(name="stored, as tritonstack pack", model=memory_bound, fragments=(ONE_THREAD,))
UNCACHED = Way(name="without", model=memory_bound, fragments=(ONE_THREAD,))
CACHED = Way(
    name="with response cache",
    model=memory_bound,
    fragments=(ONE_THREAD, "response_cache { enable: true }"),
    arguments=f"--cache-config=local,size={CACHE_BYTES}",
)
COLD_MODEL = Way(name="without model_warmup", model=memory_bound, fragments=(ONE_THREAD,))
WARMED = Way(name="with model_warmup", model=memory_bound, fragments=(ONE_THREAD, WARM_UP))
ONNX = Way(name="ONNX Runtime", model=partial(resnet, name="resnet50-onnx"), fragments=(ONE_THREAD,))
PYTORCH = Way(name="PyTorch", model=partial(resnet, name="resnet50-torchscript"), fragments=(ONE_TORCH_THREAD,))
BINARY = Way(name="binary", model=partial(resnet, name="resnet50-onnx"), fragments=(ONE_THREAD,))
JSON = Way(name="JSON", model=partial(resnet, name="resnet50-onnx", payload_format="json"), fragments=(ONE_THREAD,))
TINY = partial(resnet, name="resnet50-onnx", size="tiny")
TINY_BINARY = Way(name="binary", model=TINY, fragments=(ONE_THREAD,))
TINY_JSON = Way(name="JSON", model=partial(TINY, payload_format="json"), fragments=(ONE_THREAD,))


def _roberta(name: str, *fragments: str) -> Way:
    return Way(name=name, model=roberta_base, fragments=(ONE_THREAD, *fragments))


def _resnet(name: str, *fragments: str) -> Way:
    return Way(name=name, model=partial(resnet, name="resnet50-onnx"), fragments=(ONE_THREAD, *fragments))


EXTENDED_AND_PARALLEL = (graph(1), parameter("execution_mode", 1), parameter("inter_op_thread_count", 2))
RESNET_DEFAULT = _resnet("ResNet-50, Triton's defaults", graph(0))
RESNET_EXTENDED = _resnet("ResNet-50, extended graph optimisations (1, the post's)", graph(1))
RESNET_PARALLEL = _resnet(
    "ResNet-50, extended and parallel execution (the post's), 2 threads",
    *EXTENDED_AND_PARALLEL,
)
DEFAULT = _roberta("Triton's defaults", graph(0))
EXTENDED = _roberta("extended graph optimisations (1, the post's)", graph(1))
UNOPTIMISED = _roberta("no graph optimisations (2)", graph(2))
PARALLEL = _roberta(
    "extended and parallel execution (the post's), 2 threads",
    *EXTENDED_AND_PARALLEL,
)
NO_PATTERN = _roberta("extended, no memory pattern", graph(1), parameter("enable_mem_pattern", 0))
NO_ARENA = _roberta("extended, no memory arena", graph(1), parameter("enable_mem_arena", 0))


def claim(said: str, better: Way, than: Way, times: float = 1.0, by: Figure = Figure.RATE) -> Claim:
    """``better`` is better than ``than``, at least so many times, by a figure."""
    return Claim(said=said, better=better.name, than=than.name, by=by, times=times)


SCENARIOS: Mapping[str, Scenario] = {
    "batching": Scenario(
        title="Dynamic batching and instances: a model bound by memory traffic, 16 callers",
        published="dynamic batching about doubles throughput, a second instance adds 80 to 90 % (BERT large, T4). "
        "The same post's table has 0.95 to 1.08 times (PyTorch) and 1.68 to 1.86 times (TensorRT) for batching; for a "
        "second instance 1.81 to 1.94 times (PyTorch).",
        ways=(PLAIN, DYNAMIC, DELAY, INSTANCES, BOTH),
        repeats=Repeats(turns=TURNS, users=16),
        claims=(
            claim("dynamic batching at least doubles throughput (bound by memory traffic)", DYNAMIC, PLAIN, 2),
            claim(f"dynamic batching that waits {DELAY_US} µs at least doubles it, too", DELAY, PLAIN, 2),
            claim("two instances add throughput", INSTANCES, PLAIN),
            claim("two instances add 80 % to it (here they share the memory's bandwidth)", INSTANCES, PLAIN, 1.8),
            claim("both together have more throughput than dynamic batching alone", BOTH, DYNAMIC),
        ),
    ),
    "one-caller": Scenario(
        title="Dynamic batching with one caller",
        published="batching costs nothing where there is nothing to batch.",
        ways=(PLAIN, DYNAMIC, DELAY),
        repeats=Repeats(turns=TURNS),
        claims=(
            claim("dynamic batching costs one caller less than a tenth", DYNAMIC, PLAIN, 0.9),
            claim(f"dynamic batching that waits {DELAY_US} µs costs one caller less than a tenth", DELAY, PLAIN, 0.9),
        ),
    ),
    "frameworks": Scenario(
        title="PyTorch against ONNX Runtime: ResNet-50, 2 callers",
        published="ResNet-50: PyTorch 176 ms, cold start 6 s; TensorRT 174 ms, 4.5 s; ONNX Runtime 168 ms, 4.4 s. The "
        "post serves on an ml.g4dn.4xlarge (a T4) and does not say whether this benchmark ran on one.",
        ways=(PYTORCH, ONNX),
        repeats=Repeats(cold_starts=COLD, turns=TURNS, users=2),
        claims=(
            claim("ONNX Runtime is faster than PyTorch", ONNX, PYTORCH),
            claim("ONNX Runtime starts faster than PyTorch", ONNX, PYTORCH, by=Figure.COLD_START),
        ),
        not_here=NEEDS_TENSORRT,
    ),
    "resnet-options": Scenario(
        title="ONNX Runtime's options: ResNet-50, 1 caller",
        published="graph optimisation, cuDNN's heuristic and parallel execution: ResNet-50's cold start "
        "4.4 s → 1.61 s; cuDNN's heuristic alone: 168 ms → 160 ms.",
        ways=(RESNET_DEFAULT, RESNET_EXTENDED, RESNET_PARALLEL),
        repeats=Repeats(cold_starts=COLD, turns=TURNS),
        claims=(
            claim(
                "ResNet-50, extended graph optimisations, parallel execution: shorter cold start",
                RESNET_PARALLEL,
                RESNET_DEFAULT,
                by=Figure.COLD_START,
            ),
            claim(
                "ResNet-50, the same: cold start a third of the default's (4.4 s to 1.61 s is 2.7 times)",
                RESNET_PARALLEL,
                RESNET_DEFAULT,
                2.7,
                by=Figure.COLD_START,
            ),
            claim("ResNet-50, the same: faster in steady state", RESNET_PARALLEL, RESNET_DEFAULT),
            claim(
                "ResNet-50, extended graph optimisations alone: shorter cold start",
                RESNET_EXTENDED,
                RESNET_DEFAULT,
                by=Figure.COLD_START,
            ),
        ),
        not_here=("ResNet-50, `cudnn_conv_algo_search: heuristic`, 168 ms → 160 ms: CUDA",),
    ),
    "onnxruntime": Scenario(
        title="ONNX Runtime's options: RoBERTa base, 512 tokens, 1 caller",
        published="nothing of RoBERTa: the post's figures of these options are ResNet-50's. Here on a larger network.",
        ways=(DEFAULT, EXTENDED, UNOPTIMISED, PARALLEL),
        repeats=Repeats(cold_starts=COLD, turns=TURNS),
        claims=(
            claim(
                "extended graph optimisations, parallel execution: shorter cold start",
                PARALLEL,
                DEFAULT,
                by=Figure.COLD_START,
            ),
            claim("extended graph optimisations alone: shorter cold start", EXTENDED, DEFAULT, by=Figure.COLD_START),
            claim("extended graph optimisations, parallel execution: faster in steady state", PARALLEL, DEFAULT),
            claim("extended graph optimisations are faster than none in steady state", EXTENDED, UNOPTIMISED),
        ),
        not_here=(
            "`cudnn_conv_algo_search`, `arena_extend_strategy`, `gpu_mem_limit`, `do_copy_in_default_stream`: CUDA",
            "`default-max-batch-size`: for models that state none, and these do",
        ),
    ),
    "memory": Scenario(
        title="ONNX Runtime's memory: RoBERTa base, 512 tokens, 1 caller",
        published="arena and pattern on, as they are by default.",
        ways=(EXTENDED, NO_PATTERN, NO_ARENA),
        repeats=Repeats(turns=TURNS),
        claims=(
            claim("the memory pattern is worth having in steady state", EXTENDED, NO_PATTERN),
            claim("the memory arena is worth having in steady state", EXTENDED, NO_ARENA),
        ),
    ),
    "payload": Scenario(
        title="Binary against JSON: an image of 3 by 224 by 224 FP32 to ResNet-50, 4 callers",
        published="binary is recommended; the figures were taken with JSON.",
        ways=(JSON, BINARY),
        repeats=Repeats(turns=TURNS, users=4),
        claims=(claim("binary has more throughput than JSON", BINARY, JSON),),
    ),
    "payload-alone": Scenario(
        title="Binary against JSON: the same image to a network of few layers, 4 callers",
        published="as above; here the format is most of the work.",
        ways=(TINY_JSON, TINY_BINARY),
        repeats=Repeats(turns=TURNS, users=4),
        claims=(claim("binary has more throughput than JSON where little is computed", TINY_BINARY, TINY_JSON),),
    ),
    "archives": Scenario(
        title="Stored against compressed archives at cold start: 134 MB of random weights",
        published="nothing. This project's own claim: weights do not compress, so what is stored loads faster.",
        ways=(COMPRESSED, STORED),
        repeats=Repeats(cold_starts=COLD),
        claims=(
            claim("a stored archive unpacks faster", STORED, COMPRESSED, by=Figure.UNPACK),
            claim("the cold start from a stored archive is shorter", STORED, COMPRESSED, by=Figure.COLD_START),
        ),
    ),
    "response-cache": Scenario(
        title="Response cache: the same request again and again, 4 callers",
        published="an answer that is known need not be computed. Every request the same is the most that it can give.",
        ways=(UNCACHED, CACHED),
        repeats=Repeats(turns=TURNS, users=4),
        claims=(claim("a response cache adds throughput", CACHED, UNCACHED),),
    ),
    "warm-up": Scenario(
        title="Warm-up",
        published="`model_warmup` moves the first run's cost from the first caller to the load.",
        ways=(COLD_MODEL, WARMED),
        repeats=Repeats(cold_starts=COLD),
        claims=(
            claim("the first call after a warmed load is shorter", WARMED, COLD_MODEL, by=Figure.FIRST_CALL),
            claim("the whole cold start is less than a tenth longer", WARMED, COLD_MODEL, 0.9, by=Figure.COLD_START),
        ),
    ),
}
