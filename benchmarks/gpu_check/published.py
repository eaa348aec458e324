"""The published claims beside what this GPU showed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from benchmarks.gpu_check.schedule import Measurement, Precision, Runtime

T4_MIB = 15_109  # of the benchmark repository's ml.g4dn.2xlarge, which stopped at 90 % of it
ABOUT_DOUBLE = 1.8


class Verdict(str, Enum):  # noqa: UP042 - the machine's Python may be 3.10
    """What this GPU showed of a claim."""

    HOLDS = "holds on this GPU"
    FAILS = "does not hold on this GPU"
    BESIDE = "for comparison"
    OPEN = "not measured"
    NO_GPU = "no GPU: shows nothing"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What was measured of a claim, in words, and whether the claim holds; None: figures for comparison."""

    here: str
    holds: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PublishedClaim:
    """A claim of a post, and how this check tries it."""

    post: str  # as in the list of claims: onnx, tensorrt, load-test, …
    said: str
    shown: Callable[[Figures], Shown] | str  # or why it cannot be tried


@dataclass(frozen=True, kw_only=True)
class ClaimRow:
    """A row of the document."""

    post: str
    said: str
    here: str
    verdict: Verdict


class MissingFigureError(Exception):
    """A figure that a claim needs was not measured; the message has its name and the reason."""


