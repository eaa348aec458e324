"""Utilisation and memory of a GPU, read from the driver's NVML without any package."""

from __future__ import annotations

import contextlib
import ctypes
import statistics
import threading
from types import TracebackType
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
NAME_BYTES = 96
SECONDS_BETWEEN = 0.1
"""The driver's own sample period is between 1/6 s and 1 s (NVML API reference, nvmlUtilization_t)."""
PREFIXES = ("GPU-", "MIG-")  # PyTorch has a device's UUID without them
RETURN_CODES = {3: "not supported (a MIG slice has no utilisation)", 4: "no permission", 9: "no driver"}


class NvmlError(Exception):
    """NVML returned no figure; the message has the reason."""


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Gpu:
    """One GPU, as the driver reports it."""

    def __init__(self, *, uuid: str | None = None, library: Any = None) -> None:
        """The GPU or MIG slice with this UUID, else the first GPU. ``library``: NVML; None loads the driver's.

        Raises NvmlError: there is no driver, or no such GPU.
        """
        try:
            self._nvml = library if library is not None else ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise NvmlError(f"{LIBRARY} cannot be loaded: {error}") from error
        self._call("nvmlInit_v2")
        self._handle = ctypes.c_void_p()
        if uuid is None:
            self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(0), ctypes.byref(self._handle))
            return
        for prefix in PREFIXES:
            with contextlib.suppress(NvmlError):
                name = ctypes.c_char_p(f"{prefix}{uuid}".encode())
                self._call("nvmlDeviceGetHandleByUUID", name, ctypes.byref(self._handle))
                return
        raise NvmlError(f"NVML has no {' or '.join(f'{prefix}{uuid}' for prefix in PREFIXES)}")

    def utilization(self) -> int:
        """Percent of the last sample period in which a kernel ran. Raises NvmlError."""
        found = _Utilization()
        self._call("nvmlDeviceGetUtilizationRates", self._handle, ctypes.byref(found))
        return int(found.gpu)

    def memory_used_mib(self) -> float:
        """Memory in use by all processes, in MiB. Raises NvmlError."""
        found = _Memory()
        self._call("nvmlDeviceGetMemoryInfo", self._handle, ctypes.byref(found))
        return float(found.used) / 2**20

    def driver(self) -> str:
        """Version of the driver. Raises NvmlError."""
        text = ctypes.create_string_buffer(NAME_BYTES)
        self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(NAME_BYTES))
        return text.value.decode()

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._nvml, name)(*arguments)
        if status:
            raise NvmlError(f"{name}: {RETURN_CODES.get(status, f'NVML error {status}')}")


class Sampler:
    """Samples a GPU's utilisation in a thread, for as long as its block lasts.

    Attributes:
        percent: mean utilisation; None without a GPU or a sample.
        memory_mib: the most memory in use; None likewise.
        reason: why there is none, else empty.
    """

    def __init__(self, gpu: Gpu | None, *, leave_out_seconds: float = 0.0) -> None:
        """``leave_out_seconds``: of the beginning, whose samples cover what was before."""
        self._gpu, self._leave_out = gpu, leave_out_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._percents: list[int] = []
        self._memory: list[float] = []
        self.reason = "" if gpu is not None else "no NVML"

    @property
    def percent(self) -> float | None:
        """Mean utilisation of the samples."""
        return statistics.fmean(self._percents) if self._percents else None

    @property
    def memory_mib(self) -> float | None:
        """The most memory in use, by all processes."""
        return max(self._memory, default=None)

    def __enter__(self) -> Sampler:
        if self._gpu is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._gpu is not None:
            self._thread.join()

    def _sample(self) -> None:
        assert self._gpu is not None
        self._ended.wait(self._leave_out)
        while not self._ended.is_set():
            try:
                self._memory.append(self._gpu.memory_used_mib())
                self._percents.append(self._gpu.utilization())
            except NvmlError as error:
                self.reason = str(error)
                return
            self._ended.wait(SECONDS_BETWEEN)
