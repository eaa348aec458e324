"""A load by perf_analyzer through `tritonstack proxy`, as a point like those of the own client."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tritonstack.bench.figures import SHARES, figures
from tritonstack.bench.load import Load, Rate, Users
from tritonstack.bench.measuring import Point
from tritonstack.bench.payload import Payload
from tritonstack.bench.perf_analyzer import Analysed, arguments, find_program, read_export, run, write_input
from tritonstack.bench.settings import BenchSettings
from tritonstack.bench.stability import agreement
from tritonstack.errors import WorkFailedError

ADDRESS = "KServe v2 at http://"
"""How the proxy's first line begins."""
STOP_SECONDS = 30.0


class Analyser:
    """Measures loads on one model. Needs the program: see ``find_program``."""

    def __init__(
        self, settings: BenchSettings, *, payload: Payload, endpoint: str, model: str, manifest: Any, local: bool
    ) -> None:
        """``manifest``: of the archive, or None; ``local``: the local AWS is called."""
        self._settings = settings
        self._payload = payload
        self._endpoint = endpoint
        self._model = model
        self._table = None if manifest is None else manifest["model"]
        self._local = local

    def level(self, load: Load) -> Point:
        """One load; its rounds are perf_analyzer's last measurements.

        Raises:
            WorkFailedError: it did not come to figures that it believes, the proxy did not start, or time is over.
            InputError: the payload cannot be given to it.
        """
        with tempfile.TemporaryDirectory(prefix="bench-") as name, self._proxy() as address:
            data, export = Path(name) / "input.json", Path(name) / "export.json"
            write_input(self._payload, data, table=self._table)
            told = arguments(load, self._settings, model=self._model, address=address, data=data, export=export)
            last = run([str(find_program()), *told], seconds=self._settings.max_seconds)
            if not export.is_file():
                raise WorkFailedError(f"perf_analyzer, {load.name}: {last}\n  do: longer --seconds, more --max-rounds")
            return self._point(load, read_export(export.read_text()))

    def _point(self, load: Load, found: Analysed) -> Point:
        shares = tuple(sorted({*SHARES, self._settings.rule.percentile}))
        ended = np.array(found.samples.ended)
        rounds = []
        for begin, end in found.windows:
            first, last = np.searchsorted(ended, [begin, end])
            part = found.samples.part(int(first), int(last))
            rounds.append(figures(part, begin=begin, end=end, shares=shares))
        begin, end = found.windows[0][0], found.windows[-1][1]
        inside = found.samples.part(int(np.searchsorted(ended, begin)))
        return Point(
            load=load.name,
            users=load.count if isinstance(load, Users) else None,
            rate_per_second=load.per_second if isinstance(load, Rate) else None,
            rounds=tuple(rounds),
            all=figures(inside, begin=begin, end=end, shares=shares),
            agreement=agreement(rounds, self._settings.rule),
            failures=dict(found.samples.failures),
        )

    @contextmanager
    def _proxy(self) -> Iterator[str]:
        """A proxy of its own on a free port; its address."""
        command = [sys.executable, "-m", "tritonstack", "proxy", self._settings.environment]
        command += ["--endpoint", self._endpoint, "--port", "0", *(["--local"] if self._local else [])]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                assert process.stdout is not None  # noqa: S101 - it is a pipe
                line = process.stdout.readline()
                if not line.startswith(ADDRESS):
                    said = process.stderr.read() if process.stderr is not None else ""
                    raise WorkFailedError(f"tritonstack proxy did not start: {line}{said}")
                yield line.removeprefix(ADDRESS).split()[0]
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(timeout=STOP_SECONDS)