class Figures:
    """The measurements, looked up."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self._all = measurements

    def latency(
        self,
        model: str,
        *,
        precision: Precision = "fp32",
        batch: int = 1,
        runtime: Runtime = "pytorch",
        options: str = "default",
    ) -> Measurement:
        """Of one caller. Raises MissingFigureError."""
        return self._one(
            model=model, precision=precision, batch=batch, runtime=runtime, options=options, kind="latency"
        )

    def loaded(self, model: str, *, runtime: Runtime = "pytorch", options: str = "default") -> Measurement:
        """The load of a model in FP32. Raises MissingFigureError."""
        return self._one(model=model, precision="fp32", runtime=runtime, options=options, kind="load")

    def under_load(self, model: str, *, instances: int, precision: Precision = "fp32") -> Measurement:
        """Of the closed loop. Raises MissingFigureError."""
        return self._one(model=model, precision=precision, instances=instances, runtime="pytorch", kind="under load")

    def _one(self, **wanted: object) -> Measurement:
        what = " ".join(str(value) for value in wanted.values())
        for each in self._all:
            if all(getattr(each, name) == value for name, value in wanted.items()):
                if each.status != "measured":
                    raise MissingFigureError(f"{what}: {each.status}, {each.reason}")
                return each
        raise MissingFigureError(f"{what}: not on this check's list")


def held(figures: Figures, *, gpu: bool) -> Iterator[ClaimRow]:
    """Every claim with what was measured of it; without a GPU the figures are shown, and hold nothing."""
    for claim in CLAIMS:
        if isinstance(claim.shown, str):
            yield ClaimRow(post=claim.post, said=claim.said, here=claim.shown, verdict=Verdict.OPEN)
            continue
        try:
            shown = claim.shown(figures)
        except MissingFigureError as error:
            yield ClaimRow(post=claim.post, said=claim.said, here=str(error), verdict=Verdict.OPEN)
            continue
        verdict = {None: Verdict.BESIDE, True: Verdict.HOLDS, False: Verdict.FAILS}[shown.holds]
        yield ClaimRow(post=claim.post, said=claim.said, here=shown.here, verdict=verdict if gpu else Verdict.NO_GPU)


def figure(value: float | None, what: str) -> float:
    """A figure that is there. Raises MissingFigureError."""
    if value is None:
        raise MissingFigureError(f"{what}: this machine has no such figure")
    return value


def _rates(before: Measurement, after: Measurement, *, at_least: float, unit: str = "responses/s") -> Shown:
    was, now = figure(before.per_second, "rate"), figure(after.per_second, "rate")
    times = now / was
    return Shown(here=f"{times:.2f} times: {was:.4g} → {now:.4g} {unit}", holds=times >= at_least)


def _two_instances(figures: Figures) -> Shown:
    one, two = (figures.under_load("bert-large", instances=count) for count in (1, 2))
    return _rates(one, two, at_least=ABOUT_DOUBLE)


def _utilization(figures: Figures) -> Shown:
    one, two = (
        figure(figures.under_load("bert-large", instances=count).gpu_percent, "GPU utilisation (NVML)")
        for count in (1, 2)
    )
    return Shown(here=f"{one:.0f} % → {two:.0f} %", holds=two >= ABOUT_DOUBLE * one)


def _batching(figures: Figures) -> Shown:
    one, sixteen = (figures.latency("bert-large", batch=batch) for batch in (1, 16))
    shown = _rates(one, sixteen, at_least=2, unit="inferences/s")
    return Shown(here=f"batches of 16, the most that batching gives: {shown.here}", holds=shown.holds)


def _bert_large(figures: Figures) -> Shown:
    loaded = figures.under_load("bert-large", instances=1)
    rate = figure(loaded.per_second, "rate") * 60
    return Shown(here=f"{rate:,.0f} a minute, p50 {figure(loaded.p50_ms, 'p50'):.0f} ms with {loaded.users} users")


def _parameters(figures: Figures) -> Shown:
    loaded = figures.loaded("bert-large")
    count, size = figure(loaded.parameters, "parameters"), figure(loaded.weights_mib, "weights")
    here = f"{count / 1e6:.0f} million, {size / 1024:.2f} GiB in FP32"
    return Shown(here=here, holds=abs(count / 336e6 - 1) < 0.01)


def _onnx_against_pytorch(figures: Figures) -> Shown:
    torch, onnx = figures.latency("resnet50"), figures.latency("resnet50", runtime="onnxruntime")
    was, now = figure(torch.p50_ms, "p50"), figure(onnx.p50_ms, "p50")
    return Shown(here=f"PyTorch {was:.2f} ms, ONNX Runtime {now:.2f} ms, without any payload", holds=now < was)


def _heuristic(figures: Figures) -> Shown:
    was, now = (
        figure(figures.latency("resnet50", runtime="onnxruntime", options=options).p50_ms, "p50")
        for options in ("default", "heuristic")
    )
    return Shown(here=f"{was:.2f} → {now:.2f} ms", holds=now < was)


def _cold_start(figures: Figures) -> Shown:
    def seconds(options: str) -> float:
        loaded = figures.loaded("resnet50", runtime="onnxruntime", options=options)
        return figure(loaded.load_seconds, "load") + figure(loaded.first_run_seconds, "first run")

    was, now = seconds("default"), seconds("post")
    return Shown(here=f"session and first run {was:.2f} → {now:.2f} s, {was / now:.2f} times", holds=was / now >= 2.7)


def _half_precision(figures: Figures) -> Shown:
    full, half = (figures.latency("bert-base", precision=each, batch=16) for each in ("fp32", "fp16"))
    return _rates(full, half, at_least=1.0, unit="inferences/s")


def _copies(model: str) -> Callable[[Figures], Shown]:
    def shown(figures: Figures) -> Shown:
        peak = figure(figures.loaded(model).peak_mib, "device memory of a model")
        return Shown(
            here=f"{peak:.0f} MiB a copy with a batch of 1: {int(0.9 * T4_MIB / peak)} copies in a T4's memory"
        )

    return shown


def _t5(figures: Figures) -> Shown:
    found = figures.latency("t5-small")
    return Shown(here=f"{figure(found.p50_ms, 'p50'):.1f} ms for 16 tokens, decoded without a cache")


NEEDS_ENGINE = "needs an engine: make gpu-check builds one where trtexec is, and compares its outputs, not its speed"
CLAIMS = (
    PublishedClaim(
        post="load-test", said="two instances add 80 to 90 % throughput (BERT large, PyTorch)", shown=_two_instances
    ),
    PublishedClaim(post="load-test", said="GPU utilisation doubles with two instances", shown=_utilization),
    PublishedClaim(
        post="load-test",
        said="dynamic batching about doubles throughput (its own table: 0.95 to 1.08 times with PyTorch)",
        shown=_batching,
    ),
    PublishedClaim(
        post="load-test",
        said="BERT large, PyTorch, on a T4: 490 a minute, 1,500 ms (ml.g4dn.xlarge)",
        shown=_bert_large,
    ),
    PublishedClaim(post="load-test", said="BERT large has 336 million parameters, 1.25 GB", shown=_parameters),
    PublishedClaim(post="load-test", said="TensorRT has half of PyTorch's latency", shown=NEEDS_ENGINE),
    PublishedClaim(post="load-test", said="TensorRT is 3 times faster", shown=NEEDS_ENGINE),
    PublishedClaim(post="load-test", said="TensorRT adds 30 % throughput", shown=NEEDS_ENGINE),
    PublishedClaim(
        post="onnx",
        said="ResNet-50: ONNX Runtime 168 ms, PyTorch 176 ms (with JSON payloads)",
        shown=_onnx_against_pytorch,
    ),
    PublishedClaim(post="onnx", said="ResNet-50: TensorRT 174 ms", shown=NEEDS_ENGINE),
    PublishedClaim(post="onnx", said="ResNet-50: cuDNN's heuristic, 168 → 160 ms", shown=_heuristic),
    PublishedClaim(
        post="onnx",
        said="ResNet-50: graph optimisation, heuristic, parallel execution: 4.4 → 1.61 s",
        shown=_cold_start,
    ),
    PublishedClaim(
        post="tensorrt", said="FP16 is faster than FP32 (BERT base, here in PyTorch)", shown=_half_precision
    ),
    PublishedClaim(post="benchmarks", said="46 copies of ResNet-50 on a T4 (TorchScript)", shown=_copies("resnet50")),
    PublishedClaim(post="benchmarks", said="26 copies of BERT base on a T4 (TorchScript)", shown=_copies("bert-base")),
    PublishedClaim(post="python", said="T5-small: no figure is published", shown=_t5),
)
"""``benchmarks``: the repository of the multi-model GPU benchmarks that the posts link to."""
