"""One engine on this machine: with its own GPU, or with stand-ins that a test puts in the place of the programs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tritonstack.archives.programs import Report
from tritonstack.engines.engine_failure import KEPT_LINES, EngineStoppedError, engine_failure, require_built
from tritonstack.engines.job_staging import set_output

_LOOK_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class HereRunner:
    """Runs the engine step as a process of this machine.

    Attributes:
        stop: set where a running step is to be given up.
        variables: further environment variables of the step (``TRITONSTACK_TRTEXEC`` …).
        python: the interpreter.
    """

    stop: threading.Event
    variables: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        """Build one engine; see ``EngineRunner``."""
        output.mkdir(parents=True, exist_ok=True)
        set_output(job, str(output.resolve()))
        last: deque[str] = deque(maxlen=KEPT_LINES)
        with subprocess.Popen(
            [self.python, "engine_step.py", "job.json"],
            cwd=job,
            env={**os.environ, **self.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as step:
            watcher = threading.Thread(target=self._heed, args=(step,), name=f"stop {name}", daemon=True)
            watcher.start()
            try:
                for line in step.stdout or ():
                    last.append(line.rstrip())
                    report(last[-1])
            except BaseException:
                step.terminate()  # the step ends trtexec itself
                raise
        watcher.join()
        if (self.stop.is_set() and step.returncode < 0) or step.returncode > 128:
            raise EngineStoppedError
        if step.returncode:
            otherwise = f"the engine step ended with exit code {step.returncode}"
            raise engine_failure(output, otherwise=otherwise, log_tail=last)
        require_built(output, log_tail=last)

    def _heed(self, step: subprocess.Popen[str]) -> None:
        while step.poll() is None:
            if self.stop.wait(_LOOK_SECONDS):
                step.terminate()
                return
