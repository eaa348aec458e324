"""The networks in PyTorch on a device: traced as in the posts, each instance with weights and a stream of its own."""

from __future__ import annotations

import contextlib
import gc
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from benchmarks.gpu_check.networks import inputs, network
from benchmarks.gpu_check.schedule import Prepared, Subject

NOT_TRACED = ("t5-small",)
"""Its loop over tokens would be unrolled; T5 is a Python model in the post, too."""


class TorchInstances:
    """A network's instances on one device: threads of this process, as Triton's instances are, not processes."""

    def __init__(self, subject: Subject, *, device: str, tiny: bool) -> None:
        self._subject, self._device, self._tiny = subject, torch.device(device), tiny
        self._dtype = torch.float16 if subject.precision == "fp16" else torch.float32
        self._instances: list[tuple[Any, Any]] = []

    def prepared(self) -> Prepared:
        """Load the first instance."""
        began = time.perf_counter()
        self.add()
        model = self._instances[0][0]
        sizes = [(each.numel(), each.element_size()) for each in model.parameters()]
        return Prepared(
            run=self.calls,
            add_instance=self.add,
            peak_mib=self._peak_mib,
            parameters=sum(count for count, _ in sizes),
            weights_mib=sum(count * size for count, size in sizes) / 2**20,
            load_seconds=time.perf_counter() - began,
            close=self.close,
        )

    def add(self) -> None:
        """Load one more instance."""
        model = network(self._subject.model, tiny=self._tiny).to(self._device, self._dtype)
        if self._subject.model not in NOT_TRACED:
            with torch.inference_mode(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # newer releases deprecate tracing, which Triton's backend is for
                model = torch.jit.trace(model, self._tensors(1, on_device=True), check_trace=False)
        stream = None
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)  # the weights are there before another stream reads them
            stream = torch.cuda.Stream(self._device)
        self._instances.append((model, stream))

    def calls(self, batch: int) -> Sequence[Callable[[], None]]:
        """A call of each instance: a request's tensors to the device, the network, its output back."""
        tensors = self._tensors(batch, on_device=False)

        def call_of(model: Any, stream: Any) -> Callable[[], None]:
            def call() -> None:
                own = contextlib.nullcontext() if stream is None else torch.cuda.stream(stream)
                with torch.inference_mode(), own:
                    model(*(each.to(self._device, non_blocking=True) for each in tensors)).cpu()

            return call

        return [call_of(model, stream) for model, stream in self._instances]

    def close(self) -> None:
        """Give the memory back to the device."""
        self._instances.clear()
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _tensors(self, batch: int, *, on_device: bool) -> tuple[Any, ...]:
        made = inputs(self._subject.model, batch=batch, tiny=self._tiny)
        made = tuple(each.to(self._dtype) if each.is_floating_point() else each for each in made)
        if on_device:
            return tuple(each.to(self._device) for each in made)
        return tuple(each.pin_memory() for each in made) if self._device.type == "cuda" else made

    def _peak_mib(self) -> float | None:
        if self._device.type != "cuda":
            return None
        peak = torch.cuda.max_memory_allocated(self._device) / 2**20
        torch.cuda.reset_peak_memory_stats(self._device)
        return peak


def describe(device: str) -> dict[str, Any]:
    """The device and PyTorch, for the document. Raises RuntimeError: PyTorch finds no CUDA device."""
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": None}
    if device == "cpu":
        return {"kind": "cpu", "name": "CPU: no figure here is a GPU's", "uuid": None, "versions": versions}
    if not torch.cuda.is_available():
        raise RuntimeError(f"PyTorch {torch.__version__} finds no CUDA device")
    found = torch.cuda.get_device_properties(0)
    uuid = getattr(found, "uuid", None)  # newer releases of PyTorch have it
    versions["cudnn"] = torch.backends.cudnn.version()
    return {
        "kind": "cuda",
        "name": found.name,
        "uuid": None if uuid is None else str(uuid),
        "compute_capability": f"{found.major}.{found.minor}",
        "memory_mib": round(found.total_memory / 2**20),
        "multiprocessors": found.multi_processor_count,
        "tf32": {"matmul": torch.backends.cuda.matmul.allow_tf32, "cudnn": torch.backends.cudnn.allow_tf32},
        "versions": versions,
    }
